"""A table with several targets: the command line and Python make one model, with a column a target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from streamkernel import GaussianProcessRegressor, KernelMatchingPursuit, KernelRidge, ingest, open_table
from streamkernel.estimators.base import SupervisedEstimator


@pytest.mark.parametrize(
    ("estimator", "kind", "given"),
    [("ridge", KernelRidge, {}), ("gp", GaussianProcessRegressor, {"signal_variance": 1.0, "noise_variance": 0.1})],
)
@pytest.mark.parametrize("targets", [1, 2])
def test_one_digest(
    cli: Callable,
    tmp_path: Path,
    estimator: str,
    kind: type[SupervisedEstimator],
    given: dict[str, float],
    targets: int,
) -> None:
    draws = np.random.default_rng(3)
    X = draws.standard_normal((400, 3))
    Y = np.sin(X[:, :targets]) + 0.1 * draws.standard_normal((400, targets))
    store = tmp_path / "table"
    np.savez(tmp_path / "rows.npz", X=X, y=Y if targets > 1 else Y[:, 0])
    ingest(tmp_path / "rows.npz", store)
    cli(
        *("fit", store, tmp_path / "model", "--estimator", estimator, "--basis", "20", "--lengthscale", "2"),
        *(part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)),
        *("--seed", "0", "--scheduler", "threads", "--quiet"),
    )
    fitted = kind(20, lengthscale=2.0, random_state=0, **given).fit(open_table(store))
    loaded = kind.load(tmp_path / "model")
    assert loaded.model_.digest == fitted.model_.digest
    assert loaded.predict(X).shape == ((400, 2) if targets > 1 else (400,))


def test_the_score_by_which_alpha_is_chosen_is_said_to_be_a_sum_over_targets(cli: Callable, tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    X = draws.standard_normal((200, 2))
    y = np.sin(X[:, 0]) + 0.1 * draws.standard_normal(200)
    shown = []
    for name, Y in {"one": y, "two": np.column_stack([y, y])}.items():
        np.savez(tmp_path / "rows.npz", X=X, y=Y)
        ingest(tmp_path / "rows.npz", tmp_path / name)
        fit = (
            "fit",
            tmp_path / name,
            tmp_path / f"{name}.zarr",
            "--basis",
            "20",
            "--lengthscale",
            "2",
            "--alpha",
            "0.1",
        )
        [line] = [line for line in cli(*fit, "--quiet").out.splitlines() if line.startswith("gcv ")]
        number, _, unit = line.removeprefix("gcv ").strip().partition(", ")
        assert unit == "squared error per row of scaled targets"
        shown.append(float(number))
    assert shown[1] == pytest.approx(2.0 * shown[0], rel=1e-5)


@pytest.fixture
def two_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(3)
    frame = pd.DataFrame(draws.standard_normal((200, 2)), columns=["a", "b"])
    return frame.assign(u=np.sin(frame["a"]), v=1000.0 * frame["b"])


def test_targets_are_matched_by_name(cli: Callable, two_targets: pd.DataFrame) -> None:
    for name, frame in (("same", two_targets), ("other", two_targets[["v", "b", "u", "a"]])):
        ingest(frame, f"{name}.zarr", target=["u", "v"], dtype="float64")
    for name, model in (("same", "m"), ("other", "m2")):
        cli("fit", "same.zarr", model, "--basis", "20", "--quiet")
        cli("update", model, f"{name}.zarr", "--as-new", "--quiet")
    same, other = (cli("evaluate", "m", f"{name}.zarr", "--quiet", "--json").result for name in ("same", "other"))
    assert same["r2"] > 0.9
    assert other["r2"] == pytest.approx(same["r2"], rel=1e-12)
    first, second = (KernelRidge.load(model) for model in ("m", "m2"))
    X = two_targets[["a", "b"]]
    np.testing.assert_allclose(second.predict(X), first.predict(X), rtol=1e-6)


def test_targets_of_validation_rows_are_matched_by_name(two_targets: pd.DataFrame) -> None:
    ingest(two_targets, "fitted.zarr", target=["u", "v"], dtype="float64")
    fitted, found = open_table("fitted.zarr"), []
    for columns in (["a", "b", "u", "v"], ["v", "u", "a", "b"]):
        ingest(two_targets[columns], "rows.zarr", target=["u", "v"], dtype="float64", overwrite=True)
        model = KernelMatchingPursuit(20, validation=open_table("rows.zarr")).fit(fitted)
        found.append(model.predict(two_targets[["a", "b"]]))
    np.testing.assert_array_equal(*found)


def test_a_file_is_evaluated_by_a_model_without_a_schema(cli: Callable, two_targets: pd.DataFrame) -> None:
    """A model that Python fitted to columns of a frame, and one of columns without names."""
    X, Y = two_targets[["a", "b"]], two_targets[["u", "v"]]
    KernelRidge(20).fit(X, Y).save("named")
    KernelRidge(20).fit(X.to_numpy(), Y.to_numpy()).save("unnamed")
    of_names = {"named": ["a", "b", "y0", "y1"], "unnamed": ["x0", "x1", "y0", "y1"]}
    for model, names in of_names.items():
        two_targets.set_axis(names, axis="columns")[names[::-1]].to_csv("rows.csv", index=False)
        assert cli("evaluate", model, "rows.csv", "--quiet", "--json").result["r2"] > 0.9
    two_targets.to_csv("rows.csv", index=False)
    assert "there is no target column 'y0'" in cli("evaluate", "named", "rows.csv").error
