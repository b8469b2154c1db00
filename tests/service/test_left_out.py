"""What else lies in the folder of models: it takes none of them away, costs little, and what is left out is told."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from service.live import Live, served

from streamkernel.blobs import blobs_at
from streamkernel.errors import ModelFormatError
from streamkernel.service import Settings
from streamkernel.service.model_registry import Registry
from streamkernel.service.model_sources import FolderSource
from streamkernel.store import bundle, bundle_kind, read_bundle

READY = {"ridge", "two", "labels", "gp", "gp-classifier"}


def ready(registry: Registry) -> set[str]:
    return {name for name, entry in registry.entries.items() if entry.served is not None}


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        # The path of a socket has a hundred characters at most.
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


def sparse_config(path: Path) -> None:
    path.mkdir()
    with open(path / "config.json", "wb") as file:
        file.write(b'{"architectures": ["of somebody else"], ')
        file.truncate(3 << 30)


def linked_config(path: Path) -> None:
    path.mkdir()
    os.symlink("/dev/zero", path / "config.json")


def piped_config(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "config.json")


def piped_inside(path: Path) -> None:
    shutil.copytree(path.parent / "gp", path)
    (path / "zarr.json").unlink()
    os.mkfifo(path / "zarr.json")


def nested_config(path: Path) -> None:
    path.mkdir()
    (path / "config.json").write_text("[" * 60_000)


STRANGE: dict[str, Callable[[Path], Any]] = {
    "a link to itself": lambda path: os.symlink(path.name, path),
    "a link to nothing": lambda path: os.symlink("nothing", path),
    "a circle of two": lambda path: (os.symlink(f"{path.name}2", path), os.symlink(path.name, f"{path}2")),
    "a link to a long name": lambda path: os.symlink("x" * 300, path),
    "a pipe": os.mkfifo,
    "a socket": bound,
    "a link to a device": lambda path: os.symlink("/dev/zero", path),
    "a configuration of 3 GiB": sparse_config,
    "a configuration that is a device": linked_config,
    "a configuration that is a pipe": piped_config,
    "a model with a pipe in it": piped_inside,
    "a configuration that is nested": nested_config,
    "a configuration that is a folder": lambda path: (path / "config.json").mkdir(parents=True),
    "an empty folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize(
    "strange", [pytest.param([*STRANGE], id="all"), *(pytest.param([one], marks=pytest.mark.slow) for one in STRANGE)]
)
def test_what_is_strange_takes_no_model_away(models: Path, strange: list[str]) -> None:
    running = Registry(models)
    running.scan()
    for i, one in enumerate(strange):
        STRANGE[one](models / f"strange-{i}")
    fresh = Registry(models)
    before, began = psutil.Process().memory_info().rss, time.monotonic()
    for registry in (running, fresh):
        for _ in range(3):
            registry.scan()
        assert ready(registry) == READY
        assert registry.stale is None
    assert time.monotonic() - began < 10
    assert psutil.Process().memory_info().rss - before < 100e6


def test_a_foreign_configuration_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vocabulary": {f"word {i}": i for i in range(100_000)}}))
    before = psutil.Process().memory_info().rss
    assert bundle_kind(tmp_path) is None
    with pytest.raises(ModelFormatError, match="another format"):
        read_bundle(tmp_path, "model")
    assert psutil.Process().memory_info().rss - before < 10e6


def test_a_long_configuration_of_ours_is_known(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "ridge", tmp_path / "long")
    config = json.loads((tmp_path / "long" / "config.json").read_text())
    config["config"]["notes"] = "x" * 100_000
    for indent in (None, 1):
        (tmp_path / "long" / "config.json").write_text(json.dumps(config, indent=indent))
        assert bundle_kind(tmp_path / "long") == bundle_kind(saved / "ridge") is not None


NAMES = [
    "my model", "it's", 'a "model"', "50%", "50%25", "m\u00fcller", "\u6a21\u578b", "x" * 201, "y" * 255, "new\nline",
    "bell\x07", "a\x1b[31mb", "back\\slash", "semi;colon", "~", "a+b", "#", "?", "a:b", "s3:", "-rf me", "\u202eabc",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cannot_be_served_is_told(
    saved: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    models = tmp_path / "models"
    for each in ("ridge", name):
        shutil.copytree(saved / "ridge", models / each)
    with caplog.at_level(logging.WARNING, "streamkernel.service"):
        place = FolderSource(models)
        registry = Registry(models)
        for _ in range(3):
            registry.scan()
    assert name in place.left_out or name not in place.candidates()
    (told, why), *more = registry.left_out.items()
    assert more == []
    assert "rename it" in why
    assert told.isprintable()
    lines = [record.message for record in caplog.records if "not served" in record.message]
    assert len(lines) == 1
    assert told in lines[0]
    assert lines[0].isprintable()
    assert ready(registry) == {"ridge"}


def test_names_that_are_no_text(models: Path) -> None:
    name = os.fsdecode(b"caf\xe9 model")
    shutil.copytree(models / "ridge", models / name)
    registry = Registry(models)
    registry.scan()
    (told, _) = next(iter(registry.left_out.items()))
    assert told.encode("utf-8").startswith(b"caf")


def test_it_is_told_over_http(models: Path, live: Any) -> None:
    shutil.rmtree(models / "features")
    shutil.copytree(models / "ridge", models / "my model")
    os.symlink("loop", models / "loop")
    os.symlink("/", models / "outside")
    token = "correct-horse-battery"
    open_, closed = live(Settings(models)), live(Settings(models, token=token))
    expected = {"my model": "rename it", "loop": "circle", "outside": "out of the folder"}
    for running, headers in ((open_, {}), (closed, {"authorization": f"Bearer {token}"})):
        with httpx.Client(base_url=running.url, trust_env=False, headers=headers) as client:
            for path in ("/healthz", "/v1/models"):
                told = {each["name"]: each["why"] for each in client.get(path).json()["left_out"]}
                assert told.keys() == expected.keys()
                assert all(words in told[name] for name, words in expected.items())
    # Who may not see the models hears no names.
    with httpx.Client(base_url=closed.url, trust_env=False) as client:
        told = client.get("/healthz").json()
        assert told["status"] == "ok"
        assert [each["name"] for each in told["left_out"]] == [None] * 3
    shutil.rmtree(models / "my model")
    until = time.monotonic() + 10
    while "my model" in httpx.get(f"{open_.url}/healthz", trust_env=False).text:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_folder_that_may_not_be_read(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as a user who may read everything."""
    registry = Registry(models)
    real = os.stat

    def refusing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("/two"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refusing)
    registry.scan()
    assert ready(registry) == READY - {"two"}
    assert registry.stale is None


def test_whatever_one_folder_holds_the_others_are_served(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(models)
    real = registry.place.load

    def failing(seen: Any, name: str, number: int) -> Any:
        if name == "labels":
            raise MemoryError
        return real(seen, name, number)

    monkeypatch.setattr(registry.place, "load", failing)
    registry.scan()
    assert ready(registry) == READY - {"labels"}
    assert registry.entries["labels"].error == ("MemoryError", "it cannot be read")


def test_at_a_url(s3: str, estimators: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    estimators["ridge"].save(f"{s3}/models/ridge")
    blobs = blobs_at(f"{s3}/models")
    blobs.write("my model/config.json", b"{}")
    blobs.write("foreign/config.json", b'{"a": "' + b"x" * 200_000 + b'"}')
    blobs.write("foreign/weights", np.zeros(1000).tobytes())
    blobs.write("empty/config.json", b"")
    registry = Registry(f"{s3}/models")
    fetched: list[str] = []
    plain = bundle.fetched
    monkeypatch.setattr(bundle, "fetched", lambda url, most: (fetched.append(url), plain(url, most))[1])
    registry.scan()
    assert ready(registry) == {"ridge"}
    # Weights that are somebody else's may be of any size.
    assert f"{s3}/models/ridge" in fetched
    assert f"{s3}/models/foreign" not in fetched
    assert registry.left_out.keys() == {"my model"}
    assert registry.entries["foreign"].error is not None
    assert registry.entries["foreign"].error[0] == "ModelFormatError"


def test_a_model_in_a_folder_with_a_space_is_served_by_itself(models: Path, live: Any) -> None:
    os.rename(models / "ridge", models / "my model")
    running: Live = live(Settings(models / "my model"))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        assert client.post("/v1/models/my_model/predict", json={"row": [1, 2, 3, 4]}).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_starts_and_ends_soon_whatever_lies_there(models: Path, workers: str) -> None:
    for name in ("a configuration of 3 GiB", "a model with a pipe in it", "a configuration that is a device"):
        STRANGE[name](models / name.replace(" ", "-"))
    with served(models, "--workers", workers) as (process, port):
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).json()["models"] == 5
        process.terminate()
        assert process.wait(8) == 0


@pytest.mark.slow
def test_it_ends_soon_while_it_starts(models: Path) -> None:
    """The models are read before the first request; who is told to end meanwhile ends."""
    command = [sys.executable, "-m", "streamkernel", "serve", str(models), "--port", "0"]
    for seconds in (2.0, 3.0, 4.0, 5.0):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(seconds)
            process.terminate()
            assert process.wait(8) in (0, -15, 143)  # 128 + 15: the handler of the command was there already
