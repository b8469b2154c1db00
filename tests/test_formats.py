"""docs/model.md against what is written, by plain zarr and JSON: every field, every array, its shape and dtype."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
)
from streamkernel.errors import StreamKernelWarning

pytestmark = pytest.mark.usefixtures("few_points")

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "model.md").read_text(encoding="utf-8")
Table = list[list[str]]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
LABELS = np.digitize(Y[:, 0], [-0.5, 0.5])
COUNTS = RNG.poisson(np.exp(Y[:, 0]))
LOOK_AHEAD: dict[str, Any] = {"rule": "csi-lookahead"}
GIVEN: dict[str, Any] = {"lengthscale": 1.5, "signal_variance": 2.0, "tune": "none"}


def committee(**options: Any) -> BayesianCommitteeMachine:
    """Of 20 landmarks and perhaps a few queries: too few, and a warning says so."""
    with pytest.warns(StreamKernelWarning, match="query points"):
        return BayesianCommitteeMachine(20, block_size=30, **options).fit(X, Y)


def updated() -> KernelRidge:
    return KernelRidge(20).fit(X[:90], Y[:90]).update(X[90:], Y[90:])


def gp_updated() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(20, **GIVEN).fit(X[:90], Y[:90]).update(X[90:], Y[90:])


# What writes each of them, and where its own fields are described.
WRITTEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "model": ("Model", lambda path: KernelRidge(20, lengthscale="auto").fit(X, Y).save(path)),
    "model, look-ahead": ("Model", lambda path: KernelRidge(20, **LOOK_AHEAD).fit(X, Y[:, 0]).save(path)),
    "model, mixture": ("Model", lambda path: KernelRidge(20, objective=0.5).fit(X.astype(np.float32), Y).save(path)),
    "model, cg": ("Model", lambda path: KernelRidge(20, alpha=0.1, solver="cg").fit(X, Y).save(path)),
    "model, cg by folds": ("Model", lambda path: KernelRidge(20, alpha="cv", solver="cg").fit(X, Y).save(path)),
    "model, updated": ("Model", lambda path: updated().save(path)),
    "model, metric": ("Model", lambda path: KernelRidge(20, metric="learned").fit(X, Y[:, 0]).save(path)),
    "model, given metric": ("Model", lambda path: KernelRidge(20, metric=np.eye(3)[:, :2]).fit(X, Y).save(path)),
    "classifier": ("Model", lambda path: KernelRidgeClassifier(20, scale="none").fit(X, LABELS).save(path)),
    "gp": ("Gaussian process", lambda path: GaussianProcessRegressor(20).fit(X, Y).save(path)),
    "gp, dtc": (
        "Gaussian process",
        lambda path: GaussianProcessRegressor(20, approximation="dtc").fit(X, Y).save(path),
    ),
    "gp, full": (
        "Gaussian process",
        lambda path: GaussianProcessRegressor(20, tune="full", ard=True).fit(X, Y[:, 0]).save(path),
    ),
    "gp, given": (
        "Gaussian process",
        lambda path: GaussianProcessRegressor(20, noise_variance=0.1, **GIVEN).fit(X, Y[:, 0]).save(path),
    ),
    "gp, updated": ("Gaussian process", lambda path: gp_updated().save(path)),
    "committee": ("Gaussian process", lambda path: committee(noise_variance=0.1, **GIVEN).save(path)),
    "committee, cells": (
        "Gaussian process",
        lambda path: committee(partition="cells", queries=X[:3] + 0.5).save(path),
    ),
    "gp classifier": (
        "Generalised Gaussian process",
        lambda path: GaussianProcessClassifier(20, **GIVEN).fit(X, LABELS).save(path),
    ),
    "gp classifier, two classes": (
        "Generalised Gaussian process",
        lambda path: GaussianProcessClassifier(20).fit(X, LABELS == 0).save(path),
    ),
    "poisson": (
        "Generalised Gaussian process",
        lambda path: GaussianProcessPoissonRegressor(20).fit(X, COUNTS).save(path),
    ),
    "nystroem": ("Nystroem", lambda path: Nystroem(20, rule="rpcholesky").fit(X).save(path)),
    "kernel pca, sparse": ("KernelPCA", lambda path: KernelPCA(2, sparse="bound", basis_size=20).fit(X).save(path)),
    "kernel cca": ("KernelCCA", lambda path: KernelCCA(2, basis_size=12, bound_gamma=1.0).fit(X, Y).save(path)),
    "kernel pca": ("KernelPCA", lambda path: KernelPCA(4, basis_size=20).fit(X).save(path)),
    "factor": ("Factor", lambda path: factorize(X, path, n_components=20)),
    "factor, look-ahead": ("Factor", lambda path: factorize(X, path, Y, n_components=20, **LOOK_AHEAD)),
    "factor, bound": ("Factor", lambda path: factorize(X, path, n_components=40, stop="bound", dtype="float64")),
    "factor, no columns": ("Factor", lambda path: factorize(X, path, n_components=20, columns="none")),
}
KINDS = {
    "Model": "kernel-ridge",
    "Gaussian process": "gaussian-process",
    "Generalised Gaussian process": "generalised-gaussian-process",
    "Support vector machine": "support-vector-classifier",
    "Nystroem": "nystroem",
    "KernelPCA": "kernel-pca",
    "KernelCCA": "kernel-cca",
    "Factor": "factor",
}


def tables(heading: str, first: str) -> list[Table]:
    """Tables below a heading, whose first column is called `first`; cells of each row."""
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    every = re.findall(r"(?:^\|.*\|\n)+", found[1], re.MULTILINE)
    rows = [[re.split(r" \| ", line.strip("| \n")) for line in table.splitlines()] for table in every]
    return [table[2:] for table in rows if table[0][0] == first]


def named(table: Table) -> dict[str, list[str]]:
    """Cells of each name; a row may be of several."""
    return {name: cells[1:] for cells in table for name in re.findall(r"`(\w+)`", cells[0])}


def keys_within(value: Any) -> Iterator[str]:
    """Names of all fields inside a field; those of kernels and of rules have their own pages."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            for key, inner in entry.items():
                yield key
                if key not in ("kernel", "rule_options"):
                    yield from keys_within(inner)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``written("model")``: where it is."""
    folder = tmp_path_factory.mktemp("formats")

    def write(name: str) -> Path:
        path = folder / name.replace(", ", "-").replace(" ", "-")
        if not path.exists():
            WRITTEN[name][1](path)
        return path

    return write


def bundle_of(path: Path) -> Path:
    return path / "basis" if (path / "basis").exists() else path


@pytest.mark.parametrize("name", WRITTEN)
def test_every_field_has_its_place_on_the_page(written: Callable[[str], Path], name: str) -> None:
    header = json.loads((bundle_of(written(name)) / "config.json").read_text(encoding="utf-8"))
    section = WRITTEN[name][0]
    told = named(tables("A basis, kept", "field")[0])
    assert header.keys() == told.keys()
    assert told["format"][0].startswith(f'`"{header["format"]}"`, {header["format_version"]}:')
    assert header["kind"] == KINDS[section]
    assert f'`"{header["kind"]}"`' in told["kind"][0]
    assert re.search(rf"\b(and|or) {header['version']}\b", told["version"][0])
    general = named(tables("Fields of every configuration", "field")[0])
    described = general | named(tables(section, "field")[0])
    # The other sections refer to the fields of a model.
    known = described | named(tables("Model", "field")[0])
    optional = {field for field, cells in known.items() if "absent where" in cells[0]}
    config = header["config"]
    assert described.keys() - optional <= config.keys() <= described.keys()
    updates = named(tables("What a model has seen", "name")[0])
    for field, value in config.items():
        if field == "updates" and value is not None:
            assert value.keys() == updates.keys()
        elif field not in ("kernel", "software"):
            assert {key for key in keys_within(value) if f"`{key}`" not in described[field][0]} == set(), field
    assert set(config["volatile"]) == {"run", "volatile", "software"}
    assert f'"{config["ended"]}"' in described["ended"][0]


def optional_arrays(config: dict[str, Any]) -> set[str]:
    """Names of the arrays that a model of this configuration has beside those that all of its kind have."""
    names = {"tuning_parameters", "tuning_values", "tuning_stage"} if config.get("tuning") else set()
    choice = config.get("metric_choice")
    learned = bool(choice) and choice["rounds"][choice["best"]]["form"] != "none"
    if learned or config["settings"].get("metric", "none").startswith("given"):
        names |= {"metric", "points"}
    if config.get("solution", {}).get("solver") == "direct":
        names |= {"sum_H", "sum_g", "sum_YY", "sum_G1", "sum_Y1", "centre"}
        names |= {"gcv_alphas", "gcv_scores", "gcv_effective_df"}
    if config.get("approximation") == "pitc":
        names |= {"member_weights"} | ({"cells"} if config["settings"]["partition"] == "cells" else set())
    if config.get("bound"):
        names |= {"bound_sizes", "bound_errors"}
    if "likelihood" in config:
        predicted = {"check_probability"} if config["classes"] else {"check_predicted", "check_std"}
        names |= predicted | {"covariance"}
    return names


def letters_of(config: dict[str, Any], arrays: dict[str, Any]) -> dict[str, int]:
    """Letters of shapes that only Gaussian processes have."""
    letters = {}
    if "cca" in config:
        second = config["views"][1]["names"]
        return {"r": config["cca"]["count"], "q": len(second), "s": arrays["bound_sizes"].shape[0]}
    if config.get("tuning"):
        letters = {"t": arrays["tuning_values"].shape[0], "k": len(config["tuning"]["parameters"])}
    if config.get("block_size"):
        letters |= {"B": arrays["member_weights"].shape[0], "C": arrays["cells"].shape[0] if "cells" in arrays else 0}
    if "likelihood" in config:
        classes = len(config["classes"] or [])
        many = config["likelihood"] == "softmax"
        f, r = (classes, classes - 1) if many else (1, 1)
        letters |= {"f": f, "r": r, "q": r * (r + 1) // 2}
    return letters


@pytest.mark.parametrize("name", WRITTEN)
def test_every_array_is_as_described(written: Callable[[str], Path], name: str) -> None:
    path = bundle_of(written(name))
    arrays = dict(zarr.open_group(str(path), mode="r").arrays())
    always, mapped, sometimes = map(named, tables("Arrays of every basis", "array"))
    own, *optional = [named(table) for table in tables(WRITTEN[name][0], "array")] or [{}]
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))["config"]
    wanted = optional_arrays(config)
    extra = mapped | {array: cells for table in optional for array, cells in table.items()}
    assert wanted <= extra.keys()
    described = always | sometimes | own | {array: extra[array] for array in wanted}
    assert described.keys() - sometimes.keys() <= arrays.keys() <= described.keys()
    n, w = arrays["components"].shape
    p = arrays["metric"].shape[0] if "metric" in arrays else w
    letters = {"n": n, "p": p, "w": w, "d": len(config.get("classes") or config.get("target_names") or [])}
    letters |= {"c": config.get("check", {}).get("rows"), "r": config.get("eigen", {}).get("count")}
    letters |= letters_of(config, arrays)
    assert n == config["basis_size"]
    for array, (shape, *_) in described.items():
        if array not in arrays:
            continue
        stored = arrays[array]
        ways = [
            tuple(letters[letter] + int(more or 0) if letter in letters else int(letter)
                  for letter, more in re.findall(r"(\w+)(?: \+ (\d+))?", one))
            for one in re.findall(r"\(([^)]*)\)", shape)
        ]  # fmt: skip
        assert stored.shape in ways, array
        table_dtype = "float32" if name == "model, mixture" else "float64"
        expected = table_dtype if "dtype of the table" in shape else "int64" if "int64" in shape else "float64"
        assert stored.dtype == expected, array
        metadata = json.loads((path / array / "zarr.json").read_text(encoding="utf-8"))
        assert metadata["fill_value"] == (0 if expected == "int64" else "NaN")
        assert [codec["name"] for codec in metadata["codecs"]] == ["bytes", "crc32c"]
    rule = config["rule"]
    assert bool(sometimes.keys() & arrays.keys()) == (rule == "csi-lookahead" or config["settings"]["objective"] == 0.5)
    assert (arrays["gains"].shape == (0,)) == (rule in ("rpcholesky", "leverage", "kmeans", "uniform"))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_manifest_is_of_all_files(written: Callable[[str], Path], name: str) -> None:
    path = bundle_of(written(name))
    manifest = json.loads((path / "COMPLETE").read_text(encoding="utf-8"))
    assert manifest.keys() == {"format", "version", "metadata", "arrays"}
    assert f'`format` (`"{manifest["format"]}"`), `version` ({manifest["version"]})' in PAGE
    files = {str(file.relative_to(path)) for file in path.rglob("*.json")}
    assert manifest["metadata"].keys() == files
    members = {member for member, _ in zarr.open_group(str(path), mode="r").arrays()}
    assert manifest["arrays"].keys() == members
    assert all(entry.keys() == {"shape", "dtype", "digest"} for entry in manifest["arrays"].values())


@pytest.mark.parametrize("name", [name for name in WRITTEN if name.startswith("factor")])
def test_the_columns_of_a_factor(written: Callable[[str], Path], name: str) -> None:
    path = written(name)
    config = json.loads((path / "basis" / "config.json").read_text(encoding="utf-8"))["config"]
    assert {entry.name for entry in path.iterdir()} == {"basis"} | (set() if config["columns"] is None else {"rows"})
    if config["columns"] is None:
        return
    rows = zarr.open_group(str(path / "rows"), mode="r")
    G: Any = rows["G"]
    n = config["basis_size"]
    assert G.shape == (len(X), n)
    assert str(G.dtype) == config["columns"]["dtype"] == ("float64" if name == "factor, bound" else "float32")
    assert G.chunks[1] == n
    assert G.chunks[0] * n * G.dtype.itemsize <= 16 * 2**20
    metadata = json.loads((path / "rows" / "G" / "zarr.json").read_text(encoding="utf-8"))
    assert metadata["fill_value"] == "NaN"
    assert [codec["name"] for codec in metadata["codecs"]] == ["bytes", "crc32c"]
    assert rows.attrs.asdict().keys() == {"format", "version", "rows", "kernel"}
    assert rows.attrs["rows"] == [0, len(X)]
    assert f'| `"{rows.attrs["format"]}"`, {rows.attrs["version"]} |' in PAGE
    assert rows.attrs["kernel"] == config["kernel"]
    manifest = json.loads((path / "rows" / "COMPLETE").read_text(encoding="utf-8"))
    assert len(manifest["arrays"]["G"]["digests"]) == -(-len(X) // G.chunks[0])
    left = zarr.open_group(str(path / "basis"), mode="r")["residual_path"]
    squares = np.cumsum((G[:].astype(np.float64) ** 2).sum(axis=0))
    np.testing.assert_allclose(left[:], len(X) - np.concatenate([[0.0], squares]), atol=1e-9)
    # The first columns are a factor of their own.
    Z, scaler = zarr.open_group(str(path / "basis"), mode="r")["components"][:5], config["scaler"]
    K = np.exp(
        -((((X - scaler["mean"]) / scaler["scale"])[:, None] - Z) ** 2).sum(-1) / (2 * config["lengthscale"] ** 2)
    )
    first = K @ np.linalg.solve(np.exp(-((Z[:, None] - Z) ** 2).sum(-1) / (2 * config["lengthscale"] ** 2)), K.T)
    np.testing.assert_allclose(G[:, :5].astype(np.float64) @ G[:, :5].T, first, atol=1e-5)


def test_formulas_of_the_page(written: Callable[[str], Path]) -> None:
    """A prediction, features and scores from what is stored, as the page says."""
    loaded: dict[str, Any] = {
        "model": KernelRidge.load(written("model")).predict(X),
        "nystroem": Nystroem.load(written("nystroem")).transform(X),
        "kernel pca": KernelPCA.load(written("kernel pca")).transform(X),
    }
    for name, expected in loaded.items():
        path = written(name)
        stored: Any = zarr.open_group(str(path), mode="r")
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))["config"]
        rows = (X - config["scaler"]["mean"]) / config["scaler"]["scale"]
        squares = ((rows[:, None] - stored["components"][:]) ** 2).sum(axis=2)
        K = np.exp(-squares / (2 * config["lengthscale"] ** 2))
        if name == "nystroem":
            found = K @ stored["normalization"][:].T
            np.testing.assert_array_equal(np.triu(stored["normalization"][:], 1), 0.0)
        else:
            found = K @ stored["dual_coef"][:] + stored["intercept"][:]
        np.testing.assert_allclose(found, expected, atol=1e-7)
    pca: Any = zarr.open_group(str(written("kernel pca")), mode="r")
    directions = pca["directions"][:]
    np.testing.assert_allclose(directions.T @ directions, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(pca["intercept"][:], -pca["mean"][:] @ directions, atol=1e-12)
    assert (np.diff(pca["eigenvalues"][:]) <= 0).all()
