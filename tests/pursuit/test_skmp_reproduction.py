"""`scripts/reproduce skmp`: its pursuits are those of the package, its outcomes outlive an interruption, its page."""

from __future__ import annotations

import sys
from pathlib import Path

import data_sets
import naive
import numpy as np
import pytest
from private_modules import REPRODUCTIONS, private

from streamkernel.pursuit import pursue

CARD = naive.card()
GAMMA = 0.5  # lengthscale 1


matching = private("_skmp_pursuit")
kept = private("_skmp_outcomes")


@pytest.mark.parametrize(("precision", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_all_columns_compete_as_the_card_prints(precision: type, rtol: float) -> None:
    dictionary = matching.Dictionary(CARD.X, GAMMA, precision)
    everything = matching.stochastic(dictionary, CARD.y, 40, 30, np.random.default_rng(0))
    expected = pursue(CARD.K, CARD.y[:, None], 30, variant="basic")
    for found in (
        matching.full(dictionary, CARD.y, 30, ahead=3),
        matching.full(dictionary, CARD.y, 30, 2, 5),
        everything,
    ):
        assert found.order[:6].tolist() == [27, 29, 36, 9, 22, 36]
        np.testing.assert_allclose(found.rss[1:7], [19.5645, 2.63163, 1.79622, 1.38947, 1.14150, 1.05464], rtol=6e-6)
        np.testing.assert_array_equal(found.order, expected.order)
        np.testing.assert_allclose(found.steps, expected.steps[:, 0], rtol=rtol)


@pytest.mark.parametrize(("precision", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_active_sets_are_split_pools(precision: type, rtol: float) -> None:
    draws = np.random.default_rng(4)
    active = np.concatenate([draws.choice(40, 5, replace=False) for _ in range(25)])
    expected = pursue(
        CARD.K[:, active], CARD.y[:, None], 25, variant="basic", groups=np.repeat(np.arange(25, dtype=np.int64), 5)
    )
    dictionary = matching.Dictionary(CARD.X, GAMMA, precision)
    found = matching.stochastic(dictionary, CARD.y, 5, 25, np.random.default_rng(4))
    np.testing.assert_array_equal(found.order, active[expected.order])
    np.testing.assert_allclose(found.rss, expected.rss[:, 0], rtol=rtol)


def test_errors_and_functions_after_so_many_terms() -> None:
    dictionary = matching.Dictionary(CARD.X, GAMMA)
    path = matching.full(dictionary, CARD.y, 12)
    X, y = CARD.X + 0.3, np.sign(CARD.y)
    found = matching.error_rates(dictionary, path, X, y, [1, 6, 12])
    K = naive.gaussian(X, CARD.X)
    for error, mark in zip(found, (1, 6, 12), strict=True):
        assert error == np.mean(np.sign(K[:, path.order[:mark]] @ path.steps[:mark]) != y)
    # The sixth pick is the third again.
    assert matching.functions(path, [1, 5, 6]) == [1, 5, 5]


def test_fitted_again_is_least_squares() -> None:
    dictionary = matching.Dictionary(CARD.X, GAMMA)
    path = matching.full(dictionary, CARD.y, 12)
    X, y = CARD.X + 0.3, np.sign(CARD.y)
    errors, rss = matching.fitted_again(dictionary, path, CARD.y, X, y, [1, 6, 12])
    for error, left, mark in zip(errors, rss, (1, 6, 12), strict=True):
        rows = np.unique(path.order[:mark])
        a = np.linalg.lstsq(CARD.K[:, rows], CARD.y)[0]
        assert left == pytest.approx(((CARD.y - CARD.K[:, rows] @ a) ** 2).sum(), rel=1e-6)
        assert error == np.mean(np.sign(naive.gaussian(X, CARD.X[rows]) @ a) != y)


def outcome(repeat: int) -> object:
    key = kept.Key(100, "SKMP-59", repeat, 0)
    return kept.Outcome(key, [50, 100], [49, 90], [0.25, 0.2], [0.5, 1.0 / 3.0])


def test_an_outcome_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "skmp.csv"
    first = kept.Kept(file)
    for repeat in (0, 1):
        first.get(outcome(repeat).key, lambda repeat=repeat: outcome(repeat))  # type: ignore[attr-defined,misc]
    whole = file.read_text()
    file.write_text(whole[: len(whole) - 20])
    again = kept.Kept(file)
    assert [key.repeat for key in again.outcomes] == [0]
    assert again.get(outcome(0).key, pytest.fail) == first.outcomes[outcome(0).key]  # type: ignore[attr-defined]
    again.get(outcome(1).key, lambda: outcome(1))  # type: ignore[attr-defined]
    assert file.read_text() == whole


@pytest.mark.slow
def test_the_page_of_a_small_forest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if data_sets.load("covtype-subset") is None:
        pytest.skip("../shared/data/covtype-subset.npz is not there")
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    page = private("_skmp_page")
    skmp = private("skmp")
    for module in (page, skmp):
        monkeypatch.setattr(module, "SIZES", (300, 600))
        monkeypatch.setattr(module, "TESTS", 500)
    monkeypatch.setattr(page, "CLAIMED", 600)
    for name, value in {"TERMS": 200, "LARGE": 400, "COSTS": (1.0, 10.0), "FIRST": 1}.items():
        monkeypatch.setattr(skmp, name, value)
    monkeypatch.setattr(sys, "argv", ["skmp", "--repeats", "2", "--sizes", "300", "600", "--results", str(tmp_path)])
    skmp.main()
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "skmp.csv", "skmp.png"}
    found = kept.Kept(tmp_path / "skmp.csv").outcomes
    # Two repeats of two active sets, KMP and a machine or two for each size; two costs; one fitted again.
    assert len(found) in (2 * (4 + 1 + 1) + 2 + 1, 2 * (4 + 1 + 2) + 2 + 1)
    assert all(each.errors[-1] < 0.4 for each in found.values())
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "Held" in text or "Missed" in text
    # Nothing is run again.
    monkeypatch.setattr(skmp, "pursuit_of", pytest.fail)
    monkeypatch.setattr(skmp, "machine_of", pytest.fail)
    skmp.main()
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text
