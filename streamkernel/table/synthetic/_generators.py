"""The target functions of synthetic tables. A new one is a class here and a row of `GENERATORS`.

Features are uniform in [0, 1), each column a stream of its own, so that a table with more columns or more rows has the
smaller one as its part. What a version of a generator has given out never changes: a change of its numbers is a new
version, which is part of the table's identity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import ParameterError
from streamkernel.table.synthetic._numbers import Words, choices, cosines, normals, uniforms
from streamkernel.type_aliases import AnyArray, Fields, Float

NOISE_STREAM = 1 << 32  # and the next one; the columns have the streams from 0 on
MOST_FEATURES = 1 << 20
_MOST_CLASSES = 1000


class Generator(ABC):
    """A target function.

    Attributes
    ----------
    name, version
        Identity; see the module.
    informative
        Number of columns, the first ones, that the target depends on.
    noise
        Noise where none is asked for.
    options
        Options that only this generator has, with their defaults.
    """

    name: str
    version: int
    informative: int
    noise: float
    options: Mapping[str, int] = MappingProxyType({})

    @abstractmethod
    def check(self, noise: float, options: Mapping[str, int]) -> None:
        """Raise ParameterError for numbers that the function cannot have."""

    @abstractmethod
    def classes(self, options: Mapping[str, int]) -> AnyArray | None:
        """Labels (c,) of the classes, whose positions `targets` gives; None where targets are numbers."""

    @abstractmethod
    def targets(
        self, X: Float, noise: float, words: Callable[[int], Words], options: Mapping[str, int]
    ) -> NDArray[np.float64] | NDArray[np.int64]:
        """Targets (b,) of rows given by columns X (informative, b); ``words(k)`` is the noise stream k of the rows."""


class Friedman(Generator):
    """``10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise * N(0, 1)`` (Friedman 1991, #1)."""

    name, version, informative, noise = "friedman", 1, 5, 1.0

    def check(self, noise: float, options: Mapping[str, int]) -> None:
        if not 0.0 <= noise <= 1e100:
            raise ParameterError(
                f"noise is the standard deviation of the noise in the target, at least 0, not {noise:g}"
            )

    def classes(self, options: Mapping[str, int]) -> AnyArray | None:
        return None

    def targets(
        self, X: Float, noise: float, words: Callable[[int], Words], options: Mapping[str, int]
    ) -> NDArray[np.float64]:
        a, b, c, d, e = X
        # sin(pi t) = cos(pi (t - 1/2)). One operation after another: their order is part of the version.
        y = 10.0 * cosines(a * b - 0.5)
        centred = c - 0.5
        y += 20.0 * (centred * centred)
        y += 10.0 * d
        y += 5.0 * e
        if noise:
            y += noise * normals(words(0), words(1))
        return y


class Checkers(Generator):
    """A chessboard of 4 x 4 cells: class ``(floor(4 x1) + floor(4 x2)) mod classes``, a share `noise` drawn anew."""

    name, version, informative, noise = "checkers", 1, 2, 0.0
    options = MappingProxyType({"classes": 2})

    def check(self, noise: float, options: Mapping[str, int]) -> None:
        if not 0.0 <= noise <= 1.0:
            raise ParameterError(f"noise is the share of labels that are drawn anew, from 0 to 1, not {noise:g}")
        if not 2 <= options["classes"] <= _MOST_CLASSES:
            raise ParameterError(f"classes is a number from 2 to {_MOST_CLASSES}, not {options['classes']}")

    def classes(self, options: Mapping[str, int]) -> AnyArray | None:
        return np.arange(options["classes"])

    def targets(
        self, X: Float, noise: float, words: Callable[[int], Words], options: Mapping[str, int]
    ) -> NDArray[np.int64]:
        cell = np.floor(4.0 * X[0]).astype(np.int64) + np.floor(4.0 * X[1]).astype(np.int64)
        y: NDArray[np.int64] = cell % options["classes"]
        if noise:
            y = np.where(uniforms(words(0)) < noise, choices(words(1), options["classes"]), y)
        return y


GENERATORS: dict[str, Generator] = {generator.name: generator for generator in (Friedman(), Checkers())}


@dataclass(frozen=True)
class SyntheticTable:
    """What a synthetic table is: a generator and its parameters. Two equal ones have the same rows, bit for bit.

    Attributes
    ----------
    generator
        Name in `GENERATORS`.
    rows, features
        Sizes m, p.
    seed
        From 0 to 2^64 - 1.
    noise
        The generator says what it means.
    dtype
        dtype of X, "float32" or "float64".
    chunk
        Rows of a chunk: of the unit that is made at once. The rows are the same for any.
    options
        Options of the generator.
    """

    generator: str
    rows: int
    seed: int
    features: int
    noise: float
    dtype: str
    chunk: int
    options: Mapping[str, int] = field(default_factory=dict)

    @property
    def maker(self) -> Generator:
        """The generator."""
        return GENERATORS[self.generator]

    @property
    def identity(self) -> Fields:
        """Plain JSON of all that determines the rows and how they are cut."""
        return {
            "generator": self.generator,
            "version": self.maker.version,
            "rows": self.rows,
            "seed": self.seed,
            "features": self.features,
            "noise": self.noise,
            "dtype": self.dtype,
            "chunk": self.chunk,
            "options": dict(self.options),
        }
