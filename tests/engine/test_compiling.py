"""The kernels are compiled once on a machine: told, by one of several, before processes start, outside of time-outs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clusters import Cluster, until
from distributed import get_worker

from streamkernel.compiled_loops import CompiledLoops
from streamkernel.engine import compiling
from streamkernel.engine.cluster import connect
from streamkernel.engine.cluster import worker_warm_up as warming
from streamkernel.errors import StoreError

CODE = """
from streamkernel.engine.compiling import LOOPS
from streamkernel.kernels.loops.compiled import FILL
before = LOOPS.are_compiled()
LOOPS.compile()
print(before, LOOPS.are_compiled(), sum(sum(FILL.of(dtype).stats.cache_misses.values()) for dtype in FILL.signatures))
"""


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine without a cache, whose compiler takes until something is told; what was told."""
    told: list[str] = []
    monkeypatch.setattr(compiling, "_SECONDS", 0.05)
    monkeypatch.setattr(compiling.LOOPS, "are_compiled", lambda: False)
    monkeypatch.setattr(compiling.LOOPS, "compile", lambda: until(lambda: told))
    return told


def test_it_is_told(cold: list[str]) -> None:
    compiling.compile_here(cold.append)
    assert cold == [compiling.COMPILING]


def test_what_was_compiled_before_is_not_told(cold: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.LOOPS, "are_compiled", lambda: True)
    monkeypatch.setattr(compiling.LOOPS, "compile", lambda: pytest.fail("compiled again"))
    compiling.compile_here(cold.append)
    assert cold == []


def test_an_error_of_the_compiler_is_raised(cold: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(compiling.LOOPS, "compile", failing)
    with pytest.raises(MemoryError, match="no room"):
        compiling.compile_here(cold.append)


def test_ahead_of_all_fits(cold: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused where no process would find the loops."""
    ran: list[str] = []
    monkeypatch.setattr(compiling.LOOPS, "compile", lambda: ran.append("all"))
    assert compiling.compile_ahead(cold.append) == str(compiling.LOOPS.cache_folder)
    assert ran == ["all"]
    monkeypatch.setattr(CompiledLoops, "cache_folder", None)
    with pytest.raises(StoreError, match="set NUMBA_CACHE_DIR to a folder that can be written to"):
        compiling.compile_ahead(cold.append)
    assert len(ran) == 1


def test_a_signal_ends_the_wait(cold: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def endless() -> None:
        os.kill(os.getpid(), signal.SIGINT)  # by the compiler's thread: there is a wait that it ends
        over.wait()

    monkeypatch.setattr(compiling.LOOPS, "compile", endless)
    # Libraries that other tests load may have a handler of their own.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compiling.compile_here(cold.append)
    finally:
        signal.signal(signal.SIGINT, former)
        over.set()


@pytest.mark.slow
def test_of_two_first_commands_one_compiles(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(each.communicate()[0] for each in both) == ["False True 0\n", "False True 2\n"]


def test_workers_get_ready_in_tasks(dask_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck() -> None:
        # A compiler on a busy machine; that it is a task tells that the worker goes on giving signs of life meanwhile.
        get_worker().get_current_task()
        time.sleep(1.0)

    monkeypatch.setattr(warming, "warm_up", stuck)
    monkeypatch.setattr(compiling, "_SECONDS", 0.2)
    told: list[str] = []
    with connect(dask_cluster.address, tell=told.append) as executor:
        assert executor.n_workers == 1
    assert len(told) == 1
    assert compiling.COMPILING in told[0]
