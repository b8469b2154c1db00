"""Icechunk beside our own outputs of rows: what each promises, tried here. `pip install icechunk` first.

One output: an array G of float32, written chunk by chunk. Each promise is tried on both: a plain Zarr reader, a writer
that is killed and started again, two writers of one output, commits of several processes to one folder, a flipped bit,
an output that is replaced, equal bits. Seconds are medians of paired writes that alternate. docs/storage.md discusses
the answers.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec

from streamkernel import open_table
from streamkernel.errors import CorruptChunkError, RunLockedError
from streamkernel.store import RowSink

WIDTH, CHUNK_ROWS = 256, 4096
CHUNK_BYTES = WIDTH * CHUNK_ROWS * 4
CHECKSUM = Crc32cCodec()  # as in our own arrays; Icechunk itself adds no checksum to a chunk


def chunk(index: int) -> Any:
    return np.random.default_rng(index).standard_normal((CHUNK_ROWS, WIDTH), np.float32)


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def digest_below(folder: Path) -> str:
    """Names and contents of all files."""
    state = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        state.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return state.hexdigest()


def sink(path: Path, chunks: int, **options: Any) -> RowSink:
    return RowSink.create(
        path, chunks * CHUNK_ROWS, {"G": (WIDTH, "float32")}, CHUNK_ROWS, fingerprint="f", overwrite=True, **options
    )


def write_ours(
    path: Path, chunks: int, *, after: Callable[[int], None] = lambda index: None, resume: bool = False
) -> int:
    """Write the output; returns the number of chunks that an earlier run had finished."""
    with sink(path, chunks, resume=resume) as output:
        found, digests = len(output.finished()), {}
        for index in range(chunks):
            start = index * CHUNK_ROWS
            if not output.is_finished(start, start + CHUNK_ROWS):
                digests |= output.write("G", start, chunk(index))
            after(index)
        output.finish(digests)
    return found


def repository(path: Path) -> Any:
    import icechunk

    storage = icechunk.local_filesystem_storage(str(path))
    return icechunk.Repository.open_or_create(storage)


def array_of(session: Any, chunks: int) -> Any:
    return zarr.group(session.store).require_array(
        "G", shape=(chunks * CHUNK_ROWS, WIDTH), chunks=(CHUNK_ROWS, WIDTH), dtype="float32", compressors=CHECKSUM
    )


def write_icechunk(path: Path, chunks: int, *, after: Callable[[int], None] = lambda index: None) -> int:
    session = repository(path).writable_session("main")
    array = array_of(session, chunks)
    for index in range(chunks):
        array[index * CHUNK_ROWS : (index + 1) * CHUNK_ROWS] = chunk(index)
        after(index)
    session.commit("written")
    return 0


WRITERS = {"ours": write_ours, "icechunk": write_icechunk}


def plain_reader(path: Path) -> str:
    try:
        return f"reads {zarr.open_group(path, mode='r')['G'].shape}"
    except Exception as error:
        return f"refused: {type(error).__name__}"


def seconds(folder: Path, chunks: int, repeats: int) -> dict[str, float]:
    """Medians of paired writes; the values are generated before."""
    values = [chunk(index) for index in range(chunks)]
    taken: dict[str, list[float]] = {name: [] for name in WRITERS}
    generated = globals()["chunk"]
    globals()["chunk"] = values.__getitem__
    try:
        for repeat in range(repeats):
            for name in sorted(WRITERS, reverse=bool(repeat % 2)):
                os.sync()
                began = time.perf_counter()
                WRITERS[name](folder / f"{name}-{repeat}", chunks)
                os.sync()
                taken[name].append(time.perf_counter() - began)
    finally:
        globals()["chunk"] = generated
    return {name: statistics.median(times) for name, times in taken.items()}


def killed(name: str, path: Path, chunks: int) -> dict[str, int]:
    """kill -9 after half of the chunks; then the same command again."""
    half = subprocess.run([sys.executable, __file__, "--child", name, str(path), str(chunks)], capture_output=True)
    assert half.returncode == -signal.SIGKILL, half.stderr.decode()
    left = bytes_below(path.parent)
    again = write_ours(path, chunks, resume=True) if name == "ours" else write_icechunk(path, chunks)
    return {
        "chunks finished before the kill": chunks // 2,
        "of them reused": again,
        "bytes left by the killed": left,
        "bytes after": bytes_below(path.parent),
    }


def two_writers(name: str, path: Path, chunks: int) -> str:
    """A second writer that begins while the first is at work."""
    if name == "ours":
        with sink(path, chunks):
            try:
                sink(path, chunks).abort()
            except RunLockedError:
                return "the second is refused before it works"
            return "both write"
    import icechunk

    repo = repository(path)
    with repo.transaction("main", message="made") as store:
        zarr.group(store).require_array("G", shape=(chunks,), chunks=(1,), dtype="float32")
    first, second = repo.writable_session("main"), repo.writable_session("main")
    for session in (first, second):
        zarr.open_group(session.store)["G"][:] = 1.0
    first.commit("first")
    try:
        second.commit("second")
    except icechunk.ConflictError:
        return "the second is refused at its commit, after all its work"
    return "both commit"


def committers(path: Path, processes: int, commits: int) -> dict[str, int]:
    """Commits of several processes to one folder, each rebased until it is taken: how many are in the history."""
    repository(path)
    command = [sys.executable, __file__, "--commit", str(path), str(commits)]
    running = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for number in range(processes)
    ]
    confirmed = sum(int(process.communicate()[0].split()[-1]) for process in running)
    repo = repository(path)
    found = [snapshot.message for snapshot in repo.ancestry(branch="main")]
    return {
        "commits that were confirmed": confirmed,
        "of them in the history": len(set(found) - {"Repository initialized"}),
    }


def commit_some(path: Path, commits: int, number: int) -> None:
    import icechunk

    repo, done = repository(path), 0
    for index in range(commits):
        for _ in range(1000):
            session = repo.writable_session("main")
            zarr.group(session.store).attrs[f"{number}"] = index
            try:
                session.commit(f"{number}-{index}", rebase_with=None)
            except icechunk.ConflictError:
                continue
            done += 1
            break
    print(done)


def flipped(name: str, path: Path, chunks: int) -> str:
    """One bit of the largest file is flipped; then all rows are read."""
    WRITERS[name](path, chunks)
    file = max((one for one in path.rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    try:
        if name == "ours":
            table = open_table(path / "G")
            for block in table.blocks(0, table.n_rows, CHUNK_ROWS):
                np.asarray(block.X)
        else:
            zarr.open_group(repository(path).readonly_session("main").store, mode="r")["G"][:]
    except CorruptChunkError:
        return "refused, with the chunk's name"
    except Exception as error:
        return f"refused: {type(error).__name__}"
    return "read as if nothing had happened"


def replaced(name: str, path: Path, chunks: int) -> float:
    """Bytes on the disk after the output was written three times, in outputs."""
    for _ in range(3):
        WRITERS[name](path, chunks)
    return bytes_below(path) / (chunks * CHUNK_BYTES)


def equal_bits(name: str, folder: Path, chunks: int) -> bool:
    paths = [folder / f"bits-{name}-{turn}" / "out" for turn in range(2)]
    for path in paths:
        path.parent.mkdir()
        WRITERS[name](path, chunks)
    return digest_below(paths[0]) == digest_below(paths[1])


def distribution_bytes(package: str) -> int:
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    return bytes_below(Path(found.origin).parent)


def main() -> int:
    os.environ.setdefault("ICECHUNK_LOG", "error")  # its warning about folders, for each repository that is opened
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions: does it run")
    parser.add_argument("--chunks", type=int, help="chunks of 4 MiB of the timed output; 64, or 4 with --quick")
    parser.add_argument("--repeats", type=int, help="5, or 1 with --quick")
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--commit", nargs=3)
    given = parser.parse_args()
    chunks = given.chunks or (4 if given.quick else 64)
    repeats = given.repeats or (1 if given.quick else 5)
    if importlib.util.find_spec("icechunk") is None:
        print("skipped: icechunk is not installed (pip install icechunk)")
        return 0
    if given.child:
        name, path, written = given.child[0], Path(given.child[1]), int(given.child[2])
        half = written // 2 - 1
        WRITERS[name](
            path, written, after=lambda index: os.kill(os.getpid(), signal.SIGKILL) if index == half else None
        )
    if given.commit:
        commit_some(Path(given.commit[0]), int(given.commit[1]), int(given.commit[2]))
        return 0
    answers: dict[str, Any] = {"versions": {"icechunk": version("icechunk"), "zarr": version("zarr")}}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in WRITERS:
            for part in ("plain", "killed", "two", "bit", "thrice"):
                (folder / name / part).mkdir(parents=True)
            WRITERS[name](folder / name / "plain" / "out", 4)
            answers[name] = {
                "plain zarr": plain_reader(folder / name / "plain" / "out"),
                "killed": killed(name, folder / name / "killed" / "out", 16),
                "two writers": two_writers(name, folder / name / "two" / "out", 4),
                "a flipped bit": flipped(name, folder / name / "bit" / "out", 4),
                "bytes after three writes, in outputs": replaced(name, folder / name / "thrice" / "out", 8),
                "two equal outputs have equal files": equal_bits(name, folder, 4),
            }
        answers["commits of 4 processes to one folder"] = committers(folder / "commits", 4, 25)
        answers["seconds to write"] = {
            "MiB": chunks * CHUNK_BYTES >> 20,
            **seconds(folder, chunks, repeats),
        }
        answers["installed MiB of icechunk"] = distribution_bytes("icechunk") >> 20
    print(json.dumps(answers, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
