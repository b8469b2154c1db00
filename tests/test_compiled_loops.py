"""Loops that Numba compiles: once in a process and on a machine; a cache that cannot be used costs time, no result."""

from __future__ import annotations

import errno
import gc
import importlib
import pkgutil
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import cfunc, config, njit, types
from numba.core import caching
from numba.core.errors import NumbaError
from slow_cases import slow_but

import streamkernel
from streamkernel import compiled_loops
from streamkernel.compiled_loops import Compiled, CompiledCallback, CompiledLoop, CompiledLoops, source_version
from streamkernel.engine.compiling import LOOPS
from streamkernel.errors import StreamKernelWarning

DTYPE = np.dtype(np.float64)
TWICE = {DTYPE: types.float64(types.float64), np.dtype(np.float32): types.float32(types.float32)}
VERSION = 7


def twice(version: int = VERSION) -> Callable[[float], float]:
    def double(x: float) -> float:
        return x + x if version >= 0 else x

    return double


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Numba's cache, and no warning of it given before."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    # Numba reads its configuration again where a variable of its own has changed since, as other tests do.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled_loops, "_warned", threading.Event())
    return tmp_path


def loop() -> CompiledLoop:
    return CompiledLoop(twice(), TWICE, VERSION)


def callback() -> CompiledCallback:
    return CompiledCallback(twice(), TWICE, VERSION)


def write_no_code(self: Any, name: str, data: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def value(made: Compiled, dtype: Any = DTYPE) -> float:
    ready = made.of(dtype)
    return float(ready.ctypes(3.0) if isinstance(made, CompiledCallback) else ready(dtype.type(3.0)))


def test_each_dtype_is_compiled_at_its_first_use(folder: Path) -> None:
    found = loop()
    assert not list(folder.rglob("*.nbc"))
    for count, dtype in enumerate(TWICE, 1):
        assert found.of(dtype)(dtype.type(3)) == 6
        assert len(list(folder.rglob("*.nbc"))) == count
    again = loop()
    assert again.of(DTYPE)(3.0) == 6.0
    assert sum(again.of(DTYPE).stats.cache_hits.values()) == 1
    assert again.of(DTYPE) is again.of(DTYPE)


def test_a_callback_has_an_address(folder: Path) -> None:
    assert callback().of(DTYPE).address
    assert callback().of(DTYPE).cache_hits == 1
    assert callback().of(DTYPE).ctypes(3.0) == 6.0


@pytest.mark.parametrize(
    ("make", "suffix", "share"),
    slow_but(
        [(loop, ".nbc", 0.5), (loop, ".nbi", 0.0), (callback, ".nbi", 0.5)],
        product([loop, callback], [".nbc", ".nbi"], [0.0, 0.5]),
    ),
)
def test_a_damaged_cache_is_cleared_once(make: Callable[[], Compiled], suffix: str, share: float, folder: Path) -> None:
    value(make())
    for path in folder.rglob(f"*{suffix}"):
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.warns(StreamKernelWarning, match="could not be read .*; it was cleared and the loops compiled again"):
        assert value(make()) == 6.0
    for path in folder.rglob(f"*{suffix}"):
        path.write_bytes(b"")
    assert value(make()) == 6.0  # without a second warning
    assert list(folder.rglob("*.nbi"))


@pytest.mark.parametrize("make", [loop, callback])
def test_no_folder_for_compiled_code(make: Callable[[], Compiled], monkeypatch: pytest.MonkeyPatch) -> None:
    def without_cache(known: Callable[..., Any]) -> Callable[..., Any]:
        def given(*arguments: Any, cache: bool = False, **options: Any) -> Any:
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return known(*arguments, **options)

        return given

    monkeypatch.setattr(compiled_loops, "njit", without_cache(njit))
    monkeypatch.setattr(compiled_loops, "cfunc", without_cache(cfunc))
    made = make()
    assert made.cache_folder is None
    assert made.of(DTYPE) is not None
    loops = CompiledLoops([made])
    assert loops.mark is None
    loops.compile()
    assert not loops.are_compiled()


@pytest.mark.parametrize("make", [loop, callback])
def test_a_disk_that_is_full(make: Callable[[], Compiled], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the cache stays there; the rest is compiled, and the cache is not marked as complete."""
    other = CompiledLoop(twice(1), {DTYPE: TWICE[DTYPE]}, 1)
    other.of(DTYPE)
    before = sorted(folder.rglob("*.nb?"))

    made = make()
    loops = CompiledLoops([made, other])
    with monkeypatch.context() as patch:
        patch.setattr(caching.IndexDataCacheFile, "_save_data", write_no_code)
        loops.compile()
    assert set(before) <= set(folder.rglob("*.nb?"))
    assert not loops.are_compiled()
    ready = made.of(DTYPE)
    assert (ready.ctypes if isinstance(made, CompiledCallback) else ready)(3.0) == 6.0
    CompiledLoops([make(), other]).compile()
    assert loops.are_compiled()


@pytest.mark.parametrize("make", [loop, callback])
@pytest.mark.parametrize("reset", ["damaged", "other Numba"])
def test_code_of_another_dtype_is_never_taken(
    make: Callable[[], Compiled], reset: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that begins anew, and a disk that takes the index but not the code: the files before are there still."""
    wide, narrow = TWICE
    first = make()
    assert value(first, wide) == value(first, narrow) == 6.0
    with monkeypatch.context() as patch:
        patch.setattr(caching.IndexDataCacheFile, "_save_data", write_no_code)
        if reset == "damaged":
            for path in folder.rglob("*.nbi"):
                path.write_bytes(b"")
            with pytest.warns(StreamKernelWarning, match="could not be read"):
                assert value(make(), narrow) == 6.0
        else:
            patch.setattr(numba, "__version__", "0.0.1")
            assert value(make(), narrow) == 6.0
            patch.undo()
            patch.setattr(caching.IndexDataCacheFile, "_save_data", write_no_code)
            assert value(make(), narrow) == 6.0
    again = make()
    assert value(again, narrow) == value(again, wide) == 6.0
    assert again.kept


def test_two_processes_that_write_one_index(folder: Path) -> None:
    """Each has read the index before the other wrote it, and numbers its code as the first."""
    wide, narrow = TWICE
    made = {dtype: callback() for dtype in TWICE}
    value(made[wide], wide)
    before = {path.name: path.read_bytes() for path in folder.rglob("*.nb?")}
    for path in folder.rglob("*.nb?"):
        path.unlink()
    value(made[narrow], narrow)
    (where,) = {path.parent for path in folder.rglob("*.nb?")}
    for name, content in before.items():
        if name.endswith(".nbc"):  # of the two indices the second one stays, of the files of code the first one
            (where / name).write_bytes(content)
    assert value(callback(), narrow) == 6.0


@pytest.mark.parametrize("make", [loop, callback])
def test_a_damaged_cache_on_a_full_disk(
    make: Callable[[], Compiled], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value(make())
    for path in folder.rglob("*.nbi"):
        path.write_bytes(b"")
    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", write_no_code)
    made = make()
    with pytest.warns(StreamKernelWarning, match="could not be read"):
        assert value(made) == 6.0
    assert not made.kept


@pytest.mark.parametrize("make", [loop, callback])
def test_a_damaged_cache_of_another_user(
    make: Callable[[], Compiled], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value(make())
    for path in folder.rglob("*.nbi"):
        path.write_bytes(b"")

    def refused(self: Path, **options: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "unlink", refused)
    made = make()
    with pytest.warns(StreamKernelWarning, match="could not be read"):
        assert value(made) == 6.0
    assert not made.kept


def test_an_error_of_the_code_is_not_taken_for_a_damaged_cache(folder: Path) -> None:
    def broken(x: float) -> float:
        return x + "text"  # type: ignore[operator]

    with pytest.raises(compiled_loops.NumbaError):
        CompiledLoop(broken, TWICE, VERSION).of(DTYPE)


def test_all_are_compiled_once_on_a_machine(folder: Path) -> None:
    loops = CompiledLoops([loop(), callback()])
    assert not loops.are_compiled()
    loops.compile()
    assert loops.are_compiled()
    assert len(list(folder.rglob("*.nbc"))) >= len(TWICE)
    assert list(loops.cache_folder.glob("*.compiled"))  # type: ignore[union-attr]
    assert CompiledLoops([callback(), loop()]).are_compiled()
    changed = CompiledLoops([loop(), CompiledCallback(twice(8), TWICE, 8)])
    assert not changed.are_compiled()


def test_the_mark_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CPU_NAME", None)  # whatever runs the tests may name one
    marks = {LOOPS.mark}
    for name, features in (("haswell", None), ("haswell", "+avx"), ("nehalem", None)):
        monkeypatch.setattr(config, "CPU_NAME", name)
        monkeypatch.setattr(config, "CPU_FEATURES", features)
        marks.add(LOOPS.mark)
    assert len(marks - {None}) == 4


def test_one_compiles_at_a_time(tmp_path: Path) -> None:
    inside, most = [], []

    def enter() -> None:
        with compiled_loops._alone(tmp_path / "new" / "x.lock"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.2)
            inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1, 1, 1]


def test_the_version_is_that_of_the_text(tmp_path: Path) -> None:
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in files:
        path.write_text("x = 1\n")
    first = source_version(files)
    assert first == source_version(reversed(files)) >= 0
    files[1].write_text("x = 2\n")
    assert source_version(files) != first


def test_no_loop_is_left_out() -> None:
    """All loops of the package are compiled ahead, and their keys in Numba's cache have the version of their text."""
    for module in pkgutil.walk_packages(streamkernel.__path__, "streamkernel."):
        if module.name.split(".")[1] in ("kernels", "linalg", "solvers", "selection", "reductions"):
            importlib.import_module(module.name)
    ours = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), Compiled) and each.function.__module__.startswith("streamkernel.")
    ]
    assert len(LOOPS.loops) > 15
    assert {id(each) for each in ours} <= {id(each) for each in LOOPS.loops}
    for each in LOOPS.loops:
        assert each.version in [cell.cell_contents for cell in each.function.__closure__ or ()], each.function


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_garbage_is_not_looked_for_while_a_loop_is_loaded(
    fails: bool, enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, one = [], loop()

    def load(dtype: Any, *, cache: bool) -> None:
        seen.append(gc.isenabled())
        if fails:
            raise NumbaError("no such type")

    monkeypatch.setattr(one, "_compile", load)
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(NumbaError) if fails else nullcontext():
            one.of(DTYPE)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False]


def test_a_collector_that_another_thread_turns_on_again_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of Dask turns it off for a moment; it was then off for good."""

    def off_until_now() -> bool:
        gc.enable()  # by the other thread
        return False

    one, before = loop(), gc.isenabled()
    monkeypatch.setattr(one, "_compile", lambda dtype, *, cache: None)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(compiled_loops.gc, "isenabled", off_until_now)
            one.of(DTYPE)
        assert gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(
    ("many", "frozen"), slow_but([(True, False), (False, True)], product([True, False], [True, False]))
)
def test_many_loaded_objects_count_as_old(many: bool, frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of young objects does not look through them; objects that the user has frozen stay so."""
    loaded: list[list[int]] = []
    one = loop()
    count = 30_000 if many else 10
    monkeypatch.setattr(one, "_compile", lambda dtype, *, cache: loaded.extend([1] for _ in range(count)))
    enabled, held = gc.isenabled(), gc.get_freeze_count()
    # As in a process of its own: this one has frozen what it had when the tests were found.
    gc.unfreeze()
    gc.enable()
    if frozen:
        gc.freeze()
    try:
        before = gc.get_freeze_count()
        one.of(DTYPE)
        assert abs(gc.get_freeze_count() - before) < 100  # some may have been freed
        old = gc.get_objects(generation=2)
        assert any(each is loaded[0] for each in old) == (many and not frozen)
    finally:
        (gc.freeze if held else gc.unfreeze)()
        (gc.enable if enabled else gc.disable)()
