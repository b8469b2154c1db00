"""kill -9, full disks, two writers at once: nothing half-written is ever readable, and nothing former is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import zarr
from forks import Forks

from streamkernel import errors
from streamkernel.store import Bundle, Checkpoints, RowSink, plain, read_bundle, write_bundle

ROOT = Path(__file__).resolve().parents[2]


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run `script` in another Python; it prints a line when it is where the test wants it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline().strip()
    assert text, process.communicate()[1]
    return text


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


# Writes a bundle and stops for good after the N-th chunk or at the manifest: as far as a kill -9 may let it come.
WRITER = """
    import sys, time
    from pathlib import Path
    import numpy as np
    import streamkernel.store._arrays as arrays
    import streamkernel.outputs.partial as partial
    from streamkernel.blobs import LocalBlobs
    from streamkernel.store import Bundle, write_bundle
    path, stage, overwrite = sys.argv[1], sys.argv[2], sys.argv[3] == "True"

    def stop(*_, **__):
        print("there", flush=True)
        time.sleep(60)

    if stage == "chunk":
        grid = arrays.chunk_grid
        def slow(*arguments):
            for i, item in enumerate(grid(*arguments)):
                if i == 3: stop()
                yield item
        arrays.chunk_grid = slow
        arrays.MAX_CHUNK_BYTES = 1000
    elif stage == "manifest":
        LocalBlobs.write = stop
    else:
        partial.publish = stop
    write_bundle(path, Bundle("model", 1, {"generation": 2}, {"v": np.arange(2000.0)}), overwrite=overwrite)
"""


@pytest.mark.parametrize("stage", ["chunk", "manifest", "publish"])
def test_killed_writer_leaves_nothing_readable(tmp_path: Path, stage: str) -> None:
    path = tmp_path / "model"
    process = start(WRITER, path, stage, False)
    assert line(process) == "there"
    kill(process)
    with pytest.raises(errors.StoreNotFoundError):
        read_bundle(path, "model")
    assert [name.endswith(".partial") for name in os.listdir(tmp_path)] == [True]
    # The next writer clears away what the dead one left.
    write_bundle(path, Bundle("model", 1))
    assert os.listdir(tmp_path) == ["model"]


def test_killed_overwriter_leaves_the_former_generation(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write_bundle(path, Bundle("model", 1, {"generation": 1}))
    process = start(WRITER, path, "publish", True)
    assert line(process) == "there"
    kill(process)
    assert read_bundle(path, "model").config == {"generation": 1}
    write_bundle(path, Bundle("model", 1, {"generation": 3}), overwrite=True)
    assert read_bundle(path, "model").config == {"generation": 3}
    assert os.listdir(tmp_path) == ["model"]


def test_partial_of_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    sink = RowSink.create(tmp_path / "out", 4, {"a": (None, "f8")}, 2)
    with RowSink.create(tmp_path / "out", 4, {"a": (None, "f8")}, 2):
        assert sink.folder.is_dir()
    digests = sink.write("a", 0, np.ones(4))
    sink.finish(digests)
    assert zarr.open_group(tmp_path / "out", mode="r")["a"][:].tolist() == [1.0] * 4


REPEATED_WRITER = """
    import sys
    import numpy as np
    from streamkernel.store import Bundle, write_bundle
    path, writer = sys.argv[1], int(sys.argv[2])
    print("there", flush=True)
    for i in range(25):
        write_bundle(path, Bundle("model", 1, {"writer": writer, "i": i}, {"v": np.full(500, 100.0 * writer + i)}),
                     overwrite=True)
"""


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write_bundle(path, Bundle("model", 1, {"writer": 0, "i": 0}, {"v": np.zeros(500)}))
    processes = [start(REPEATED_WRITER, path, writer) for writer in (1, 2)]
    reads = 0
    while any(process.poll() is None for process in processes):
        bundle = read_bundle(path, "model")
        assert set(bundle.arrays["v"]) == {100.0 * bundle.config["writer"] + bundle.config["i"]}
        reads += 1
    for process in processes:
        _, complaint = process.communicate()
        assert process.returncode == 0, complaint
    assert reads > 0
    assert read_bundle(path, "model").config["i"] == 24
    assert os.listdir(tmp_path) == ["model"]


# A limit on the size of a file stands for a full disk: the write in the middle of the work fails.
FULL_DISK = """
    import resource, signal, sys
    import numpy as np
    from streamkernel import errors
    from streamkernel.store import Bundle, Checkpoints, RowSink, write_bundle
    what, path = sys.argv[1], sys.argv[2]
    if what == "checkpoint":
        checkpoints = Checkpoints(path, {})
        checkpoints.save(0, "look", {"v": np.zeros(10)})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    try:
        if what == "bundle":
            write_bundle(path, Bundle("model", 1, {}, {"small": np.ones(10), "v": np.ones(100000)}), overwrite=True)
        elif what == "checkpoint":
            checkpoints.save(1, "look", {"v": np.ones(100000)})
        else:
            with RowSink.create(path, 20000, {"a": (None, "f8")}, 10000, overwrite=True) as sink:
                sink.write("a", 0, np.ones(20000))
    except errors.StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("what", ["bundle", "checkpoint", "rows"])
def test_full_disk_keeps_the_former_generation(forks: Forks, tmp_path: Path, what: str) -> None:
    path = tmp_path / "out"
    if what == "bundle":
        write_bundle(path, Bundle("model", 1, {"generation": 1}))
    elif what == "rows":
        sink = RowSink.create(path, 1, {"a": (None, "f8")}, 1)
        sink.finish(sink.write("a", 0, [3.0]))
    done = forks.run(textwrap.dedent(FULL_DISK), what, path)
    assert "no space left while writing" in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1
    assert os.listdir(tmp_path) == ["out"]
    if what == "bundle":
        assert read_bundle(path, "model").config == {"generation": 1}
    elif what == "rows":
        assert zarr.open_group(path, mode="r")["a"][:].tolist() == [3.0]
    else:
        with Checkpoints(path, {}) as checkpoints:
            assert checkpoints.steps() == [(0, "look")]
            assert checkpoints.load(0, "look") is not None


DRIVER = """
    import os, sys, time
    import numpy as np
    from streamkernel.store import Checkpoints
    checkpoints = Checkpoints(sys.argv[1], {"seed": 1})
    checkpoints.save(0, "look", {"v": np.arange(3.0)})
    if sys.argv[2] == "fork" and os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    print("there", flush=True)
    time.sleep(60)
"""


def test_second_driver_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    process = start(DRIVER, tmp_path / "run", "alone")
    assert line(process) == "there"
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    with pytest.raises(errors.RunLockedError, match=f"process {process.pid}"):
        Checkpoints(tmp_path / "run", {"seed": 1})
    with pytest.raises(errors.RunLockedError):
        Checkpoints(tmp_path / "run", {"seed": 2}, fresh=True)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    kill(process)
    with Checkpoints(tmp_path / "run", {"seed": 1}) as checkpoints:
        assert checkpoints.load(0, "look")["v"].tolist() == [0.0, 1.0, 2.0]


def test_lock_does_not_live_on_in_forked_children(tmp_path: Path) -> None:
    process = start(DRIVER, tmp_path / "run", "fork")
    assert line(process) == "there"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    try:
        process.kill()
        process.wait()
        deadline = time.monotonic() + 5
        while True:
            try:
                Checkpoints(tmp_path / "run", {"seed": 1}).close()
                break
            except errors.RunLockedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        os.kill(int(children[0]), signal.SIGKILL)
        process.communicate()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(errors.StoreAccessError, match="no permission"):
            write_bundle(tmp_path / "model", Bundle("model", 1))
    finally:
        tmp_path.chmod(0o700)


def test_permission_errors_have_their_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(tmp_path / "model", Bundle("model", 1))

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(plain, "read_file", denied)
    with pytest.raises(errors.StoreAccessError, match="no permission"):
        read_bundle(tmp_path / "model", "model")
