"""What fuzzing broke of updates, appends and looks at jobs; what it broke and is not mended yet fails here."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from fuzz.cases import JOB, X, Y
from fuzz.command import Refused, commanded
from fuzz.damage import resealed, snapshot, taken
from fuzz.forgery import reconfigured
from fuzz.jobs import place_of_job
from fuzz.limits import Yard

from streamkernel import KernelRidge, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import CorruptMetadataError, ModelFormatError
from streamkernel.jobs.records import JobRecords
from streamkernel.service import JobsPlace
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.job_actions import JobActions
from streamkernel.store import read_bundle


@pytest.mark.parametrize("field", ["basis_size", "certificate", "solution", "target_scale"])
def test_models_that_cannot_tell_of_their_update(yard: Yard, field: str) -> None:
    """They were replaced, and only then was there no number to print."""
    model, table = yard.place("m"), yard.place("t")
    KernelRidge(5).fit(X, Y).save(model)
    bundle = read_bundle(model, "kernel-ridge")
    config: dict[str, Any] = {name: value for name, value in bundle.config.items() if name != field}
    reconfigured(model, config)
    ingest(np.column_stack([X + 1, Y]), table, target=3)
    before = snapshot(model)
    command = ("update", model, table, "--scheduler", "threads", "--quiet")
    # What was swept is kept for the next one.
    error = yard.run(lambda: commanded(*command), may_write=[yard.folder / ".m.update"])
    assert isinstance(error, Refused)
    assert field in str(error)
    assert snapshot(model) == before


def test_jobs_of_a_place_that_cannot_be(yard: Yard) -> None:
    error = yard.run(lambda: commanded("jobs", "x" * 5000))
    assert isinstance(error, Refused)
    assert "there is no folder" in str(error)


def test_classes_that_are_no_list(yard: Yard) -> None:
    """An IndexError, of a classifier that is to predict."""
    path = yard.place("m")
    KernelRidgeClassifier(5).fit(X, np.where(Y > 0, "a", "b")).save(path)
    bundle = read_bundle(path, "kernel-ridge")
    for classes in ("ab", ["a"]):
        reconfigured(path, {**bundle.config, "classes": classes})
        error = yard.run(lambda: KernelRidgeClassifier.load(path))
        assert isinstance(error, ModelFormatError)


def test_statistics_of_several_lengths(yard: Yard) -> None:
    """A ValueError, of an append that adds to them."""
    table = yard.place("t")
    ingest(X, table)
    files = taken(table)
    metadata = json.loads(files["zarr.json"])
    metadata["attributes"]["statistics"]["X"]["std"].pop()
    files = resealed({**files, "zarr.json": json.dumps(metadata).encode()})
    for name in ("zarr.json", "COMPLETE"):
        (table / name).write_bytes(files[name])
    error = yard.run(lambda: open_table(table))
    assert isinstance(error, CorruptMetadataError)


def test_states_of_jobs_that_cannot_be_read(yard: Yard) -> None:
    ingest(X, yard.place("rows"))
    place_of_job(yard, "queued")
    state = yard.folder / "store" / JOB / "state" / "00000001.json"
    state.unlink()
    state.mkdir()
    # Who finds a job without a state tries to write one.
    error = yard.run(lambda: commanded("status", JOB, "--jobs", yard.folder / "store"), may_write=state.parent)
    assert isinstance(error, Refused)
    assert str(state) in str(error)


@pytest.mark.parametrize(
    ("state", "name", "fields"),
    [
        ("running", "progress/00000001.json", {"sweep": None}),
        ("running", "progress/00000001.json", {"seconds": float("nan")}),
        ("running", "progress/00000001.json", {"time": 10**400}),
        ("failed", "state/00000003.json", {"error": {"message": "x"}}),
        ("done", "state/00000003.json", {"result": {"digest": "ab"}}),
        ("done", "state/00000003.json", {"result": []}),
    ],
)
def test_jobs_that_the_service_cannot_tell_of(yard: Yard, state: str, name: str, fields: dict[str, Any]) -> None:
    """A KeyError, or what is no JSON: instead of the list of all jobs there was a fault of the service."""
    ingest(X, yard.place("rows"))
    place_of_job(yard, state)
    place = yard.folder / "store"
    other = JobRecords(str(place), "20260130-235959-00000000")
    other.create(JobRecords(str(place), JOB).work())
    path = place / JOB / name
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "value": {**document["value"], **fields}}))
    desk = JobActions(JobsPlace(str(place)), AllowedLocations([yard.folder], str(place)))
    first, second = json.loads(json.dumps(desk.list_jobs(10), allow_nan=False))
    assert (first["id"], first["status"], first["error"]["type"]) == (JOB, "unreadable", "CorruptMetadataError")
    assert str(yard.folder) not in first["error"]["message"]
    assert (second["id"], second["status"]) == (other.id, "queued")


def test_appending_to_a_table_whose_manifest_lists_another_array(yard: Yard) -> None:
    table, source = yard.place("t"), yard.place("s.npy")
    ingest(X, table)
    np.save(source, X)
    files = taken(table)
    manifest = json.loads(files["COMPLETE"])
    manifest["arrays"]["x"] = manifest["arrays"]["X"]
    (table / "COMPLETE").write_bytes(resealed({**files, "COMPLETE": json.dumps(manifest).encode()})["COMPLETE"])
    before = snapshot(table)
    error = yard.run(lambda: commanded("ingest", source, table, "--append", "--quiet"))
    assert isinstance(error, Refused)
    assert "COMPLETE" in str(error)
    assert snapshot(table) == before
