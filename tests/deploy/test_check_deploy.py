"""scripts/check finds what is wrong in deploy/: each of its checks is shown a mistake of its kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import _check_deploy
import pytest
from clusters import ROOT


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to be spoilt."""
    copy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", copy)
    monkeypatch.setattr(_check_deploy, "DEPLOY", copy)
    return copy


MISTAKES = {
    "compose: a key": ("compose.yaml", "compose.yaml", "  init: true", "  initt: true"),
    "compose: an option of ours": ("compose.yaml", "compose.yaml", "--token-file=", "--tokenfile="),
    "compose: an option of Dask": ("compose.yaml", "compose.yaml", "--nthreads=", "--threads="),
    "compose: Dask's port published": ("compose.yaml", "compose.yaml", ":8000:8000", ":8786:8786"),
    "compose: a variable that is not told": ("compose.yaml", "compose.yaml", "${PUBLISH", "${PUBLISHED"),
    "Dockerfile: a file that is ignored": ("Dockerfile", "Dockerfile.dockerignore", "!deploy/dask.yaml\n", ""),
    "Dockerfile: an extra": ("Dockerfile", "Dockerfile", "[objects,report,service]", "[objects,services]"),
    "Dockerfile: what hadolint says": ("Dockerfile", "Dockerfile", "WORKDIR /build", "WORKDIR build"),
    "k8s: a field of a pod": ("k8s", "k8s/service.yaml", "readinessProbe:", "readynessProbe:"),
    "k8s: a field of a worker's pod": ("k8s", "k8s/cluster.yaml", "livenessProbe:", "lifenessProbe:"),
    "k8s: a field of a cluster": ("k8s", "k8s/job.yaml", "        replicas: 2", "        replica: 2"),
    "k8s: a type": ("k8s", "k8s/cluster.yaml", "    replicas: 2", "    replicas: two"),
    "k8s: an option of ours": ("k8s", "k8s/job.yaml", "--basis=1000", "--bases=1000"),
    "k8s: an option of Dask": ("k8s", "k8s/cluster.yaml", "--memory-limit=", "--memory="),
    "systemd: a directive": ("systemd", "systemd/streamkernel-service.service", "RestartSec=", "RestartSecs="),
    "systemd: no hardening": ("systemd", "systemd/streamkernel-worker@.service", "NoNewPrivileges=yes", ""),
    "systemd: an option of ours": ("systemd", "systemd/streamkernel-service.service", "--token-file", "--tokens"),
    "slurm: a lifetime": ("slurm", "slurm/jobqueue.yaml", "- 50m", "- 58m"),
    "slurm: an option of Dask": ("slurm", "slurm/jobqueue.yaml", "- --lifetime-stagger", "- --stagger"),
    "slurm: shell": ("slurm", "slurm/jobqueue.yaml", 'NUMBA_CACHE_DIR="${TMPDIR', "NUMBA_CACHE_DIR='${TMPDIR"),
    "shell": ("shell scripts", "slurm/fit.sbatch", '--resume "$@"', "--resume $@"),
    "shell: syntax": ("shell scripts", "tls.sh", "esac\n", "\n"),
    "a command in a script": ("commands", "slurm/fit.sbatch", "streamkernel info", "streamkernel i"),
}  # fmt: skip


# The first mistake of each check is found in the quick tests.
FIRST = {check: mistake for mistake, (check, *_) in reversed(MISTAKES.items())}


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(each, marks=[] if each in FIRST.values() else pytest.mark.slow) for each in MISTAKES],
)
def test_mistakes_are_found(mistake: str, deploy: Path) -> None:
    check, name, right, wrong = MISTAKES[mistake]
    if check == "systemd" and shutil.which("systemd-analyze") is None and "option" not in mistake:
        pytest.skip("systemd-analyze is not on this machine")
    text = (deploy / name).read_text()
    assert right in text
    (deploy / name).write_text(text.replace(right, wrong))
    assert list(_check_deploy.CHECKS[check]())


def test_no_secret_lies_in_the_examples() -> None:
    for path in _check_deploy.sources(ROOT / "deploy"):
        assert "PRIVATE KEY" not in path.read_text(), path
        assert "BEGIN CERTIFICATE" not in path.read_text(), path
