"""Peak memory of ingest, measured in processes of their own: bounded, whatever the size of the source."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from streamkernel.errors import IncompleteStoreError
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest

CODE = """
import json, sys
from streamkernel.engine.peak_memory import peak_resident_bytes  # not ru_maxrss, which begins with the parent's size
from streamkernel.table.ingest import ingest
source, store, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
before = peak_resident_bytes()
info = ingest(source, store, **options)
print(json.dumps({"rows": info.rows, "seconds": info.seconds, "before": before / 2**20,
                  "peak": peak_resident_bytes() / 2**20}))
"""


def measured(source, store, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE, str(source), str(store), json.dumps(options)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_csv(path, megabytes):
    """A CSV of about this size: one block of 20 random columns, repeated."""
    values = np.random.default_rng(0).standard_normal((20_000, 20))
    rows = "\n".join(",".join(f"{value:.6f}" for value in row) for row in values).encode() + b"\n"
    with open(path, "wb") as handle:
        handle.write((",".join(f"c{index}" for index in range(20)) + "\n").encode())
        handle.writelines([rows] * max(1, megabytes * 10**6 // len(rows)))


@pytest.mark.parametrize("shuffle", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_csv_of_120_megabytes(tmp_path, shuffle):
    write_csv(tmp_path / "s.csv", 120)
    found = measured(tmp_path / "s.csv", tmp_path / "store", target="c19", shuffle=shuffle)
    assert found["rows"] > 600_000
    # 80 MB are taken by what is at work. With 120 MB of text, or 100 MB of float64, they would be more than this.
    assert found["peak"] - found["before"] < 165, found


@pytest.mark.parametrize("kind", [pytest.param(each, marks=pytest.mark.slow) for each in ("npy", "npz")])
def test_arrays_larger_than_the_memory_used(tmp_path, kind):
    values = np.random.default_rng(0).integers(0, 100, (1_500_000, 25)).astype(np.float64)  # 300 MB
    if kind == "npy":
        np.save(tmp_path / "s.npy", values)
    else:
        np.savez(tmp_path / "s.npz", X=values)
    del values
    found = measured(tmp_path / f"s.{kind}", tmp_path / "store")
    assert found["rows"] == 1_500_000
    assert found["peak"] - found["before"] < 150, found


@pytest.mark.slow
def test_csv_of_2_gigabytes_within_1_gigabyte(tmp_path):
    write_csv(tmp_path / "s.csv", 2000)
    assert (tmp_path / "s.csv").stat().st_size > 1.9e9
    found = measured(tmp_path / "s.csv", tmp_path / "store", target="c19", shuffle=True)
    assert found["peak"] < 1000, found


KILLED = """
import os, signal, sys
from streamkernel.table.ingest import ingest
def watch(done, total, unit):
    if done > 0.5 * total:
        os.kill(os.getpid(), signal.SIGKILL)
ingest(sys.argv[1], sys.argv[2], progress=watch)
"""


def test_a_killed_writer_leaves_no_table(forks, tmp_path):
    write_csv(tmp_path / "s.csv", 15)
    assert forks.run(KILLED, tmp_path / "s.csv", tmp_path / "store").returncode == -9
    assert not (tmp_path / "store").exists()
    (left,) = tmp_path.glob(".store.*.partial")
    with pytest.raises(IncompleteStoreError):
        open_table(left)
    ingest(tmp_path / "s.csv", tmp_path / "store")  # what was left is in nobody's way
    assert open_table(tmp_path / "store").n_rows % 20_000 == 0
