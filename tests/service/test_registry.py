"""Models come, change and go under the service; what is damaged is reported, and what was there goes on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamkernel.service import Settings
from streamkernel.service import model_sources as places
from streamkernel.service.http_errors import Refused
from streamkernel.service.model_registry import Registry
from streamkernel.service.model_sources import FolderSource


@pytest.fixture
def followed(models: Path) -> tuple[Registry, list[tuple[str, str]]]:
    events: list[tuple[str, str]] = []
    registry = Registry(models, lambda *event: events.append(event))
    registry.scan()
    return registry, events


def test_what_is_found(followed: Any, estimators: dict[str, Any]) -> None:
    registry, events = followed
    ready = {name for name, entry in registry.entries.items() if entry.served is not None}
    assert ready == set(estimators)
    # A table is no model and is passed over; a transformer is a model that does not predict, which is said.
    assert set(registry.entries) - ready == {"features"}
    assert registry.entries["features"].error[0] == "ModelFormatError"
    assert sorted(events) == [("failed", "features"), *(("loaded", name) for name in sorted(estimators))]
    events.clear()
    registry.scan()
    assert events == []


def test_a_new_generation_takes_the_place_of_the_old(followed: Any, models: Path, estimators: dict[str, Any]) -> None:
    registry, events = followed
    before = registry.served("ridge")
    events.clear()
    estimators["two"].save(models / "ridge", overwrite=True)
    registry.scan()
    after = registry.served("ridge")
    assert events == [("reloaded", "ridge")]
    assert (before.generation, after.generation) == (1, 2)
    assert after.digest == estimators["two"].model_.digest
    # Who began with the one before still has all of it.
    assert before.model.digest == estimators["ridge"].model_.digest


def linked(link: Path, target: str) -> None:
    os.symlink(target, f"{link}.new")
    os.replace(f"{link}.new", link)


@pytest.mark.parametrize("back", [False, True])
def test_a_link_that_changes_while_the_model_is_read(
    models: Path, estimators: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, back: bool
) -> None:
    """What was read is what was seen, also where the link leads there again when it has been read."""
    linked(models / "current", "ridge")
    place = FolderSource(models)
    seen = place.candidates()["current"]
    plain = places.load

    def load(path: Path, name: str, number: int) -> Any:
        linked(models / "current", "two")
        served = plain(path, name, number)
        if back:
            linked(models / "current", "ridge")
        return served

    monkeypatch.setattr(places, "load", load)
    served = place.load(seen, "current", 1)
    assert served is not None
    assert served.digest == estimators["ridge"].model_.digest
    linked(models / "current", "two")
    assert place.load(seen, "current", 1) is None


def test_a_model_that_is_replaced_while_it_is_read_is_looked_at_again(
    models: Path, estimators: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = FolderSource(models)
    seen = place.candidates()["ridge"]
    plain = places.load

    def load(path: Path, name: str, number: int) -> Any:
        estimators["two"].save(models / "ridge", overwrite=True)
        return plain(path, name, number)

    monkeypatch.setattr(places, "load", load)
    assert place.load(seen, "ridge", 1) is None


def damage_chunk(model: Path) -> None:
    chunk = next(path for path in sorted((model / "dual_coef" / "c").rglob("*")) if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[10] ^= 1
    chunk.write_bytes(content)


def remove_chunk(model: Path) -> None:
    next(path for path in sorted((model / "dual_coef" / "c").rglob("*")) if path.is_file()).unlink()


def of_another_version(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "version": 99}))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "flipped": damage_chunk,
    "lost": remove_chunk,
    "unfinished": lambda model: (model / "COMPLETE").unlink(),
    "no config": lambda model: (model / "config.json").unlink(),
    "torn config": lambda model: (model / "config.json").write_text("{"),
    "another version": of_another_version,
    "linked": lambda model: os.symlink("/etc/passwd", model / "link"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_generation_is_reported_and_the_one_before_it_served(
    followed: Any, models: Path, estimators: dict[str, Any], damage: str
) -> None:
    registry, events = followed
    served = registry.served("ridge")
    events.clear()
    estimators["two"].save(models / "new")
    DAMAGES[damage](models / "new")
    shutil.rmtree(models / "ridge")
    os.rename(models / "new", models / "ridge")
    registry.scan()
    assert registry.served("ridge") is served
    entry = registry.entries["ridge"]
    assert entry.error is not None
    assert str(models) not in entry.error[1]
    assert events == [("failed", "ridge")]
    registry.scan()
    assert events == [("failed", "ridge")]
    # A whole one heals it.
    shutil.rmtree(models / "ridge")
    estimators["gp"].save(models / "ridge")
    registry.scan()
    assert registry.served("ridge").digest == estimators["gp"].model_.digest
    assert registry.entries["ridge"].error is None


def test_what_could_not_be_read_is_tried_again(models: Path, estimators: dict[str, Any]) -> None:
    registry = Registry(models)
    complete = (models / "gp" / "COMPLETE").read_bytes()
    (models / "gp" / "COMPLETE").unlink()
    registry.scan()
    with pytest.raises(Refused, match="did not finish"):
        registry.served("gp")
    # Copied file by file, as a careless operator does: the folder itself looks the same when the last one is there.
    (models / "gp" / "COMPLETE").write_bytes(complete)
    until = time.monotonic() + 10
    while registry.entries["gp"].served is None and time.monotonic() < until:
        registry.scan()
        time.sleep(0.05)
    assert registry.served("gp").digest == estimators["gp"].model_.digest


def test_models_come_and_go(followed: Any, models: Path, estimators: dict[str, Any]) -> None:
    registry, events = followed
    events.clear()
    estimators["ridge"].save(models / "fresh")
    shutil.rmtree(models / "two")
    registry.scan()
    assert registry.served("fresh").generation == 1
    # One look may fall between the two steps of a rename.
    assert registry.served("two").generation == 1
    registry.scan()
    with pytest.raises(Refused, match="there is no model 'two'"):
        registry.served("two")
    assert events == [("loaded", "fresh"), ("removed", "two")]


def test_a_folder_that_cannot_be_seen_takes_no_model_away(followed: Any, models: Path) -> None:
    registry, _ = followed
    os.rename(models, models.with_name("away"))
    for _ in range(5):
        registry.scan()
    assert registry.served("ridge").generation == 1


def test_one_model_instead_of_a_folder(models: Path, estimators: dict[str, Any]) -> None:
    registry = Registry(models / "gp")
    registry.scan()
    assert list(registry.entries) == ["gp"]
    assert registry.served("gp").digest == estimators["gp"].model_.digest
    estimators["ridge"].save(models / "gp", overwrite=True)
    registry.scan()
    assert registry.served("gp").digest == estimators["ridge"].model_.digest


def test_over_http_within_a_second(models: Path, estimators: dict[str, Any], live: Any, rows: Any) -> None:
    running = live(Settings(models))
    with httpx.Client(base_url=running.url, trust_env=False) as client:

        def predicted() -> Any:
            return client.post("/v1/models/ridge/predict", json={"row": rows[0].tolist()}).json()["prediction"]

        assert predicted() == estimators["ridge"].predict(rows[:1])[0]
        estimators["gp"].save(models / "ridge", overwrite=True)
        wanted, until = estimators["gp"].predict(rows[:1])[0], time.monotonic() + 10
        while predicted() != wanted:
            assert time.monotonic() < until
        damage_chunk_by_rename(models)
        while client.get("/healthz").json()["failing"] < 2:  # the transformer is the first
            assert time.monotonic() < until
        assert client.get("/healthz").json()["status"] == "degraded"
        assert predicted() == wanted
        told = client.get("/v1/models/ridge").json()
        assert told["ready"]
        assert told["error"]["type"] == "CorruptChunkError"
        counted = client.get("/metrics").text
        assert 'streamkernel_model_error{model="ridge"} 1.0' in counted
        assert 'streamkernel_model_generation{model="ridge"} 2.0' in counted
        assert 'streamkernel_model_changes_total{event="reloaded"} 1.0' in counted


def damage_chunk_by_rename(models: Path) -> None:
    shutil.copytree(models / "ridge", models / ".new")
    damage_chunk(models / ".new")
    os.rename(models / "ridge", models / ".old")
    os.rename(models / ".new", models / "ridge")
