"""A yard to lay inputs in, and stores as they should be, made once."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fuzz.cases import Case, written
from fuzz.damage import Files
from fuzz.limits import Yard

from streamkernel import atomic


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_syncfs", lambda folder: True)
    # Of an input that fails: it would take the place of the failure.
    warnings.filterwarnings("ignore", "Generating overly large repr")


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    # In memory where there is such a folder: tens of thousands of small files are made.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Yard(Path(folder))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Case], Files]:
    folder, made = tmp_path_factory.mktemp("whole"), {}

    def files(name: str, case: Case) -> Files:
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made[name] = written(case, folder / name.replace(" ", "-"))
                case[1](folder / name.replace(" ", "-"))
        return made[name]

    return files


@pytest.fixture
def told(yard: Yard) -> Callable[[str, int], AbstractContextManager[None]]:
    """Around inputs of a category: prints how many there were and how they ended; there are `least` of them."""

    @contextmanager
    def category(name: str, least: int) -> Iterator[None]:
        yard.outcomes.clear()
        began = time.monotonic()
        yield
        ends = ", ".join(f"{end} {count}" for end, count in yard.outcomes.most_common())
        print(f"\nfuzz: {name}: {yard.count} inputs in {time.monotonic() - began:.0f} s: {ends}")
        assert yard.count >= least

    return category
