"""Shapes of stored arrays, stated by letters and numbers: equal letters are equal sizes."""

from __future__ import annotations

from collections.abc import Mapping

from streamkernel.type_aliases import AnyArray

Shape = tuple[str, ...]


def shapes_fit(
    arrays: Mapping[str, AnyArray], required: Mapping[str, Shape], optional: Mapping[str, Shape], sizes: dict[str, int]
) -> bool:
    """Whether arrays have their shapes.

    Parameters
    ----------
    required, optional : shapes of arrays by name, such as ``("n + 1", "p")``, ``("n or 0",)`` and ``("2",)``.
    sizes : sizes of letters that are known before; another letter takes that of the first array that has it.
    """
    stated = {**required, **optional}
    return all(
        _fits(arrays[name].shape, wanted, sizes) if name in arrays else name in optional
        for name, wanted in stated.items()
    )


def _fits(shape: tuple[int, ...], wanted: Shape, sizes: dict[str, int]) -> bool:
    if len(shape) != len(wanted):
        return False
    for size, words in zip(shape, wanted, strict=True):
        letter, _, more = words.removesuffix(" or 0").partition(" + ")
        if size == 0 and words.endswith(" or 0"):
            continue
        expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size - int(more or 0))
        if size != expected + int(more or 0):
            return False
    return True
