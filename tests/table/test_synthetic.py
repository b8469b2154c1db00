"""Tables that are made when they are read: any reading gives the same bits, on any processor; bad URLs are refused."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from streamkernel import ingest, open_table
from streamkernel.blobs import blobs_at
from streamkernel.errors import DataError, ParameterError
from streamkernel.table import Table
from streamkernel.table.info import table_info
from streamkernel.table.synthetic import is_synthetic, normal_form, parse
from streamkernel.table.synthetic._generators import GENERATORS
from streamkernel.table.synthetic._numbers import Stream, choices, cosines, logarithms, normals, uniforms

URLS = [
    "synthetic://friedman?rows=20000&seed=3",
    "synthetic://friedman?rows=2e4&seed=3&features=7&dtype=float64&noise=0",
    "synthetic://checkers?rows=20_000&seed=3&features=3&noise=0.2&classes=3",
]


def bits(table: Table, start: int, stop: int, rows: int = 1 << 30) -> tuple[bytes, bytes]:
    blocks = list(table.blocks(start, stop, rows))
    X, Y = (np.concatenate(parts) for parts in zip(*((block.X, block.Y) for block in blocks), strict=True))
    return X.tobytes(), Y.tobytes()


@pytest.mark.parametrize("url", URLS)
def test_every_way_of_reading_gives_the_same_bits(url: str) -> None:
    table = open_table(url)
    whole = bits(table, 0, 20_000)
    for chunk in (1, 1000, 8191, 1 << 20):
        other = open_table(f"{url}&chunk={chunk}")
        first = 0 if chunk > 1 else 19_000
        rows, targets = bits(other, first, 20_000, 777)
        assert rows == whole[0][first * table.n_features * table.dtype.itemsize :]
        assert targets == whole[1][first * table.n_targets * 8 :]
    rng = np.random.default_rng(0)
    for row in [0, 1, 2, 3, 4, 5, 19_999, *rng.integers(0, 20_000, 20).tolist()]:
        alone, among = table.read(row, row + 1), table.read(max(0, row - 9), min(20_000, row + 9))
        at = row - among.start
        assert alone.X.tobytes() == among.X[at].tobytes()
        assert alone.Y is not None
        assert among.Y is not None
        assert alone.Y.tobytes() == among.Y[at].tobytes()
    assert bits(pickle.loads(pickle.dumps(table)), 0, 20_000, 1234) == whole
    assert bits(table.slice(100, 19_990), 200, 300) == bits(table, 200, 300)


def test_the_rows_of_a_smaller_table_are_the_first_of_a_larger_one() -> None:
    small, large = (open_table(f"synthetic://friedman?rows={rows}&features={p}") for rows, p in ((1e4, 6), (1e12, 9)))
    a, b = small.read(0, 10_000), large.read(0, 10_000)
    assert a.X.tobytes() == np.ascontiguousarray(b.X[:, :6]).tobytes()
    assert a.Y is not None
    assert b.Y is not None
    assert a.Y.tobytes() == b.Y.tobytes()
    far = large.read(10**12 - 5, 10**12)
    assert np.unique(far.X).size == far.X.size


@pytest.mark.parametrize(
    ("url", "X", "Y"),
    [
        ("synthetic://friedman?rows=1e9&seed=7", "e173013750061e7e", "56c7127bb0a1801c"),
        ("synthetic://friedman?rows=1e9&seed=7&dtype=float64&noise=0.5", "1129528d1800b411", "40501c305ba2990d"),
        (
            "synthetic://checkers?rows=1e9&seed=7&features=2&classes=3&noise=0.2",
            "9cc4a214ce4facaf",
            "9301188c61043814",
        ),
    ],
)
def test_the_numbers_of_version_1_are_for_ever(url: str, X: str, Y: str) -> None:
    """On any processor, with any NumPy: scripts/test --processor nehalem runs this, too."""
    assert {generator.version for generator in GENERATORS.values()} == {1}
    found = bits(open_table(url), 123_456_789, 123_458_789)
    assert [hashlib.sha256(part).hexdigest()[:16] for part in found] == [X, Y]


def test_words_are_those_of_philox() -> None:
    key = np.array([11, 5], np.uint64)
    words = np.random.Philox(key=key).random_raw(1000)
    for first in (0, 1, 3, 4, 501):
        stream = Stream(11, 5, first)
        assert np.concatenate([stream.take(3), stream.take(100)]).tolist() == words[first : first + 103].tolist()


def test_cosine_logarithm_and_normal_numbers_are_those_of_the_library() -> None:
    v = np.linspace(-1.0, 1.0, 4001)
    np.testing.assert_allclose(cosines(v), np.cos(np.pi * v), rtol=0, atol=1e-15)
    u = np.concatenate([np.linspace(1e-9, 1.0, 4001), np.ldexp(1.0, -np.arange(54))])
    np.testing.assert_allclose(logarithms(u), np.log(u), rtol=1e-15, atol=0)
    first, second = (Stream(0, stream, 0).take(200_000) for stream in (1, 2))
    z = np.sort(normals(first, second))
    normal = ndtri((np.arange(200_000) + 0.5) / 200_000)
    assert abs(z - normal)[1000:-1000].max() < 0.02
    assert np.isfinite(normals(np.array([0, 2**64 - 1], np.uint64), np.array([0, 2**64 - 1], np.uint64))).all()
    assert uniforms(np.array([0, 2**64 - 1], np.uint64), 24).tolist() == [0.0, 1.0 - 2.0**-24]
    assert choices(np.array([0, 2**64 - 1], np.uint64), 3).tolist() == [0, 2]


def test_friedman_is_its_formula_and_noise() -> None:
    quiet, loud = (open_table(f"synthetic://friedman?rows=1e5&dtype=float64&noise={each}") for each in (0, 2))
    X, y = quiet.read(0, 100_000).X, quiet.read(0, 100_000).Y
    assert y is not None
    want = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    np.testing.assert_allclose(y[:, 0], want, rtol=1e-14, atol=1e-13)
    noisy = loud.read(0, 100_000).Y
    assert noisy is not None
    noise = (noisy - y)[:, 0]
    assert abs(noise.std() - 2.0) < 0.02
    assert abs(np.corrcoef(np.column_stack([X, noise]).T) - np.eye(11)).max() < 0.015
    # The target is that of the features as they are given, in single precision too.
    single = open_table("synthetic://friedman?rows=1e3&noise=0").read(0, 1000)
    assert single.X.dtype == np.float32
    a, b, c, d, e = single.X[:, :5].astype(np.float64).T
    assert single.Y is not None
    np.testing.assert_allclose(
        single.Y[:, 0], 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e, rtol=1e-13
    )


def test_checkers_are_classes() -> None:
    table = open_table("synthetic://checkers?rows=4e4&classes=3&noise=0.3")
    assert table.classes is not None
    assert table.classes.tolist() == [0, 1, 2]
    block = table.read(0, 40_000)
    assert block.Y is not None
    cell = np.floor(4 * block.X[:, 0]) + np.floor(4 * block.X[:, 1])
    assert abs((block.Y.argmax(axis=1) == cell % 3).mean() - 0.8) < 0.01
    assert open_table("synthetic://checkers?rows=10", classify=True).classes is not None
    with pytest.raises(DataError, match="looks like a regression target"):
        open_table("synthetic://friedman?rows=1e9", classify=True)


def test_identity_is_generator_version_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "synthetic://friedman?rows=1000"
    assert open_table(url).fingerprint == open_table("Synthetic://friedman?seed=0&features=10&rows=1e3").fingerprint
    different = ["rows=1001", "rows=1000&seed=1", "rows=1000&features=11", "rows=1000&noise=2", "rows=1000&chunk=100"]
    different += ["rows=1000&dtype=float64"]
    urls = [url, *(f"synthetic://friedman?{each}" for each in different), "synthetic://checkers?rows=1000"]
    assert len({open_table(each).fingerprint for each in urls}) == len(urls)
    before = open_table(url).fingerprint
    monkeypatch.setattr(GENERATORS["friedman"], "version", 2)
    assert open_table(url).fingerprint != before


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("synthetic://friedman?rows=1e9", "synthetic://friedman?rows=1000000000&seed=0"),
        ("SYNTHETIC://friedman?seed=5&rows=10&noise=1.0&dtype=float32", "synthetic://friedman?rows=10&seed=5"),
        (
            "synthetic://checkers?chunk=7&classes=4&rows=10&features=2&noise=5e-1&dtype=float64",
            "synthetic://checkers?rows=10&seed=0&features=2&noise=0.5&classes=4&dtype=float64&chunk=7",
        ),
    ],
)
def test_normal_form_is_the_same_table(url: str, normal: str) -> None:
    assert is_synthetic(url)
    assert normal_form(url) == normal_form(normal) == normal
    assert parse(url) == parse(normal)
    assert str(open_table(url).features.where(3)).endswith(normal)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("fridman?rows=10", "there is no generator 'fridman'; choose one of friedman, checkers"),
        ("", "there is no generator ''; choose one of friedman, checkers"),
        ("friedman/x?rows=10", "there is no generator 'friedman/x'"),
        ("friedman", "does not say how many rows; add rows="),
        ("friedman?seed=1", "does not say how many rows"),
        ("friedman?rows=10&sed=1", "there is no option 'sed'; choose of rows, seed, features, noise, dtype, chunk"),
        ("friedman?rows=10&classes=2", "there is no option 'classes'"),
        ("friedman?rows=10&&seed=1", "there is no option ''"),
        ("friedman?rows=10#x", "rows is a whole number"),
        ("friedman?rows=", "the option rows has no value"),
        ("friedman?rows", "the option rows has no value"),
        ("friedman?rows=10&rows=20", "the option rows is given twice"),
        ("friedman?rows=0", "rows is a whole number from 1 to 1000000000000, such as 1000 or 1e3, not '0'"),
        ("friedman?rows=-5", "rows is a whole number"),
        ("friedman?rows=1.5", "rows is a whole number"),
        ("friedman?rows=1e400", "rows is a whole number"),
        ("friedman?rows=nan", "rows is a whole number"),
        ("friedman?rows=many", "not 'many'"),
        ("friedman?rows=10&seed=18446744073709551616", "seed is a whole number from 0 to 18446744073709551615"),
        ("friedman?rows=10&features=4", "features is a whole number from 5 to"),
        ("checkers?rows=10&features=1", "features is a whole number from 2 to"),
        ("friedman?rows=10&noise=loud", "noise is a finite number, not 'loud'"),
        ("friedman?rows=10&noise=inf", "noise is a finite number, not 'inf'"),
        ("friedman?rows=10&noise=nan", "noise is a finite number, not 'nan'"),
        ("friedman?rows=10&noise=-1", "noise is the standard deviation of the noise in the target, at least 0, not -1"),
        ("checkers?rows=10&noise=1.5", "noise is the share of labels that are drawn anew, from 0 to 1, not 1.5"),
        ("checkers?rows=10&classes=1", "classes is a number from 2 to 1000, not 1"),
        ("friedman?rows=10&dtype=int8", "dtype is float32 or float64, not 'int8'"),
        ("friedman?rows=10&chunk=0", "chunk is a whole number from 1 to"),
        ("friedman?rows=1e9&chunk=1", "chunk is a whole number from 60 to"),  # a billion borders take 8 GB
        ("friedman?rows=1e13", "rows is a whole number from 1 to"),
        ("friedman?rows=10&chunk=1e12", "chunk is a whole number from 1 to"),
    ],
)
def test_bad_urls_name_what_is_wrong_and_what_there_is(rest: str, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        open_table(f"synthetic://{rest}")
    assert said in str(refused.value)
    assert f"synthetic://{rest}"[:300] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_there_are_never_more_chunks_than_their_borders_have_room_for() -> None:
    table = open_table("synthetic://friedman?rows=1e12&features=1000")
    assert table.n_rows / table.chunk_rows <= 1 << 24


def test_large_numbers_are_exact() -> None:
    assert parse("synthetic://friedman?rows=10&seed=18446744073709551615").seed == 2**64 - 1
    assert open_table("synthetic://friedman?rows=10&seed=18446744073709551615").read(0, 10).X.shape == (10, 10)
    assert parse("synthetic://friedman?rows=999999999999").rows == 999_999_999_999


def test_it_is_a_table_and_no_array_and_no_place(tmp_path: Path) -> None:
    url = "synthetic://friedman?rows=10"
    for role in ("y", "weights"):
        with pytest.raises(ParameterError, match=f"is a table, not one array; give an array .* as {role}"):
            open_table(np.eye(10), **{role: url})
    with pytest.raises(ParameterError, match="made when it is read, not a place"):
        blobs_at(url)
    with pytest.raises(ParameterError, match="made when it is read, not a place"):
        ingest(np.eye(10), url)
    assert list(tmp_path.iterdir()) == []


def test_an_ingested_copy_has_the_same_rows_and_is_recognised(tmp_path: Path) -> None:
    url = "synthetic://friedman?rows=5000&chunk=1024"
    info = ingest(url, tmp_path / "copy.zarr", chunk_rows=1024)
    assert (info.source, info.rows, info.columns) == (
        "synthetic://friedman?rows=5000&seed=0",
        5000,
        open_table(url).columns,
    )
    made, copy = open_table(url), open_table(tmp_path / "copy.zarr")
    assert bits(made, 0, 5000) == bits(copy, 0, 5000)
    assert made.digest(1024, 2048) == copy.digest(1024, 2048)
    labels = ingest("synthetic://checkers?rows=3000&classes=3", tmp_path / "labels.zarr")
    assert labels.classes == (0, 1, 2)


def test_info_of_a_billion_rows() -> None:
    found = table_info("synthetic://friedman?rows=1e9&seed=1")
    assert found == {
        **found,
        "rows": 10**9,
        "features": 10,
        "targets": 1,
        "ingested": False,
        "bytes_decoded": 48 * 10**9,
        "bytes_stored": 0,
        "checksummed": True,
        "source": "friedman 1",
        "statistics": None,
    }
