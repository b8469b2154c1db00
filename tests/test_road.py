"""The road from a fit to the compiled loop: few frames, and each thing done once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import streamkernel
from streamkernel import GaussianProcessRegressor, KernelRidge, Nystroem, ingest
from streamkernel.cli import main
from streamkernel.compiled_loops import Compiled
from streamkernel.engine import check_memory, make_plan, threads
from streamkernel.engine.session import Session
from streamkernel.kernels.loops.compiled import FILL
from streamkernel.kernels.names import as_kernel
from streamkernel.manifest import parse_manifest

PACKAGE = str(Path(streamkernel.__file__).parent)
X = np.random.default_rng(0).standard_normal((600, 3))
Y = X[:, 0] + np.sin(X[:, 1])
SIZE = {"n_components": 20}
MOST_FRAMES = 11
# Kernels are those of the settings as given, and as chosen for the table.
ONCE = {"make_plan": 1, "check_memory": 1, "parse_manifest": 1, "as_kernel": 2}


@pytest.fixture
def store(tmp_path: Path) -> str:
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    ingest(tmp_path / "rows.npz", tmp_path / "rows.zarr", chunk_rows=100)
    return str(tmp_path / "rows.zarr")


def command(*arguments: str) -> Callable[[], None]:
    def run() -> None:
        assert main([*arguments, "--scheduler", "threads", "--quiet"]) == 0

    return run


def shown(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_code.co_name}"


def roads(run: Callable[[], Any], begins: str, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Frames of this package from the function `begins` to each call of the block loop in the final sweep."""
    found: list[list[str]] = []
    known = Compiled.of

    def of(self: Compiled, dtype: Any) -> Any:
        frames, last = [], False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                frames.append(shown(frame))
                last |= frame.f_code is Session.sweep.__code__ and frame.f_locals["name"] == "final sweep"
                if frames[-1] == begins:
                    break
            frame = frame.f_back
        if last and self is FILL:
            found.append(frames[::-1])
        return known(self, dtype)

    monkeypatch.setattr(Compiled, "of", of)
    # One thread runs the tasks itself: the road is one stack.
    monkeypatch.setattr(threads, "available_cpus", lambda: 1)
    run()
    return found


@pytest.mark.parametrize(
    ("estimator", "begins"),
    [
        (KernelRidge(**SIZE), "/estimators/base.py:fit"),
        (KernelRidge(**SIZE, alpha="cv"), "/estimators/base.py:fit"),
        (GaussianProcessRegressor(**SIZE, tune="none"), "/estimators/base.py:fit"),
        (Nystroem(**SIZE), "/estimators/nystroem.py:fit"),
    ],
)
def test_from_fit_to_the_loop(estimator: Any, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = roads(lambda: estimator.fit(X, Y), begins, monkeypatch)
    assert found
    for road in found:
        assert road[0] == begins
        assert len(road) <= MOST_FRAMES, "\n".join(road)


def test_from_the_command_to_the_loop(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begins = "/cli/commands/fit.py:command"
    found = roads(command("fit", store, str(tmp_path / "model"), "--basis", "20"), begins, monkeypatch)
    assert found
    for road in found:
        assert road[0] == begins
        assert len(road) <= MOST_FRAMES, "\n".join(road)


def calls(run: Callable[[], Any], *functions: Callable[..., Any]) -> Counter[str]:
    """How often each function is called in this thread."""
    codes: dict[CodeType, str] = {function.__code__: function.__name__ for function in functions}
    found: Counter[str] = Counter()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            found[codes[frame.f_code]] += 1

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def test_a_fit_plans_once(store: str) -> None:
    found = calls(lambda: KernelRidge(**SIZE).fit(store), make_plan, check_memory, parse_manifest, as_kernel)
    assert found == ONCE


@pytest.mark.parametrize("name", ["fit", "plan"])
def test_a_command_plans_once_and_parses_once(name: str, store: str, tmp_path: Path) -> None:
    outputs = [str(tmp_path / "model")] if name == "fit" else []
    found = calls(command(name, store, *outputs, "--basis", "20"), make_plan, check_memory, parse_manifest, as_kernel)
    assert found == ONCE
