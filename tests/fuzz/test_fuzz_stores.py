"""Stores, models and sources damaged at random: success, or one error of ours; in time, in memory, in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fuzz.cases import MODELS, PARTS, SOURCES, STORES, WRITES, Case, read_table
from fuzz.damage import Files, bytes_damaged, files_damaged, lay, resealed
from fuzz.forgery import Forgery, of_inputs
from fuzz.limits import Yard
from hypothesis import given, seed
from hypothesis import strategies as st

from streamkernel.errors import DataError, NumericRangeError, ParameterError, ResourceLimitError
from streamkernel.table.ingest import ingest

QUICK, MANY = 8, 400
# Most of a tenth of a second each, to write.
FORGED = 4
Whole = Callable[[str, Case], Files]


def fuzz_store(yard: Yard, files: Files, name: str, examples: int) -> None:
    case, parts = ALL[name], PARTS.get(name, ("",))

    @of_inputs(examples)
    @seed(1)
    @given(damaged=files_damaged(files), known=st.booleans())
    def run(damaged: tuple[Files, list[Any], list[str]], known: bool) -> None:
        found, changes, _ = damaged
        path = yard.place("store")
        for part in parts if known else ():
            found = resealed(found, part)
        lay(path, found, changes)
        yard.run(lambda: case[1](path), may_write=path if name in WRITES else ())

    run()


def fuzz_model(yard: Yard, files: Files, name: str, examples: int) -> None:
    forgery = Forgery(yard, files, PARTS.get(name, ("",))[0])

    @of_inputs(examples)
    @seed(1)
    @given(drawn=forgery.drawn())
    def run(drawn: Any) -> None:
        path = yard.place("store")
        forgery.lay(path, drawn)
        yard.run(lambda: MODELS[name][1](path))

    run()


def fuzz_source(yard: Yard, suffix: str, content: bytes, target: str | int | None, examples: int) -> None:
    @of_inputs(examples)
    @seed(1)
    @given(body=bytes_damaged(content) | st.binary(max_size=60), shuffle=st.booleans())
    def run(body: bytes, shuffle: bool) -> None:
        source, out = yard.place(f"source{suffix}"), yard.place("out")
        source.write_bytes(body)
        error = yard.run(lambda: ingest(source, out, target=target, chunk_rows=8, shuffle=shuffle), may_write=out)
        assert out.exists() == (error is None)
        # The disk is not to blame, nor the output.
        assert error is None or isinstance(error, DataError | ParameterError | ResourceLimitError), error
        if error is None:
            again = yard.run(lambda: read_table(out), counted=False)
            # Values that float32 holds, but not their squares.
            assert again is None or isinstance(again, NumericRangeError), again
        source.unlink()

    run()


ALL = {**STORES, **MODELS}
SEVERAL = [(suffix, number) for suffix, sources in SOURCES.items() for number in range(len(sources))]


@pytest.mark.parametrize("name", ALL)
def test_damaged_stores(yard: Yard, whole: Whole, told: Any, name: str) -> None:
    with told(f"damaged {name}", QUICK):
        fuzz_store(yard, whole(name, ALL[name]), name, QUICK)


@pytest.mark.parametrize("name", MODELS)
def test_forged_models(yard: Yard, whole: Whole, told: Any, name: str) -> None:
    with told(f"forged {name}", FORGED):
        fuzz_model(yard, whole(name, MODELS[name]), name, FORGED)


@pytest.mark.parametrize(("suffix", "number"), SEVERAL)
def test_damaged_sources(yard: Yard, told: Any, suffix: str, number: int) -> None:
    with told(f"source {suffix}", QUICK):
        fuzz_source(yard, suffix, *SOURCES[suffix][number], QUICK)


def test_ten_thousand() -> None:
    """The slow tests below, together; one each, so that a slow machine does not lose what the others found."""
    assert (len(ALL) + len(MODELS) + len(SEVERAL)) * MANY >= 10_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_damaged_stores(yard: Yard, whole: Whole, told: Any) -> None:
    with told("damaged stores", len(ALL) * MANY):
        for name in ALL:
            fuzz_store(yard, whole(name, ALL[name]), name, MANY)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_forged_models(yard: Yard, whole: Whole, told: Any) -> None:
    with told("forged models", len(MODELS) * MANY):
        for name in MODELS:
            fuzz_model(yard, whole(name, MODELS[name]), name, MANY)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_damaged_sources(yard: Yard, told: Any) -> None:
    with told("damaged sources", len(SEVERAL) * MANY):
        for suffix, number in SEVERAL:
            fuzz_source(yard, suffix, *SOURCES[suffix][number], MANY)
