"""What each command says of a path that holds something else than it wants, and what info says of each kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import Factor, KernelCCA, KernelPCA, Nystroem, factorize, open_table
from streamkernel.models import RidgeModel

pytestmark = pytest.mark.usefixtures("bare_pages")

THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture(scope="module")
def kinds(store: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind, from the same rows."""
    folder = tmp_path_factory.mktemp("kinds")
    table = open_table(store).without_targets().slice(0, 1000)
    Nystroem(20).fit(table).save(folder / "features")
    pca = KernelPCA(3, basis_size=20, rule="rpcholesky", rule_options={"block": 6}).fit(table)
    pca.save(folder / "components")
    groups = table.columns[:2], table.columns[2:]
    KernelCCA(2, basis_size=20, view_columns=groups, bound_gamma=1.0).fit(table).save(folder / "variates")
    factorize(table, folder / "factor", n_components=20)
    return {
        "table": store,
        "model": model,
        "factor": folder / "factor",
        "nystroem": folder / "features",
        "kernel-pca": folder / "components",
        "kernel-cca": folder / "variates",
    }


@pytest.mark.parametrize("kind", ["model", "factor", "nystroem", "kernel-pca"])
def test_info_describes_each_kind(cli: Callable, kinds: dict[str, Path], kind: str) -> None:
    told: dict[str, Any] = cli("info", kinds[kind], "--json").result
    n = 100 if kind == "model" else 20
    assert (told["basis_size"], told["features"], told["rows"]) == (n, 6, 5000 if kind == "model" else 1000)
    assert told["kernel"] == {"kernel": "gaussian", "lengthscale": told["lengthscale"]}
    path = told["relative_residual_at_rank"]
    assert [*path] == [*(str(2**j) for j in range(7 if kind == "model" else 5)), str(n)]
    assert path[str(n)] == pytest.approx(told["relative_residual_trace"])
    assert told["seconds"] > 0
    assert told["sweeps"] >= 2
    loaded = {
        "model": RidgeModel, "factor": Factor, "nystroem": Nystroem, "kernel-pca": KernelPCA
    }[kind].load(kinds[kind])  # fmt: skip
    kept = getattr(loaded, "model_", loaded)
    assert told["digest"] == kept.digest
    np.testing.assert_allclose([*path.values()], kept.residual_path[[*map(int, path)]] / kept.residual_path[0])
    printed = cli("info", kinds[kind]).out
    assert printed.splitlines()[0] == (kind if kind in ("model", "factor") else "transformer")
    assert f"{n}: {100 * told['relative_residual_trace']:.3g}"[:6] in printed
    assert "{" not in printed


def test_info_of_kernel_pca_tells_of_its_components(cli: Callable, kinds: dict[str, Path]) -> None:
    told = cli("info", kinds["kernel-pca"], "--json").result
    pca = KernelPCA.load(kinds["kernel-pca"])
    assert (told["estimator"], told["components"]) == ("kernel-pca", 3)
    assert told["relative_residual_of_components"] == pca.relative_residual_trace_ > told["relative_residual_trace"]
    assert told["rule_options"] == {"block": 6}
    assert (told["bound"], told["bound_is_vacuous"], told["bound_is_least_at"]) == (
        pca.bound_.minimum, pca.bound_.vacuous, pca.bound_.best_size
    )  # fmt: skip
    assert "block 6" in cli("info", kinds["kernel-pca"]).out


def test_info_of_kernel_cca_tells_of_both_views(cli: Callable, kinds: dict[str, Path]) -> None:
    told = cli("info", kinds["kernel-cca"], "--json").result
    cca = KernelCCA.load(kinds["kernel-cca"])
    assert (told["estimator"], told["components"], told["features"], told["features_of_second_view"]) == (
        "kernel-cca", 2, 2, 4
    )  # fmt: skip
    assert told["correlations"] == cca.correlations_.tolist()
    assert (told["rule"], told["basis_size"], told["rows"]) == ("cross-quotient", 20, 1000)
    assert (told["bound"], told["bound_is_vacuous"]) == (cca.bound_.minimum, True)
    assert told["digest"] == cca.model_.digest
    assert "vacuous" in cli("info", kinds["kernel-cca"]).out


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("factor", "is a factor, not a model that predicts; make a model with streamkernel fit"),
        ("nystroem", "is a Nystroem transformer, not a model that predicts; streamkernel transform is for it"),
        ("kernel-pca", "is a kernel PCA, not a model that predicts; streamkernel transform is for it"),
        ("kernel-cca", "is a kernel CCA, not a model that predicts; streamkernel transform is for it"),
        ("table", "is not a saved model"),
    ],
)
def test_what_predicts_wants_a_model(
    cli: Callable, kinds: dict[str, Path], store: Path, tmp_path: Path, kind: str, said: str
) -> None:
    commands = [("predict", kinds[kind], store, tmp_path / "p"), ("evaluate", kinds[kind], store)]
    for command in commands:
        assert said in cli(*command, *THREADS).error
    if kind in ("nystroem", "table"):
        assert said in cli("report", kinds[kind], tmp_path / "r.html").error
    if kind != "factor":
        two = cli("report", kinds["factor"], kinds[kind], tmp_path / "r.html").error
        assert f"{kinds[kind]} is not a factor" in two
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["kernel-pca", "kernel-cca"])
def test_a_page_of_a_subspace(cli: Callable, kinds: dict[str, Path], store: Path, tmp_path: Path, kind: str) -> None:
    assert cli("report", kinds[kind], tmp_path / "page.html", "--json").result["bytes"] > 10_000
    for option in (("--weight", "none", "--data", store), ("--png", tmp_path / "page.png")):
        assert f"{option[0]} is of models that predict" in cli("report", kinds[kind], tmp_path / "x", *option).error


@pytest.mark.parametrize("kind", ["model", "nystroem", "kernel-pca"])
def test_what_reads_rows_wants_a_table(cli: Callable, kinds: dict[str, Path], tmp_path: Path, kind: str) -> None:
    for command in ("fit", "factor", "plan"):
        out = () if command == "plan" else (tmp_path / "out",)
        assert "not a table" in cli(command, kinds[kind], *out, *THREADS).error
    assert not list(tmp_path.iterdir())


def test_a_part_of_a_factor_is_not_the_factor(cli: Callable, kinds: dict[str, Path], store: Path) -> None:
    basis = kinds["factor"] / "basis"
    for command in (("info", basis), ("evaluate", basis, store)):
        assert "is the basis of a factor; give the path of the factor" in cli(*command).error
    assert cli("info", kinds["factor"] / "rows", "--json").result["features"] == 20


def test_outputs_of_one_kind_do_not_replace_another(cli: Callable, kinds: dict[str, Path], store: Path) -> None:
    before = (kinds["nystroem"] / "config.json").read_bytes()
    assert "is not a factor" in cli("factor", store, kinds["nystroem"], "--overwrite", *THREADS).error
    assert "no output is made inside of another one" in cli("fit", store, kinds["factor"] / "m", *THREADS).error
    assert "exists" in cli("fit", store, kinds["factor"], "--overwrite", *THREADS).error
    assert (kinds["nystroem"] / "config.json").read_bytes() == before
    assert cli("info", kinds["factor"]).status == 0
