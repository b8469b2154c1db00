"""The image's steps without a container engine: what the Dockerfile copies and runs makes an environment that works.

Each RUN of the build stage is run as it is written, with other folders for /build, /wheels and /opt/streamkernel; what
the image then starts is started from there with the ENV of the last stage. Not held here: the base image, the user and
the folders of the last RUN, the health check's interval.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_INDEX = ("Could not fetch URL", "No matching distribution", "Connection", "Temporary failure")


def instructions() -> list[tuple[str, str]]:
    """(word, rest) of each instruction, its lines joined, comments left out."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines()) if word]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        elif found:
            found[-1].append((word, rest))
    return found


def moved(text: str, folder: Path) -> str:
    """A command with the image's folders below another."""
    return re.sub(r"(?<![\w.])/(build|wheels|opt/streamkernel|cache)\b", rf"{folder}/\1", text)


def test_the_stages_are_those_that_are_followed_here() -> None:
    build, last = stages()
    assert [word for word, _ in build] == ["WORKDIR", "ENV", "COPY", "COPY", "RUN", "RUN"]
    copied = [rest for word, rest in last if word == "COPY"]
    assert copied[0] == "--from=build /opt/streamkernel /opt/streamkernel"
    assert all((ROOT / rest.split()[0]).is_file() for rest in copied[1:])


# An environment is installed from the package index: a minute or more.
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_the_image_builds_starts(tmp_path: Path) -> None:
    build, last = stages()
    work = tmp_path / "build"
    work.mkdir()
    # python and pip of the base image.
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", base], check=True)
    environment = {
        "PATH": f"{base / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        **{
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "SSL_")) or "proxy" in name.lower()
        },
    }
    for word, rest in build:
        if word == "ENV":
            environment |= dict(part.split("=", 1) for part in rest.split())
        elif word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                into = work / target / Path(source).name if target.endswith("./") else work / target
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, into)
        elif word == "RUN":
            command = ["sh", "-c", moved(rest, tmp_path)]
            done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
            if done.returncode and any(sign in done.stderr for sign in NO_INDEX):
                pytest.skip("the package index does not answer")
            assert done.returncode == 0, done.stderr[-2000:]
    given = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    for rest in (rest for word, rest in last if word == "ENV"):
        parts = dict(part.split("=", 1) for part in moved(rest, tmp_path).split())
        given |= {name: value.replace("$PATH", given["PATH"]) for name, value in parts.items()}
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "cache").mkdir()

    def started(*command: str) -> str:
        done = subprocess.run(command, cwd=data, env=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    python = str(tmp_path / "opt" / "streamkernel" / "bin" / "python")
    program = str(tmp_path / "opt" / "streamkernel" / "bin" / "streamkernel")
    # The CMD, and what compose.yaml and k8s/ start.
    assert "fit" in started(program, "--help")
    table = "synthetic://friedman?rows=500&features=5"
    assert "model" in started(program, "fit", table, "model", "--basis", "10", "--workers", "1", "--quiet")
    started(program, "report", "model", "model.html")
    assert "models" in started(program, "serve", "--help").lower()
    for name in ("scheduler", "worker"):
        assert "Usage" in started(python, "-m", "distributed.cli.dask_" + name, "--help")
    started(python, "-c", "import streamkernel.engine.cluster, streamkernel.jobs._driver, obstore, fsspec")
    # Kernels were compiled into the cache that a restart finds, and no pip is left.
    assert any((tmp_path / "cache" / "numba").rglob("*.nbi"))
    assert subprocess.run([python, "-m", "pip"], capture_output=True, check=False).returncode != 0
