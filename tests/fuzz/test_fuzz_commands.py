"""Commands on broken models, factors and tables: exit status 1 and one line, and no output that is half there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import MODELS, PARTS, STORES, Case, X, Y, read_table
from fuzz.command import commanded
from fuzz.damage import Files, files_damaged, lay, resealed, snapshot
from fuzz.forgery import Forgery, of_inputs
from fuzz.limits import Yard
from hypothesis import given, seed
from hypothesis import strategies as st

from streamkernel import ingest

QUICK, MANY = 4, 150
# A page takes most of a second.
PAGES = 50
Whole = Callable[[str, Case], Files]

THREADS = ("--scheduler", "threads", "--quiet")
PREDICTING = ("ridge", "classifier", "gp", "kmp", "kmp classifier")
COMMANDS = [
    *(("predict", name) for name in PREDICTING),
    *(("evaluate", name) for name in PREDICTING),
    *(("info", name) for name in ("ridge", "gp", "sparse kernel pca", "kernel cca", "kmp", "factor", "table")),
    *(("report", name) for name in ("ridge", "gp", "kmp", "factor")),
    *(("update", name) for name in ("ridge", "gp")),
]  # fmt: skip
# Their models are read by the other commands, too.
SLOW = (
    ("report", "gp"),
    ("report", "kmp"),
    ("evaluate", "classifier"),
    ("evaluate", "kmp"),
    ("predict", "kmp classifier"),
)
ROWS = 20


@pytest.fixture(scope="module")
def rows(yard: Yard) -> dict[str, Path]:
    """Tables of other rows than the models': with numbers, and with labels."""
    source = yard.place("rows.csv")
    lines = ["a,b,c,t", *(f"{a},{b},{c},{'a' if y > 0 else 'b'}" for (a, b, c), y in zip(X + 1, Y, strict=True))]
    source.write_text("\n".join(lines))
    ingest(np.column_stack([X + 1, Y]), yard.place("numbers"), target=3, chunk_rows=16)
    ingest(source, yard.place("labels"), target="t", chunk_rows=16)
    return {name: yard.place_of(name) for name in ("numbers", "labels")}


def arguments_of(command: str, model: Path, table: Path, out: Path) -> list[object]:
    return {
        "predict": ["predict", model, table, out, *THREADS, "--json"],
        "evaluate": ["evaluate", model, table, *THREADS, "--json"],
        "info": ["info", model],
        "report": ["report", model, out],
        "update": ["update", model, table, *THREADS],
    }[command]


def fuzz_command(yard: Yard, files: Files, command: str, name: str, rows: dict[str, Path], examples: int) -> None:
    table = rows["labels" if "classifier" in name else "numbers"]
    parts = PARTS.get(name, ("",))
    # A table has no bundle to be forged.
    forgery = None if name in STORES else Forgery(yard, files, parts[0])
    forged = st.none() if forgery is None else st.none() | forgery.drawn()
    output = "out.html" if command == "report" else "out.zarr"

    def places() -> tuple[Path, Path, list[Path]]:
        """Where the model lies, where the output goes, and where the command may write."""
        model, out, left = yard.place("store"), yard.place(output), yard.place(".store.update")
        # What an update has swept is kept for the next one.
        return model, out, [model, left] if command == "update" else [out]

    # Otherwise all inputs may be refused for something that is not damaged, and nobody sees it.
    model, out, may_write = places()
    lay(model, files, [])
    arguments = arguments_of(command, model, table, out)
    assert yard.run(lambda: commanded(*arguments), may_write=may_write, counted=False) is None

    @of_inputs(examples)
    @seed(1)
    @given(damaged=files_damaged(files), known=st.booleans(), drawn=forged)
    def run(damaged: tuple[Files, list[Any], list[str]], known: bool, drawn: Any) -> None:
        model, out, may_write = places()
        if drawn is not None and forgery is not None:
            forgery.lay(model, drawn)
        else:
            found, changes, _ = damaged
            for part in parts if known else ():
                found = resealed(found, part)
            lay(model, found, changes)
        before = snapshot(model)
        error = yard.run(lambda: commanded(*arguments_of(command, model, table, out)), may_write=may_write)
        if error is None:
            assert out.exists() == (command in ("predict", "report"))
        else:
            assert not out.exists()
            assert snapshot(model) == before

    run()
    places()


def fuzz_append(yard: Yard, files: Files, examples: int) -> None:
    """The store is as it was, or has the new rows behind those it had."""
    source = yard.place("more.npy")
    np.save(source, np.column_stack([X, Y])[:ROWS])

    @of_inputs(examples)
    @seed(1)
    @given(damaged=files_damaged(files), known=st.booleans(), command=st.booleans())
    def run(damaged: tuple[Files, list[Any], list[str]], known: bool, command: bool) -> None:
        found, changes, _ = damaged
        store = yard.place("store")
        lay(store, resealed(found) if known else found, changes)
        before = snapshot(store)
        others = sorted(os.listdir(yard.folder))
        error = yard.run(
            lambda: commanded("ingest", source, store, "--append", "--target", 3, "--quiet", "--json"), may_write=store
        )
        assert sorted(os.listdir(yard.folder)) == others
        if error is not None:
            assert snapshot(store) == before
            return
        counted: list[int] = []
        # Chunks that are not rewritten are not read: what was damaged in them is told by who reads them.
        if yard.run(lambda: counted.append(read_table(store)), counted=False) is None:
            assert counted[0] >= ROWS

    run()
    yard.place("store")


@pytest.mark.parametrize(
    ("command", "name"),
    [pytest.param(*each, marks=pytest.mark.slow) if each in SLOW else each for each in COMMANDS],
)
def test_commands_on_broken_stores(
    yard: Yard, whole: Whole, told: Any, rows: dict[str, Path], command: str, name: str
) -> None:
    files = whole(name, (STORES | MODELS)[name])
    with told(f"{command} of a broken {name}", QUICK):
        fuzz_command(yard, files, command, name, rows, QUICK)


def test_append_to_damaged_tables(yard: Yard, whole: Whole, told: Any) -> None:
    with told("append", 2 * QUICK):
        fuzz_append(yard, whole("table", STORES["table"]), 2 * QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("command", dict.fromkeys(command for command, _ in COMMANDS))
def test_many_commands(yard: Yard, whole: Whole, told: Any, rows: dict[str, Path], command: str) -> None:
    names = [name for each, name in COMMANDS if each == command]
    many = PAGES if command == "report" else MANY
    with told(f"{command} of broken stores", len(names) * many):
        for name in names:
            fuzz_command(yard, whole(name, (STORES | MODELS)[name]), command, name, rows, many)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_appends(yard: Yard, whole: Whole, told: Any) -> None:
    with told("append to damaged tables", 4 * MANY):
        fuzz_append(yard, whole("table", STORES["table"]), 4 * MANY)
