"""The default memory limit: the least of the machine's, the cgroups', the SLURM job's and ulimit's, and whose it is."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data_sets
import pytest
from problems import zarr_of_chunks

from streamkernel.cli import main
from streamkernel.engine import limits, limits_here
from streamkernel.engine._allowed_memory import MACHINE, Allowed, allowed_memory, allowed_to_each
from streamkernel.engine.cluster import ClusterExecutor

MIB = 1 << 20
V2 = "29 23 0:26 {root} {mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "32 31 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu\n33 32 0:29 {root} {mount} rw - cgroup cgroup rw,memory\n"


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEM_PER_NODE", "MEM_PER_CPU", "MEM_PER_GPU", "CPUS_ON_NODE", "JOB_CPUS_PER_NODE", "CPUS_PER_TASK"):
        monkeypatch.delenv(f"SLURM_{name}", raising=False)


def machine(root: Path, groups: str, mounts: str, limits: dict[str, str]) -> Allowed:
    """What is allowed where /proc and the cgroups below `root` say so."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    (root / "proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\nnonsense\n" + mounts)
    for path, text in limits.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return allowed_memory(root)


@pytest.mark.parametrize(
    ("groups", "mounts", "limits", "expected", "of"),
    [
        ("0::/a/b\n", V2.format(root="/", mount="/cg"), {"cg/a/b/memory.max": "500000000\n"}, 5e8, "cg/a/b"),
        (
            "0::/a/b/c\n",
            V2.format(root="/", mount="/cg"),
            {"cg/a/memory.max": "400000000", "cg/a/b/memory.max": "max", "cg/a/b/c/memory.max": "500000000"},
            4e8,
            "cg/a",
        ),
        ("0::/\n", V2.format(root="/", mount="/cg"), {"cg/memory.max": "300000000"}, 3e8, "cg"),
        # A container that sees its own group only, under the path that the host calls it by.
        ("0::/docker/x\n", V2.format(root="/docker/x", mount="/cg"), {"cg/memory.max": "200000000"}, 2e8, "cg"),
        ("0::/../other\n", V2.format(root="/", mount="/cg"), {"cg/memory.max": "200000000"}, 2e8, "cg"),
        (
            "5:cpu:/x\n4:memory:/job/step\n0::/\n",
            V1.format(root="/", mount="/cg/memory"),
            {
                "cg/memory/memory.limit_in_bytes": "9223372036854771712",
                "cg/memory/job/memory.limit_in_bytes": "700000000",
                "cg/memory/job/step/memory.limit_in_bytes": "9223372036854771712",
            },
            7e8,
            "cg/memory/job",
        ),
    ],
    ids=["v2", "v2 parent", "v2 root", "v2 container", "v2 outside", "v1 parent"],
)
def test_cgroups(tmp_path: Path, groups: str, mounts: str, limits: dict[str, str], expected: float, of: str) -> None:
    assert machine(tmp_path, groups, mounts, limits) == Allowed(int(expected), f"the cgroup {tmp_path / of}")


@pytest.mark.parametrize("text", ["max", "", "many", "-5", "9223372036854771712"])
def test_a_group_without_a_limit(tmp_path: Path, text: str) -> None:
    found = machine(tmp_path, "0::/a\n", V2.format(root="/", mount="/cg"), {"cg/a/memory.max": text})
    assert found.by == MACHINE


@pytest.mark.parametrize(
    ("job", "mib", "by"),
    [
        ({"MEM_PER_NODE": "300"}, 300, "MEM_PER_NODE"),
        ({"MEM_PER_CPU": "100", "CPUS_ON_NODE": "4"}, 400, "MEM_PER_CPU"),
        ({"MEM_PER_CPU": "100", "JOB_CPUS_PER_NODE": "8(x3),2"}, 200, "MEM_PER_CPU"),
        ({"MEM_PER_CPU": "100", "CPUS_PER_TASK": "3"}, 300, "MEM_PER_CPU"),
        ({"MEM_PER_NODE": "0"}, None, ""),
        ({"MEM_PER_CPU": "100"}, None, ""),
        ({"MEM_PER_NODE": "8G"}, None, ""),
    ],
)
def test_a_job_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: dict[str, str], mib: int | None, by: str
) -> None:
    for name, value in job.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    found = allowed_memory(tmp_path)
    assert found == Allowed(mib * MIB, f"the SLURM job (SLURM_{by})") if mib else found.by == MACHINE


def test_plan_and_refusal_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line, with less memory than the machine has; `ulimit` is of a shell."""
    data = data_sets.friedman(500, 5)
    rows = zarr_of_chunks(tmp_path / "rows.zarr", data.X, data.y, 100)
    plan = ["plan", rows, "--json", "--scheduler", "threads", "--basis"]
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "700")
    assert main([*plan, "10"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory_limit_bytes"] == 700 * MIB
    assert found["memory_limit_of"] == "the SLURM job (SLURM_MEM_PER_NODE)"
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "400")
    assert main([*plan, "500"]) == 1
    assert "allowed memory (419 MB, of the SLURM job (SLURM_MEM_PER_NODE))" in capsys.readouterr().err
    monkeypatch.delenv("SLURM_MEM_PER_NODE")
    command = f"ulimit -v 4000000; exec {sys.executable} -m streamkernel {' '.join(plan)} 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["memory_limit_of"] == "ulimit -v"


def test_what_was_asked_for_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "allowed_memory", lambda: Allowed(5, "the job"))
    assert limits_here(None, workers=True).by == {"total": "the job"}
    assert limits_here(None, workers=True, remote=True).by == {"driver": "the job"}
    assert limits_here(None, workers=True, remote=True).driver == 5
    assert limits_here(7, workers=True) == limits.MemoryLimits(total=7)
    assert limits_here(7, workers=True).by == {}


def test_a_limit_of_each_process_is_not_one_of_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "allowed_memory", lambda: Allowed(9, MACHINE))
    monkeypatch.setattr(limits, "allowed_to_each", lambda: Allowed(5, "ulimit -v"))
    here = limits_here(None, workers=True)
    assert (here, here.by) == (limits.MemoryLimits(9, 5, 5), {"driver": "ulimit -v", "worker": "ulimit -v"})
    here = limits_here(None, workers=True, worker=4)
    assert (here, here.by) == (limits.MemoryLimits(9, 5, 4), {"driver": "ulimit -v"})
    alone = limits_here(None, workers=False)
    assert (alone, alone.by) == (limits.MemoryLimits(total=5), {"total": "ulimit -v"})
    remote = limits_here(None, workers=True, remote=True, worker=8)
    assert (remote, remote.by) == (limits.MemoryLimits(driver=5, worker=8), {"driver": "ulimit -v"})


def test_ulimit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = {resource.RLIMIT_AS: 7, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft[kind], resource.RLIM_INFINITY))
    assert allowed_to_each() == Allowed(7, "ulimit -v")
    soft[resource.RLIMIT_DATA] = 3
    assert allowed_to_each() == Allowed(3, "ulimit -d")
    soft.update(dict.fromkeys(soft, resource.RLIM_INFINITY))
    assert allowed_to_each() is None


class Workers:
    """A client of three workers, two of which share what their job has on a node."""

    scheduler = None
    each: Allowed | None = None

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys("abc", 1)

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, dict[str, int]]]:
        return {"workers": {name: {"memory_limit": 900} for name in "abc"}}

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        same = {"packages": {"python": "3.11.7.final.0", "streamkernel": "0.1.0"}}
        return {"client": same, "scheduler": same, "workers": dict.fromkeys("abc", same)}

    def run_on_scheduler(self, function: Callable[[], Any]) -> Any:
        return function()

    def run(self, function: Callable[[], Any], on_error: str) -> dict[str, Any]:
        if on_error == "return":  # the question for the build, of which all have the same
            return dict.fromkeys("abc", function())
        job = ("n1", Allowed(800, "job"))
        return {"a": (*job, self.each), "b": (*job, self.each), "c": ("n2", Allowed(500, MACHINE), None)}


def test_workers_have_what_was_granted_to_them() -> None:
    workers = Workers()
    executor = ClusterExecutor(workers)  # type: ignore[arg-type]  # what of a client is asked
    assert executor.worker_limit() == 400
    workers.each = Allowed(450, "ulimit -v")
    assert executor.worker_limit() == 400
    workers.each = Allowed(300, "ulimit -v")
    assert executor.worker_limit() == 300, "each has it for itself, and no share of it"
