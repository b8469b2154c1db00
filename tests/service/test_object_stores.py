"""Models in object stores: found, followed and replaced as in a folder; a store that is lost makes them stale."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from objects.flaky_proxy import FlakyProxy
from service.stored import OTHERS, filled

from streamkernel.blobs import Generations, blobs_at
from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.service.http_errors import Refused
from streamkernel.service.model_registry import Registry
from streamkernel.service.model_sources import source_of

Events = list[tuple[str, str]]


@pytest.fixture
def url(estimators: dict[str, Any]) -> str:
    """A place of fsspec's, where writing costs nothing."""
    return filled(f"memory://{uuid.uuid4().hex}/our/models", estimators)


def scanned(url: str) -> tuple[Registry, Events]:
    events: Events = []
    registry = Registry(url, lambda *event: events.append(event))
    registry.scan()
    return registry, events


@pytest.fixture
def followed(url: str) -> tuple[Registry, Events]:
    registry, events = scanned(url)
    events.clear()
    return registry, events


def remove(url: str) -> None:
    blobs = blobs_at(url)
    blobs.remove_all(blobs.keys())


def damage(url: str, name: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change an object of the current generation, or remove it."""
    place = Generations(url)
    generation = place.latest()
    assert generation is not None
    key = next(key for key in place.blobs.keys(generation.prefix) if name in key)
    content = change(place.blobs.read(key) or b"")
    if content is None:
        place.blobs.remove(key)
    else:
        place.blobs.write(key, content)


def test_what_is_found_is_read_once(bucket: str, proxy: FlakyProxy, estimators: dict[str, Any]) -> None:
    registry, events = scanned(bucket)
    assert events == [("loaded", "gp"), ("loaded", "ridge")]
    for name in ("ridge", "gp"):
        assert registry.served(name).digest == estimators[name].model_.digest
    with pytest.raises(Refused, match="there is no model 'table-1'"):
        registry.served("table-1")
    events.clear()
    proxy.seen.clear()
    registry.scan()
    assert events == []
    # The place; the record of each model; of what has none a listing of what is directly there.
    assert len(proxy.seen) == 1 + 2 * 2 + 2 * (OTHERS + 1)
    assert not any("/c/" in path or "config.json" in path for _, path in proxy.seen)


def test_a_new_generation_takes_the_place_of_the_old(
    followed: tuple[Registry, Events], url: str, estimators: dict[str, Any]
) -> None:
    registry, events = followed
    before = registry.served("ridge")
    estimators["two"].save(f"{url}/ridge", overwrite=True)
    estimators["labels"].save(f"{url}/added")
    remove(f"{url}/gp")
    registry.scan()
    assert events == [("loaded", "added"), ("reloaded", "ridge")]
    after = registry.served("ridge")
    assert (before.generation, after.generation) == (1, 2)
    assert after.digest == estimators["two"].model_.digest
    assert before.model.digest == estimators["ridge"].model_.digest
    assert registry.served("gp").generation == 1
    registry.scan()
    assert events[2:] == [("removed", "gp")]


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None], str]] = {
    "flipped": ("dual_coef/c/", lambda content: content[:10] + bytes([content[10] ^ 1]) + content[11:], "CorruptChunk"),
    "lost": ("dual_coef/c/", lambda content: None, "MissingChunk"),
    "empty": ("dual_coef/c/", lambda content: b"", "MissingChunk"),
    "another COMPLETE": ("COMPLETE", lambda content: content + b" ", "CorruptMetadata"),
    "unfinished": ("COMPLETE", lambda content: None, "IncompleteStore"),
    "torn": ("config.json", lambda content: content[:50], "CorruptMetadata"),
}


@pytest.mark.slow
def test_damaged_generations_are_reported_and_the_one_before_them_served(
    followed: tuple[Registry, Events], url: str, estimators: dict[str, Any]
) -> None:
    registry, events = followed
    served = registry.served("ridge")
    for kind, (name, change, error) in DAMAGES.items():
        # What is not a whole model is not replaced: it is for its owner to remove.
        remove(f"{url}/ridge")
        estimators["two"].save(f"{url}/ridge")
        damage(f"{url}/ridge", name, change)
        for _ in range(2):
            registry.scan()
            assert registry.served("ridge") is served
            found = registry.entries["ridge"].error
            assert found is not None
            assert found[0].startswith(error), kind
            assert "://" not in found[1]
            assert "our/" not in found[1]
        assert events == [("failed", "ridge")], kind
        events.clear()
    remove(f"{url}/ridge")
    estimators["gp"].save(f"{url}/ridge")
    registry.scan()
    assert registry.served("ridge").digest == estimators["gp"].model_.digest
    assert registry.entries["ridge"].problem is None


def test_a_pointer_that_cannot_be_read_is_one_model_s_trouble(
    followed: tuple[Registry, Events], url: str, estimators: dict[str, Any]
) -> None:
    registry, events = followed
    served = registry.served("ridge")
    blobs_at(f"{url}/ridge").write("CURRENT/00000002.json", b"{")
    estimators["two"].save(f"{url}/gp", overwrite=True)
    registry.scan()
    assert registry.served("ridge") is served
    problem = registry.entries["ridge"].problem
    assert problem is not None
    assert problem[0] == "CorruptMetadataError"
    assert registry.served("gp").generation == 2
    assert registry.stale is None
    blobs_at(f"{url}/ridge").remove("CURRENT/00000002.json")
    registry.scan()
    # Nothing was read again: it is the same generation.
    assert registry.served("ridge") is served
    assert registry.entries["ridge"].problem is None
    assert events == [("reloaded", "gp"), ("failed", "ridge"), ("recovered", "ridge")]


def test_a_store_that_is_lost_takes_no_model_away(bucket: str, proxy: FlakyProxy, caplog: Any) -> None:
    registry, events = scanned(bucket)
    events.clear()
    for fault, error in (("403", "StoreAccessError"), ("503", "StoreError"), ("reset", "StoreError")):
        proxy.fault = lambda method, path, fault=fault: fault
        with caplog.at_level(logging.WARNING, "streamkernel.service"):
            for _ in range(3):
                registry.scan()
        assert registry.served("ridge").generation == registry.served("gp").generation == 1
        assert registry.stale is not None
        assert registry.stale.since == registry.scanned
        assert registry.stale.error[0] == error
        assert "127.0.0.1" not in registry.stale.error[1]
        with pytest.raises(Refused, match="new models cannot be found") as refused:
            registry.served("other")
        assert refused.value.status == 503
        # The operator is told all, and once.
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert f"{bucket} " in caplog.text
        proxy.fault = lambda method, path: None
        registry.scan()
        assert registry.stale is None
        caplog.clear()
    assert events == []


@pytest.mark.slow
def test_a_store_that_is_lost_in_the_middle_of_a_look(bucket: str, proxy: FlakyProxy) -> None:
    registry, events = scanned(bucket)
    events.clear()
    proxy.seen.clear()
    proxy.fault = lambda method, path: "503" if "CURRENT" in path else None
    registry.scan()
    # Those that were asked at the same time, and no more.
    assert 2 <= len(proxy.seen) <= 5
    assert registry.served("gp").generation == 1
    assert registry.entries["gp"].problem == ("StoreError", "the object store does not answer")
    proxy.fault = lambda method, path: None
    registry.scan()
    assert list(registry.entries) == ["gp", "ridge"]
    assert [entry.problem for entry in registry.entries.values()] == [None, None]
    # Nothing was read again.
    assert [event for event in events if event[1] in ("gp", "ridge")] == [
        ("failed", "gp"), ("failed", "ridge"), ("recovered", "gp"), ("recovered", "ridge"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_store_that_is_lost_while_a_generation_is_read(
    bucket: str, proxy: FlakyProxy, estimators: dict[str, Any]
) -> None:
    proxy.fault = lambda method, path: "503" if "ridge" in path and "/c/" in path else None
    registry, _ = scanned(bucket)
    assert registry.served("gp").generation == 1
    with pytest.raises(Refused, match="cannot be served: the object store does not answer"):
        registry.served("ridge")
    proxy.fault = lambda method, path: None
    registry._set(replace(registry.entries["ridge"], retry_at=0.0))
    registry.scan()
    assert registry.served("ridge").digest == estimators["ridge"].model_.digest


def test_one_model(url: str, bucket: str, s3: str, estimators: dict[str, Any]) -> None:
    for place in (url, bucket):
        registry, _ = scanned(f"{place}/gp/")
        assert list(registry.entries) == ["gp"]
        assert registry.served("gp").digest == estimators["gp"].model_.digest
    registry, events = scanned(f"{url}/gp")
    estimators["ridge"].save(f"{url}/gp", overwrite=True)
    registry.scan()
    assert registry.served("gp").digest == estimators["ridge"].model_.digest
    assert events == [("loaded", "gp"), ("reloaded", "gp")]


def test_a_plain_copy_is_served_when_it_is_whole(saved: Path, estimators: dict[str, Any]) -> None:
    """As a copying tool writes it, COMPLETE somewhere in the middle."""
    url = f"memory://{uuid.uuid4().hex}/models"
    registry, blobs = Registry(url), blobs_at(url)
    files = sorted(path for path in (saved / "ridge").rglob("*") if path.is_file())
    for file in files:
        assert all(entry.served is None for entry in registry.entries.values())
        blobs.write(f"ridge/{file.relative_to(saved / 'ridge')}", file.read_bytes())
        registry.scan()
    until_retried = replace(registry.entries["ridge"], retry_at=0.0)
    registry._set(until_retried)
    registry.scan()
    assert registry.served("ridge").digest == estimators["ridge"].model_.digest


def test_where_models_cannot_be(s3: str, saved: Path) -> None:
    for url in ("http://host/models", "https://host/models"):
        with pytest.raises(ParameterError, match="cannot be listed"):
            source_of(url)
    for url in ("zip::s3://b/models.zip", "simplecache::s3://b/models", "s3://b/x::file:///etc"):
        with pytest.raises(ParameterError, match="chain of URLs"):
            source_of(url)
    with pytest.raises(ParameterError, match="driver"):
        source_of("nosuchscheme://bucket/models")
    with pytest.raises(StoreNotFoundError, match="no bucket"):
        source_of("s3://no-such-bucket-of-ours/models").candidates()
    assert source_of(f"{s3}/nothing/yet").candidates() == {}
    # A file:// URL is a path, here as everywhere.
    assert "ridge" in source_of(f"file://{saved}").candidates()
