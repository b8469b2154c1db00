"""The page of boosting: what is drawn of the members and their vote, and what is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
from report.rendered import render, undrawn
from report.test_html import Page

from streamkernel import KernelBoostingClassifier
from streamkernel.models.boosting import BoostingModel
from streamkernel.report.facts.boosting import Margins, VoteErrors, margins, member_weights, vote_errors
from streamkernel.report.facts.fit import Absent


def test_errors_are_those_of_the_record(boosting: BoostingModel) -> None:
    found, solution = vote_errors(boosting), boosting.record.solution
    assert isinstance(found, VoteErrors)
    assert found.held_out is not None
    assert found.held_out.tolist() == [each.vote_validation_error for each in solution.members]
    assert found.kept == int(np.argmin(found.held_out)) + 1
    assert found.rows == solution.validation_rows > 0


def test_margins_below_0_are_the_wrong_rows(boosting: BoostingModel) -> None:
    """All but those with equally many votes for two classes, whose margin is 0."""
    found = margins(boosting)
    assert isinstance(found, Margins)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    wrong = boosting.record.solution.members[boosting.record.solution.kept - 1].vote_training_error
    assert wrong is not None
    assert abs(found.shares[0, : len(found.edges) // 2].sum() - wrong) < 0.02


def test_the_page_tells_members_and_margins(boosting: BoostingModel) -> None:
    texts = " ".join(Page(render(boosting)).texts)
    for words in ("Error against members", "Weights of the members", "Margins of the vote", "resampling (AdaBoost)"):
        assert words in texts
    assert "by Platt's logistic curve" in texts


def test_each_figure_has_a_place_of_its_own(boosting: BoostingModel) -> None:
    """The margins of the vote and those of the check rows had one name, and were drawn into one place."""
    panels = Page(undrawn(boosting)).panels()
    assert {"vote-margins", "margins"} <= set(panels)
    assert len(set(panels)) == len(panels)


def test_three_machines_have_no_path() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 2))
    y = np.sin(2.0 * X[:, 0]) > X[:, 1]
    given: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "member_rows": 50, "validation": 0}
    model = KernelBoostingClassifier(**given, method="filtering").fit(X, y).model_
    assert isinstance(vote_errors(model), Absent)
    assert (member_weights(model).weights == 1.0).all()
    assert "filtering (three machines)" in " ".join(Page(undrawn(model)).texts)
