"""Tables that are made when they are read, by their URL: ``synthetic://friedman?rows=1e9&seed=0``.

Nothing is stored, so that a table of any size takes no disk, and reading costs a processor some 0.2 microseconds a row
of ten features. Such a table stands wherever a store stands for reading. Its identity is the generator, the generator's
version and all options: not a file that could change.
"""

from __future__ import annotations

import math
import os
import re

from streamkernel.blobs import GENERATED, shown
from streamkernel.errors import ParameterError
from streamkernel.table._chunk_rows import default_chunk_rows
from streamkernel.table.synthetic._generators import GENERATORS, MOST_FEATURES, SyntheticTable

_SCHEME = re.compile(rf"{GENERATED}://", re.ASCII | re.IGNORECASE)
_EXAMPLE = f"{GENERATED}://friedman?rows=1e6&seed=0"
_COMMON = ("rows", "seed", "features", "noise", "dtype", "chunk")
_DTYPES = ("float32", "float64")
_FEATURES = 10
_MOST_ROWS = 10**12
_MOST_CHUNK_ROWS = 1 << 24
# The borders of the chunks are listed when spans are cut: 128 MB for so many.
_MOST_CHUNKS = 1 << 24


def is_synthetic(location: str | os.PathLike[str]) -> bool:
    """Whether this is the URL of a table that is made when it is read."""
    return _SCHEME.match(os.fsdecode(location)) is not None


def parse(url: str | os.PathLike[str]) -> SyntheticTable:
    """The table that a URL means.

    Raises
    ------
    ParameterError
        There is no such generator or option, or a value is not allowed.
    """
    text = os.fsdecode(url)
    name, _, query = text[len(GENERATED) + len("://") :].partition("?")
    maker = GENERATORS.get(name)
    if maker is None:
        raise ParameterError(
            f"{shown(text)}: there is no generator {name!r:.60}; choose one of {', '.join(GENERATORS)}, such as "
            f"{_EXAMPLE}"
        )
    given = _options(text, query, (*_COMMON, *maker.options))
    if "rows" not in given:
        raise ParameterError(f"{shown(text)} does not say how many rows; add rows=, such as {_EXAMPLE}")
    rows = _whole(text, "rows", given["rows"], 1, _MOST_ROWS)
    seed = _whole(text, "seed", given.get("seed", "0"), 0, 2**64 - 1)
    features = _whole(
        text, "features", given.get("features", str(max(_FEATURES, maker.informative))), maker.informative,
        MOST_FEATURES,
    )  # fmt: skip
    dtype = given.get("dtype", "float32")
    if dtype not in _DTYPES:
        raise ParameterError(f"{shown(text)}: dtype is {' or '.join(_DTYPES)}, not {dtype!r:.60}")
    noise = _number(text, "noise", given["noise"]) if "noise" in given else maker.noise
    own = {
        option: _whole(text, option, given[option], 0, MOST_FEATURES) if option in given else default
        for option, default in maker.options.items()
    }
    try:
        maker.check(noise, own)
    except ParameterError as error:
        raise ParameterError(f"{shown(text)}: {error.message}") from None
    least = -(-rows // _MOST_CHUNKS)
    chunk = max(default_chunk_rows(features * (4 if dtype == "float32" else 8), rows), least)
    if "chunk" in given:
        chunk = _whole(text, "chunk", given["chunk"], least, _MOST_CHUNK_ROWS)
    return SyntheticTable(name, rows, seed, features, noise, dtype, chunk, own)


def normal_form(url: str | os.PathLike[str]) -> str:
    """The URL of the same table with numbers written out, and without what is so by default but rows and seed."""
    table = parse(url)
    usual = parse(f"{GENERATED}://{table.generator}?rows={table.rows}&features={table.features}&dtype={table.dtype}")
    said = {"rows": str(table.rows), "seed": str(table.seed)}
    if table.features != _FEATURES:
        said["features"] = str(table.features)
    if table.noise != usual.noise:
        said["noise"] = repr(table.noise)
    said |= {name: str(value) for name, value in table.options.items() if value != usual.options[name]}
    if table.dtype != "float32":
        said["dtype"] = table.dtype
    if table.chunk != usual.chunk:
        said["chunk"] = str(table.chunk)
    return f"{GENERATED}://{table.generator}?" + "&".join(f"{name}={value}" for name, value in said.items())


def _options(text: str, query: str, known: tuple[str, ...]) -> dict[str, str]:
    """The options of a URL as they are written; each once."""
    found: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if name not in known:
            raise ParameterError(f"{shown(text)}: there is no option {name!r:.60}; choose of {', '.join(known)}")
        if not equals or not value:
            raise ParameterError(f"{shown(text)}: the option {name} has no value; write {name}=VALUE")
        if name in found:
            raise ParameterError(f"{shown(text)}: the option {name} is given twice; leave one out")
        found[name] = value
    return found


def _whole(text: str, name: str, value: str, least: int, most: int) -> int:
    """A whole number, also as 1e9."""
    number: float | int
    try:
        number = int(value) if re.fullmatch(r"[0-9]{1,20}", value, re.ASCII) else float(value)
    except ValueError:
        number = math.nan
    if not (least <= number <= most and number == int(number)):
        raise ParameterError(
            f"{shown(text)}: {name} is a whole number from {least} to {most}, such as 1000 or 1e3, not {value!r:.60}"
        )
    return int(number)


def _number(text: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{shown(text)}: {name} is a finite number, not {value!r:.60}")
    return number + 0.0
