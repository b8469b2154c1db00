"""Stores, models and sources damaged at random: success, or one error of ours; in time, in memory, in their place."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.cases import MODELS, SOURCES, STORES, WRITES, Case, read_table, written
from fuzz.damage import arrays_damaged, bytes_damaged, files_damaged, json_damaged, lay, resealed
from fuzz.limits import Yard
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamkernel import atomic
from streamkernel.errors import DataError, NumericRangeError, ParameterError, ResourceLimitError, StreamKernelError
from streamkernel.store import Bundle, read_bundle, write_bundle
from streamkernel.table.ingest import ingest

QUICK, MANY = 8, 400


def of_inputs(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(atomic, "_syncfs", lambda folder: True)


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    # In memory where there is such a folder: tens of thousands of small files are made.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Yard(Path(folder))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Case], dict[str, bytes]]:
    folder, made = tmp_path_factory.mktemp("whole"), {}

    def files(name: str, case: Case) -> dict[str, bytes]:
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made[name] = written(case, folder / name.replace(" ", "-"))
                case[1](folder / name.replace(" ", "-"))
        return made[name]

    return files


def fuzz_store(yard: Yard, files: dict[str, bytes], case: Case, examples: int, *, writes: bool = False) -> None:
    @of_inputs(examples)
    @seed(1)
    @given(damaged=files_damaged(files), known=st.booleans())
    def run(damaged: tuple[dict[str, bytes], list, list[str]], known: bool) -> None:
        found, changes, _ = damaged
        path = yard.place("store")
        lay(path, resealed(found) if known else found, changes)
        yard.run(lambda: case[1](path), may_write=path if writes else None)

    run()


def fuzz_model(yard: Yard, files: dict[str, bytes], case: Case, examples: int) -> None:
    """Models that are whole, to the last digest, and say what no model says."""
    header = json.loads(files["config.json"])
    lay(yard.place("whole"), files, [])
    arrays = read_bundle(yard.place_of("whole"), header["kind"], versions=range(9)).arrays
    yard.place("whole")

    @of_inputs(examples)
    @seed(1)
    @given(config=json_damaged(files["config.json"]), changed=arrays_damaged(arrays), both=st.integers(0, 2))
    def run(config: bytes, changed: dict[str, NDArray[Any]], both: int) -> None:
        path = yard.place("store")
        if both == 0:
            lay(path, resealed({**files, "config.json": config}), [])
        else:
            try:
                found = json.loads(config)["config"] if both == 1 else header["config"]
                write_bundle(path, Bundle(header["kind"], header["version"], found, changed))
            except (StreamKernelError, ValueError, TypeError, KeyError, RecursionError):
                lay(path, resealed({**files, "config.json": config}), [])
        yard.run(lambda: case[1](path))

    run()


def fuzz_source(yard: Yard, suffix: str, content: bytes, target: str | int | None, examples: int) -> None:
    @of_inputs(examples)
    @seed(1)
    @given(body=bytes_damaged(content) | st.binary(max_size=60), shuffle=st.booleans())
    def run(body: bytes, shuffle: bool) -> None:
        source, out = yard.place(f"source{suffix}"), yard.place("out")
        source.write_bytes(body)
        error = yard.run(lambda: ingest(source, out, target=target, chunk_rows=8, shuffle=shuffle), may_write=out)
        assert sorted(os.listdir(yard.folder)) == sorted(
            {"neighbour", source.name, *(["out"] if error is None else [])} | {"store"} & set(os.listdir(yard.folder))
        )
        # The disk is not to blame, nor the output.
        assert error is None or isinstance(error, DataError | ParameterError | ResourceLimitError), error
        if error is None:
            again = yard.run(lambda: read_table(out))
            # Values that float32 holds, but not their squares.
            assert again is None or isinstance(again, NumericRangeError), again
        source.unlink()

    run()


ALL = {**STORES, **MODELS}
# A factor's bundle is a part of it.
FORGED = [name for name in MODELS if name != "factor"]
SEVERAL = [(suffix, number) for suffix, sources in SOURCES.items() for number in range(len(sources))]


@pytest.mark.parametrize("name", ALL)
def test_damaged_stores(yard: Yard, whole: Callable[[str, Case], dict[str, bytes]], name: str) -> None:
    before = yard.count
    fuzz_store(yard, whole(name, ALL[name]), ALL[name], QUICK, writes=name in WRITES)
    assert yard.count - before >= QUICK


@pytest.mark.parametrize("name", FORGED)
def test_forged_models(yard: Yard, whole: Callable[[str, Case], dict[str, bytes]], name: str) -> None:
    before = yard.count
    fuzz_model(yard, whole(name, MODELS[name]), MODELS[name], QUICK)
    assert yard.count - before >= QUICK


@pytest.mark.parametrize(("suffix", "number"), SEVERAL)
def test_damaged_sources(yard: Yard, suffix: str, number: int) -> None:
    before = yard.count
    fuzz_source(yard, suffix, *SOURCES[suffix][number], QUICK)
    assert yard.count - before >= QUICK


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand(yard: Yard, whole: Callable[[str, Case], dict[str, bytes]]) -> None:
    before = yard.count
    for name in ALL:
        fuzz_store(yard, whole(name, ALL[name]), ALL[name], MANY, writes=name in WRITES)
    for name in FORGED:
        fuzz_model(yard, whole(name, MODELS[name]), MODELS[name], MANY // 4)
    for suffix, number in SEVERAL:
        fuzz_source(yard, suffix, *SOURCES[suffix][number], MANY)
    print(f"{yard.count - before} inputs: {dict(yard.outcomes)}")
    assert yard.count - before >= 10_000
