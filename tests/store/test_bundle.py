"""Bundles: what is read is what was written, and whatever happened to the files in between has its own error."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from strategies import numeric_arrays

from streamkernel import errors
from streamkernel.atomic import text_digest
from streamkernel.store import Bundle, bundle_digest, bundle_kind, check_target, read_bundle, write_bundle
from streamkernel.store import _arrays as arrays_module
from streamkernel.store.plain import plain

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def example() -> Bundle:
    rng = np.random.default_rng(0)
    return Bundle(
        "model",
        1,
        {"kernel": {"name": "gaussian", "lengthscale": 0.5}, "classes": ["a", "b"], "seed": 7},
        {
            "components": rng.standard_normal((30, 4)).astype(np.float32),
            "coefficients": rng.standard_normal((30, 2)),
            "indices": np.arange(30),
            "scale": np.float64(2.5),
        },
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    write_bundle(path, example())
    return path


def assert_same(left: Bundle, right: Bundle) -> None:
    assert (left.kind, left.version, left.config) == (right.kind, right.version, right.config)
    assert left.arrays.keys() == right.arrays.keys()
    for name, values in right.arrays.items():
        expected = np.asarray(values)
        assert left.arrays[name].dtype == expected.dtype
        assert left.arrays[name].shape == expected.shape
        assert left.arrays[name].tobytes() == expected.tobytes()


class TestRoundTrip:
    @given(config=st.dictionaries(st.text(max_size=5), json_values, max_size=4), data=st.data())
    def test_any_config_and_arrays(self, tmp_path_factory: pytest.TempPathFactory, config: dict, data: st.DataObject):
        arrays = data.draw(st.dictionaries(names, numeric_arrays(), max_size=3))
        path = tmp_path_factory.mktemp("bundle") / "state"
        bundle = Bundle("state", 3, config, arrays)
        write_bundle(path, bundle)
        back = read_bundle(path, "state", versions=(2, 3))
        assert_same(back, bundle)
        if "volatile" not in config:
            assert bundle_digest(back) == bundle_digest(bundle)

    def test_several_chunks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arrays_module, "MAX_CHUNK_BYTES", 1000)
        bundle = Bundle("state", 1, {}, {"K": np.random.default_rng(0).standard_normal((37, 41)), "v": np.arange(999)})
        write_bundle(tmp_path / "state", bundle)
        chunks = [path for path in (tmp_path / "state" / "K" / "c").rglob("*") if path.is_file()]
        assert len(chunks) > 10
        assert max(path.stat().st_size for path in chunks) <= 1004
        assert_same(read_bundle(tmp_path / "state", "state"), bundle)

    def test_chunks_are_at_most_16_mebibytes(self) -> None:
        for shape, itemsize in [((5000, 5000), 8), ((3, 7_000_000), 8), ((40_000_000,), 1), ((2, 3, 5_000_000), 4)]:
            chunks = arrays_module._chunk_shape(shape, itemsize)
            assert np.prod(chunks) * itemsize <= 16 * 2**20
            assert np.prod(chunks) * itemsize >= 2 * 2**20

    def test_zeros_are_written_not_implied(self, tmp_path: Path) -> None:
        write_bundle(tmp_path / "state", Bundle("state", 1, {}, {"zero": np.zeros((3, 2)), "no": np.zeros(4, bool)}))
        assert (tmp_path / "state/zero/c/0/0").stat().st_size == 3 * 2 * 8 + 4
        assert (tmp_path / "state/no/c/0").stat().st_size == 4 + 4

    def test_byte_order_becomes_little_endian(self, tmp_path: Path) -> None:
        values = np.arange(5.0)
        write_bundle(tmp_path / "big", Bundle("state", 1, {}, {"v": values.astype(">f8")}))
        back = read_bundle(tmp_path / "big", "state").arrays["v"]
        assert back.dtype == np.dtype("<f8")
        assert back.tolist() == values.tolist()
        assert bundle_digest(Bundle("s", 1, {}, {"v": values})) == bundle_digest(
            Bundle("s", 1, {}, {"v": values.astype(">f8")})
        )

    def test_numpy_values_in_the_config_become_plain(self, tmp_path: Path) -> None:
        config = {"a": np.float32(0.5), "n": np.int64(3), "ok": np.bool_(True), "c": np.array(["x", "y"]), "t": (1, 2)}
        write_bundle(tmp_path / "state", Bundle("state", 1, config))
        assert read_bundle(tmp_path / "state", "state").config == {
            "a": 0.5, "n": 3, "ok": True, "c": ["x", "y"], "t": [1, 2],
        }  # fmt: skip

    def test_lists_are_plain_and_name_the_place_of_what_is_not(self) -> None:
        """Also those of one type, which are looked at as a whole."""
        values = [[1.5, -0.0], [1, True, None, "x"], [10**400, 1.5], [np.float64(2.5), 1.0], [[1.0], (2,)], []]
        found = plain(values)
        assert found == [[1.5, -0.0], [1, True, None, "x"], [10**400, 1.5], [2.5, 1.0], [[1.0], [2]], []]
        assert type(found[3][0]) is float
        assert all(copied is not own for copied, own in zip(found, values, strict=True))
        for value in (math.nan, math.inf, b"x"):
            with pytest.raises(errors.ParameterError, match=r"^config\.means\[2\] is "):
                plain({"means": [0.5, 1.5, value]})

    def test_plain_zarr_and_plain_json_read_it(self, saved: Path) -> None:
        group = zarr.open_group(saved, mode="r")
        np.testing.assert_array_equal(group["components"][:], example().arrays["components"])
        assert sorted(group.array_keys()) == sorted(example().arrays)
        codecs = json.loads((saved / "components/zarr.json").read_text())["codecs"]
        assert codecs[-1]["name"] == "crc32c"
        assert json.loads((saved / "components/zarr.json").read_text())["fill_value"] == "NaN"
        header = json.loads((saved / "config.json").read_text())
        assert header["kind"] == "model"
        assert header["config"]["classes"] == ["a", "b"]

    def test_relative_paths_and_new_parents(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        write_bundle("models/a/b", example())
        assert_same(read_bundle("models/a/b", "model"), example())
        assert os.listdir("models/a") == ["b"]


class TestDigest:
    def test_volatile_parts_do_not_count(self) -> None:
        def made(seconds: float, seed: int = 7) -> str:
            config = {"seed": seed, "timing": {"seconds": seconds}, "volatile": ["timing"]}
            return bundle_digest(Bundle("model", 1, config, {"v": np.arange(3.0)}))

        assert made(1.0) == made(2.0)
        assert made(1.0) != made(1.0, seed=8)

    @pytest.mark.parametrize(
        "other",
        [
            Bundle("model", 2, {"a": 1}, {"v": np.arange(4.0)}),
            Bundle("other", 1, {"a": 1}, {"v": np.arange(4.0)}),
            Bundle("model", 1, {"a": 2}, {"v": np.arange(4.0)}),
            Bundle("model", 1, {"a": 1}, {"w": np.arange(4.0)}),
            Bundle("model", 1, {"a": 1}, {"v": np.arange(4.0).reshape(2, 2)}),
            Bundle("model", 1, {"a": 1}, {"v": np.arange(4.0).view(np.int64)}),
            Bundle("model", 1, {"a": 1}, {"v": np.nextafter(np.arange(4.0), 9)}),
        ],
    )
    def test_everything_else_counts(self, other: Bundle) -> None:
        assert bundle_digest(other) != bundle_digest(Bundle("model", 1, {"a": 1}, {"v": np.arange(4.0)}))


class TestRefusedBeforeWriting:
    @pytest.mark.parametrize(
        "values",
        [
            np.array(["a"]),
            np.array([None]),
            np.zeros(2, complex),
            np.zeros(1, "M8[s]"),
            np.zeros(1, np.longdouble),
            b"x",
        ],
        ids=["text", "object", "complex", "date", "longdouble", "bytes"],
    )
    def test_dtypes(self, tmp_path: Path, values: object) -> None:
        with pytest.raises(errors.DTypeError, match="array labels has dtype"):
            write_bundle(tmp_path / "model", Bundle("model", 1, {}, {"labels": values}))
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "/etc", ".hidden", "a.b", "1a", "x" * 101, "a\n", "ä"])
    def test_names(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(errors.ParameterError, match="no array name"):
            write_bundle(tmp_path / "model", Bundle("model", 1, {}, {name: np.zeros(1)}))
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(
        ("config", "place"),
        [
            ({"a": float("nan")}, r"config\.a is nan"),
            ({"a": {"b": [1.0, float("-inf")]}}, r"config\.a\.b\[1\] is -inf"),
            ({"scale": np.array([1.0, np.nan])}, r"config\.scale\[1\] is nan"),
            ({1: 2}, "config has the key 1"),
            ({"f": len}, r"config\.f is a builtin"),
            ({"s": {1, 2}}, r"config\.s is a set"),
        ],
    )
    def test_configs(self, tmp_path: Path, config: dict, place: str) -> None:
        with pytest.raises(errors.ParameterError, match=place):
            write_bundle(tmp_path / "model", Bundle("model", 1, config))
        assert os.listdir(tmp_path) == []

    def test_existing(self, saved: Path) -> None:
        before = sorted(path.stat().st_mtime_ns for path in saved.rglob("*"))
        with pytest.raises(errors.StoreExistsError, match="ask for overwrite"):
            write_bundle(saved, example())
        assert sorted(path.stat().st_mtime_ns for path in saved.rglob("*")) == before

    def test_overwrite_makes_a_new_generation(self, saved: Path) -> None:
        new = Bundle("model", 1, {"seed": 8}, {"other": np.ones(2)})
        write_bundle(saved, new, overwrite=True)
        assert_same(read_bundle(saved, "model"), new)
        assert os.listdir(saved.parent) == ["model"]

    def test_overwrite_replaces_only_bundles(self, tmp_path: Path) -> None:
        precious = tmp_path / "thesis"
        precious.mkdir()
        (precious / "chapter.tex").write_text("x")
        zarr.create_group(tmp_path / "table")
        (tmp_path / "file").write_text("x")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for name in ("thesis", "table", "file", "link"):
            with pytest.raises(errors.StoreExistsError, match="remove it yourself"):
                write_bundle(tmp_path / name, example(), overwrite=True)
        assert (precious / "chapter.tex").read_text() == "x"

    def test_empty_folder_is_taken(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        write_bundle(tmp_path / "model", example())
        assert_same(read_bundle(tmp_path / "model", "model"), example())

    def test_parent_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(errors.StoreError, match="is a file"):
            check_target(tmp_path / "file" / "model")


def edit(path: Path, change: Callable[[dict], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


class TestDamage:
    def test_missing_path_creates_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(errors.StoreNotFoundError, match="nothing at"):
            read_bundle(tmp_path / "no" / "model", "model")
        assert os.listdir(tmp_path) == []
        assert bundle_kind(tmp_path / "no") is None

    def test_something_else(self, saved: Path, tmp_path: Path) -> None:
        zarr.create_group(tmp_path / "table")
        (tmp_path / "file").write_text("x")
        for name in ("table", "file"):
            with pytest.raises(errors.ModelFormatError, match="not a saved model"):
                read_bundle(tmp_path / name, "model")
            assert bundle_kind(tmp_path / name) is None
        assert bundle_kind(saved) == "model"
        with pytest.raises(errors.ModelFormatError, match="holds a model, not a factor"):
            read_bundle(saved, "factor")

    @pytest.mark.parametrize("key", ["version", "format_version", "format"])
    @pytest.mark.parametrize("value", [99, None, "x"])
    def test_unknown_version(self, saved: Path, key: str, value: object) -> None:
        edit(saved / "config.json", lambda header: header.update({key: value}))
        with pytest.raises(errors.ModelFormatError, match=r"version|format"):
            read_bundle(saved, "model")

    def test_missing_array(self, saved: Path) -> None:
        with pytest.raises(errors.ModelFormatError, match="lacks the array basis"):
            read_bundle(saved, "model", arrays=("components", "basis"))
        shutil.rmtree(saved / "coefficients")
        with pytest.raises(errors.ModelFormatError, match="array coefficients is missing"):
            read_bundle(saved, "model")

    def test_unfinished(self, saved: Path) -> None:
        (saved / "COMPLETE").unlink()
        with pytest.raises(errors.IncompleteStoreError, match="did not finish"):
            read_bundle(saved, "model")

    @pytest.mark.parametrize("name", ["config.json", "zarr.json", "COMPLETE", "components/zarr.json"])
    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b"{}"])
    def test_metadata(self, saved: Path, name: str, body: bytes) -> None:
        (saved / name).write_bytes(body)
        kind = errors.ModelFormatError if (name, body) == ("config.json", b"{}") else errors.CorruptMetadataError
        with pytest.raises(kind) as caught:
            read_bundle(saved, "model")
        assert str(saved / name) in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["config.json", "zarr.json", "COMPLETE", "components/zarr.json"])
    def test_truncated_metadata(self, saved: Path, name: str) -> None:
        body = (saved / name).read_bytes()
        (saved / name).write_bytes(body[: len(body) // 2])
        with pytest.raises(errors.CorruptMetadataError, match=name):
            read_bundle(saved, "model")

    def test_edited_metadata(self, saved: Path) -> None:
        edit(saved / "config.json", lambda header: header["config"].update(seed=8))
        with pytest.raises(errors.CorruptMetadataError, match="not as it was written"):
            read_bundle(saved, "model")

    def test_wrong_node(self, saved: Path) -> None:
        shutil.copy(saved / "zarr.json", saved / "components" / "zarr.json")
        with pytest.raises(errors.CorruptMetadataError, match=r"components/zarr\.json"):
            read_bundle(saved, "model")

    @pytest.mark.parametrize("state", ["missing", "empty"])
    def test_lost_chunk(self, saved: Path, state: str) -> None:
        chunk = saved / "components/c/0/0"
        chunk.unlink() if state == "missing" else chunk.write_bytes(b"")
        with pytest.raises(errors.MissingChunkError, match=f"components/c/0/0 .* {state}") as caught:
            read_bundle(saved, "model")
        assert caught.value.key == "components/c/0/0"

    def test_truncated_chunk(self, saved: Path) -> None:
        chunk = saved / "components/c/0/0"
        for length in (1, 3, 100, chunk.stat().st_size - 1):
            chunk.write_bytes(chunk.read_bytes()[:length] if length < chunk.stat().st_size else chunk.read_bytes())
            with pytest.raises(errors.CorruptChunkError, match="components/c/0/0"):
                read_bundle(saved, "model")

    def test_flipped_bit_anywhere(self, saved: Path) -> None:
        chunk = saved / "coefficients/c/0/0"
        whole = chunk.read_bytes()
        for position in range(0, len(whole), 13):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << position % 8
            chunk.write_bytes(damaged)
            with pytest.raises(errors.CorruptChunkError, match="coefficients/c/0/0") as caught:
                read_bundle(saved, "model")
            assert caught.value.key == "coefficients/c/0/0"
        chunk.write_bytes(whole)
        read_bundle(saved, "model")

    def test_chunk_of_another_generation(self, saved: Path, tmp_path: Path) -> None:
        # Its own CRC is right: only the manifest's digest tells.
        other = example()
        other.arrays["components"] = other.arrays["components"] + 1
        write_bundle(tmp_path / "other", other)
        shutil.copy(tmp_path / "other/components/c/0/0", saved / "components/c/0/0")
        with pytest.raises(errors.CorruptChunkError, match="components"):
            read_bundle(saved, "model")

    @pytest.mark.parametrize("name", ["components", "components/c/0/0", "config.json", "zarr.json", "COMPLETE"])
    def test_symbolic_link(self, saved: Path, tmp_path: Path, name: str) -> None:
        os.rename(saved / name, tmp_path / "outside")
        (saved / name).symlink_to(tmp_path / "outside")
        with pytest.raises(errors.ModelFormatError, match="symbolic link"):
            read_bundle(saved, "model")

    def test_link_to_the_whole_model_is_fine(self, saved: Path, tmp_path: Path) -> None:
        (tmp_path / "latest").symlink_to(saved)
        assert_same(read_bundle(tmp_path / "latest", "model"), example())

    @pytest.mark.parametrize("name", ["../model/components", "/etc", "..", "a/../../b"])
    def test_names_that_lead_outside(self, saved: Path, name: str) -> None:
        edit(saved / "COMPLETE", lambda manifest: manifest["arrays"].update({name: manifest["arrays"]["components"]}))
        with pytest.raises(errors.ModelFormatError, match="no array name"):
            read_bundle(saved, "model")

    @pytest.mark.parametrize("field", ["shape", "chunk"])
    def test_huge_from_metadata_alone(self, saved: Path, field: str) -> None:
        def grow(metadata: dict) -> None:
            if field == "shape":
                metadata["shape"] = [10**15, 4]
            else:
                metadata["chunk_grid"]["configuration"]["chunk_shape"] = [10**12, 4]

        edit(saved / "components/zarr.json", grow)
        tracemalloc.start()
        start = time.process_time()
        try:
            with pytest.raises(errors.ResourceLimitError, match="components"):
                read_bundle(saved, "model")
            assert time.process_time() - start < 1
            assert tracemalloc.get_traced_memory()[1] < 50e6
        finally:
            tracemalloc.stop()

    def test_compressed_array(self, saved: Path) -> None:
        # A few bytes could inflate to any number; what we write has the size that its shape says.
        group = zarr.open_group(saved, mode="a", use_consolidated=False)
        made = group.create_array("components", shape=(30, 4), dtype="f4", chunks=(30, 4), overwrite=True)
        made[:] = example().arrays["components"]
        with pytest.raises(errors.ModelFormatError, match=r"components .* is compressed"):
            read_bundle(saved, "model")

    def test_limit_of_the_caller(self, saved: Path) -> None:
        nbytes = sum(np.asarray(values).nbytes for values in example().arrays.values())
        assert_same(read_bundle(saved, "model", max_bytes=nbytes), example())
        with pytest.raises(errors.ResourceLimitError, match=f"need {nbytes} bytes, more than the {nbytes - 1}"):
            read_bundle(saved, "model", max_bytes=nbytes - 1)

    def test_manifest_that_promises_another_shape(self, saved: Path) -> None:
        edit(saved / "COMPLETE", lambda manifest: manifest["arrays"]["indices"].update(shape=[31]))
        with pytest.raises(errors.CorruptMetadataError, match="indices"):
            read_bundle(saved, "model")

    def test_forged_text_digests_still_meet_the_arrays(self, saved: Path) -> None:
        # Someone edits the metadata and their digests alike: the values' digest stands.
        edit(saved / "indices/zarr.json", lambda metadata: metadata.update(data_type="uint64"))
        text = (saved / "indices/zarr.json").read_text()
        edit(saved / "COMPLETE", lambda manifest: manifest["metadata"].update({"indices/zarr.json": text_digest(text)}))
        with pytest.raises(errors.CorruptMetadataError, match="indices"):
            read_bundle(saved, "model")


def test_no_thread_is_asked_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """zarr's own store hands over each file to a thread, which takes longer than a small file does."""

    def to_thread(*given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr("asyncio.to_thread", to_thread)
    write_bundle(tmp_path / "model", example())
    assert_same(read_bundle(tmp_path / "model", "model"), example())
