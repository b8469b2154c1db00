"""What is not there, not ours, or damaged in its metadata: named, and nothing is created."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import zarr
from table.zarr_stores import CRC, X, foreign
from zarr.codecs import ZstdCodec

from streamkernel.errors import (
    CorruptMetadataError,
    DTypeError,
    IncompleteStoreError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.manifest import VERSION
from streamkernel.table import open_table


def test_missing_path_creates_nothing(tmp_path):
    with pytest.raises(StoreNotFoundError, match="nothing was created"):
        open_table(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreNotFoundError, match=r"zarr\.json"):
        open_table(tmp_path / "empty")
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(StoreError, match="ingest"):
        open_table(tmp_path / "a.csv")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "empty"]
    assert os.listdir(tmp_path / "empty") == []


def test_group_without_rows_names_what_it_needs(tmp_path):
    zarr.create_group(tmp_path / "g")
    with pytest.raises(StoreNotFoundError, match="no array X"):
        open_table(tmp_path / "g")
    zarr.create_group(tmp_path / "model", attributes={"format": "streamkernel.model"})
    with pytest.raises(ParameterError, match=r"streamkernel\.model, not a table"):
        open_table(tmp_path / "model")
    with pytest.raises(StoreNotFoundError):
        open_table(X, tmp_path / "nowhere")


@pytest.mark.parametrize("node", ["", "X", "y"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        ('{"zarr_format": 3, "node_ty', "truncated"),
        ("[]", "list"),
        ("null", "NoneType"),
        ('{"zarr_format": 3, "node_type": "teapot"}', "teapot"),
        ('{"zarr_format": 1, "node_type": "array"}', "zarr_format 1"),
        ('{"zarr_format": 3, "node_type": "array", "shape": [3], "shape": [4]}', "'shape' is there twice"),
    ],
)
def test_damaged_metadata_is_named(tmp_path, node, content, says):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / node / "zarr.json"
    file.write_text(content)
    with pytest.raises(CorruptMetadataError, match=says) as caught:
        open_table(tmp_path / "g")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    "change", ["group for array", "no shape", "no codecs", "odd dtype", "zero chunk", "chunk list"]
)
def test_array_metadata_that_is_json_but_wrong(tmp_path, change):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / "X" / "zarr.json"
    value = json.loads(file.read_text())
    if change == "group for array":
        value = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    elif change == "no shape":
        value["shape"] = "many"
    elif change == "no codecs":
        del value["codecs"]
    elif change == "odd dtype":
        value["data_type"] = 33
    elif change == "zero chunk":
        value["chunk_grid"]["configuration"]["chunk_shape"] = [0, 6]
    else:
        value["chunk_grid"] = []
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match=r"X"):
        open_table(tmp_path / "g")


@pytest.mark.parametrize("version", [2, 3])
def test_a_codec_that_is_not_installed(tmp_path, version):
    """There is nothing to restore."""
    zarr.create_array(tmp_path / "X", shape=X.shape, chunks=(40, 6), dtype="f4", zarr_format=version)[:] = X
    file = tmp_path / "X" / ("zarr.json" if version == 3 else ".zarray")
    other = {"codecs": [{"name": "pcodec"}]} if version == 3 else {"compressor": {"id": "pcodec"}}
    file.write_text(json.dumps({**json.loads(file.read_text()), **other}))
    with pytest.raises(StoreError, match=r"X at .*/X is encoded by 'pcodec', a codec that is not installed here; ins"):
        open_table(tmp_path / "X")


UNKNOWN = {
    "the data type 'bfloat16', which is not known here; write the array again as numbers, such as float64": {
        "data_type": "bfloat16"
    },
    "the data type 'mine', which is not known here": {"data_type": {"name": "mine", "configuration": {}}},
    "the chunk grid 'rectilinear', which cannot be read here; write the array again with 'regular'": {
        "chunk_grid": {"name": "rectilinear", "configuration": {"chunk_shapes": [[40, 60], [6]]}}
    },
    "the chunk keys 'fancy', which cannot be read here": {"chunk_key_encoding": {"name": "fancy"}},
    "storage transformers, which cannot be read here": {"storage_transformers": [{"name": "mine"}]},
    "the field 'mine' in its metadata, which is not known here": {"mine": {"name": "mine"}},
}


@pytest.mark.parametrize("message", UNKNOWN)
def test_what_other_programs_add_to_zarr_is_said_to_be_unknown(tmp_path, message):
    """Nothing is damaged, so that there is nothing to restore."""
    foreign(tmp_path / "g")
    file = tmp_path / "g" / "X" / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **UNKNOWN[message]}))
    with pytest.raises(StoreError, match=f"^X at .*/g/X has {message}.*, if its zarr.json is not damaged$") as raised:
        open_table(tmp_path / "g")
    assert not isinstance(raised.value, CorruptMetadataError)


def test_a_field_that_may_be_ignored_is(tmp_path):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / "X" / "zarr.json"
    value = json.loads(file.read_text())
    file.write_text(json.dumps({**value, "mine": {"must_understand": False}}))
    assert open_table(tmp_path / "g").n_rows == len(X)


def test_a_later_version_of_zarr_is_no_damage(tmp_path):
    foreign(tmp_path / "g")
    file = tmp_path / "g" / "X" / "zarr.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "zarr_format": 4}))
    with pytest.raises(StoreError, match="is of version 4 of Zarr's format, which is not known here") as raised:
        open_table(tmp_path / "g")
    assert not isinstance(raised.value, CorruptMetadataError)


V2_FAULTS = {
    "X at .*/X has the data type '<f16', which is not known here; .*, if its .zarray is not damaged": {"dtype": "<f16"},
    "X at .*/X has the data type '[|]O', which is not known here": {"dtype": "|O"},
    "X/.zarray has no valid shape": {"shape": "many"},
    "X/.zarray has a chunk of no rows": {"chunks": [0, 6]},
    "X/.zarray is not valid array metadata .*; restore it": {"order": "Q"},
}


@pytest.mark.parametrize("message", V2_FAULTS)
def test_faults_of_version_2_name_its_file(tmp_path, message):
    zarr.create_array(tmp_path / "X", shape=X.shape, chunks=(40, 6), dtype="f4", zarr_format=2)[:] = X
    file = tmp_path / "X" / ".zarray"
    file.write_text(json.dumps({**json.loads(file.read_text()), **V2_FAULTS[message]}))
    with pytest.raises(StoreError, match=message):
        open_table(tmp_path / "X")


HUGE_GRIDS = [
    ((10**15, 20), (1000, 20)),
    ((100, 10**12), (10, 10**12)),
    ((10**12, 4), (10**11, 4)),
    ((5, 10**9), (5, 10)),
]


def test_huge_grids_are_refused_from_metadata_alone(tmp_path):
    files = [tmp_path / str(i) for i in range(len(HUGE_GRIDS))]
    for file, (shape, chunks) in zip(files, HUGE_GRIDS, strict=True):
        zarr.create_array(file, shape=(10, 2), chunks=(5, 2), dtype="f8", **CRC)
        value = json.loads((file / "zarr.json").read_text())
        value["shape"] = shape
        value["chunk_grid"]["configuration"]["chunk_shape"] = chunks
        (file / "zarr.json").write_text(json.dumps(value))
    code = (
        "import sys\n"
        "from streamkernel.engine.peak_memory import peak_resident_bytes\n"  # ru_maxrss begins with the parent's size
        "from streamkernel.errors import ResourceLimitError\n"
        "from streamkernel.table import open_table\n"
        "before = peak_resident_bytes()\n"
        "import time\n"
        "for file in sys.argv[1:]:\n"
        "    began = time.process_time()\n"
        "    try: open_table(file)\n"
        "    except ResourceLimitError as error: print(error)\n"
        "    else: sys.exit('opened ' + file)\n"
        "    took = time.process_time() - began\n"
        "    grown = peak_resident_bytes() - before\n"
        "    assert grown < 50_000_000, (file, grown)\n"
        "    assert took < 1, (file, took)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rewrite it with") == len(files)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("complex", X.astype(complex), DTypeError),
        ("3-d", np.ones((4, 2, 2)), ShapeError),
        ("1-d", np.ones(4), ShapeError),
    ],
)
def test_arrays_that_are_no_table(tmp_path, name, values, error):
    made = {**CRC, "fill_value": 0}
    zarr.create_array(tmp_path / "a", shape=values.shape, dtype=values.dtype, chunks=values.shape, **made)[:] = values
    with pytest.raises(error):
        open_table(tmp_path / "a")


def test_lengths_that_differ_and_text_targets(tmp_path):
    foreign(tmp_path / "g")
    with pytest.raises(ShapeMismatchError, match=r"\(230, 6\).*\(3,\)"):
        open_table(tmp_path / "g", np.ones(3))
    labels = np.array(["b", "a"] * 115)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr's own remark that text arrays have no specification yet
        array = zarr.create_array(tmp_path / "t", data=labels, chunks=(50,), compressors=[ZstdCodec(checksum=True)])
        table = open_table(tmp_path / "g", array, classify=True)
        assert table.classes.tolist() == ["a", "b"]
        np.testing.assert_array_equal(table.read(0, 3).Y, [[0, 1], [1, 0], [0, 1]])


def test_a_store_without_permission(store, monkeypatch):
    # As root every mode may be read, so the answer of the system is given instead of the mode.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StoreAccessError, match="may not be read"):
        open_table(store)


def test_store_without_manifest_is_incomplete(store):
    (store / "COMPLETE").unlink()
    with pytest.raises(IncompleteStoreError, match="did not finish"):
        open_table(store)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": "streamkernel.table", "version": 1}', '{"format": 3}'])
def test_torn_manifest(store, content):
    (store / "COMPLETE").write_text(content)
    with pytest.raises(CorruptMetadataError, match="COMPLETE"):
        open_table(store)


def test_unknown_version_and_exchanged_metadata(store):
    file = store / "zarr.json"
    value = json.loads(file.read_text())
    value["attributes"]["version"] = 99
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match="version 99"):
        open_table(store)
    value["attributes"]["version"] = VERSION
    value["attributes"]["columns"] = list("uvwxyz")
    file.write_text(json.dumps(value))
    with pytest.raises(CorruptMetadataError, match=r"zarr\.json is not the file"):
        open_table(store)
