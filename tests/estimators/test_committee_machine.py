"""The Bayesian committee machine as users have it: members are a parameter of the model, and updates refit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from problems import cut_session, zarr_of_chunks
from slow_cases import slow_but

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.fits import fit_gaussian
from streamkernel.fits.gaussian import _members
from streamkernel.settings import CommitteeSettings

pytestmark = pytest.mark.usefixtures("few_points", "few_rows_for_degrees")

M, BLOCK, N, SAMPLED = 1500, 100, 80, 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (M, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * RNG.standard_normal(M)
ASKED = RNG.uniform(-2, 2, (50, 2))
# The pivots of 80 functions of this lengthscale are 1e-8 or more. With 1.0 the last ones are at the tolerance of 1e-12:
# how many are independent, and most digits of the coefficients, then depend on the processor.
GIVEN: dict[str, Any] = {"lengthscale": 0.6, "signal_variance": 1.5, "noise_variance": 0.02, "block_size": BLOCK}


def machine(n: int = N, **options: Any) -> BayesianCommitteeMachine:
    return BayesianCommitteeMachine(n, **{**GIVEN, **options})


@pytest.fixture(scope="module")
def few_rows_for_degrees() -> Iterator[None]:
    """The degrees of freedom are estimated from 400 rows, not from all: it costs their cube, in every fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_members, "DEGREES_ROWS", SAMPLED)
        yield


@pytest.fixture(scope="module")
def fitted() -> dict[str, BayesianCommitteeMachine]:
    """By partition, of all rows; not to be changed."""
    return {partition: machine(partition=partition).fit(X, Y) for partition in ("rows", "cells")}


@pytest.mark.parametrize("partition", [pytest.param("rows", marks=pytest.mark.slow), "cells"])
def test_members_are_those_of_the_rows_whatever_their_chunks(
    fitted: dict[str, BayesianCommitteeMachine], partition: str, tmp_path: Path
) -> None:
    """Chunks change the order of sums, and nothing else: also those that cut members."""
    expected = fitted[partition]
    for chunk in (130, 777):
        path = zarr_of_chunks(tmp_path / f"{chunk}.zarr", X, Y, chunk)
        model = machine(partition=partition).fit(path)
        np.testing.assert_array_equal(model.component_indices_, expected.component_indices_)
        for one, two in zip(
            model.predict(ASKED, return_std=True), expected.predict(ASKED, return_std=True), strict=True
        ):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(model.member_weights_, expected.member_weights_, rtol=1e-9)
        assert model.log_marginal_likelihood_value_ == pytest.approx(expected.log_marginal_likelihood_value_, rel=1e-10)


@pytest.mark.parametrize("partition", ["rows", pytest.param("cells", marks=pytest.mark.slow)])
def test_the_number_of_threads_changes_no_bit(partition: str, tmp_path: Path) -> None:
    table = open_table(zarr_of_chunks(tmp_path / "rows.zarr", X, Y, 130))
    settings = CommitteeSettings(n_components=N, partition=partition, **GIVEN | {"block_size": 60})

    def session(threads: int) -> Session:
        # A table of this size is one task: to have several, spans of two members. Cells have no common length.
        return cut_session((120,), 60, threads) if partition == "rows" else Session(ThreadExecutor(threads))

    digests = {fit_gaussian(table, settings, session(threads), estimator="committee").digest for threads in (1, 3)}
    assert len(digests) == 1


def test_it_is_pitc_with_the_basis_as_query_points(fitted: dict[str, BayesianCommitteeMachine]) -> None:
    committee = fitted["rows"]
    process = GaussianProcessRegressor(N, approximation="pitc", **GIVEN).fit(X, Y)
    for one, two in zip(
        committee.predict(ASKED, return_std=True), process.predict(ASKED, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    assert committee.model_.config["estimator"] == "committee"
    assert committee.score(ASKED, np.sin(2 * ASKED[:, 0]) + 0.3 * ASKED[:, 1] ** 2) > 0.995


@pytest.mark.parametrize(
    ("block_size", "members"), slow_but([(130, 12), (5000, 1)], [(100, 15), (130, 12), (1500, 1), (5000, 1)])
)
def test_weights_of_members(block_size: int, members: int) -> None:
    weights = machine(block_size=block_size).fit(X, Y).member_weights_
    assert weights.shape == (members,)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (weights > 0.0).all()
    if block_size == 130:
        assert weights[-1] == weights.min()  # 70 rows


def test_members_of_near_rows(fitted: dict[str, BayesianCommitteeMachine]) -> None:
    """As many as the cells cut, and their blocks hold more of what rows share: the evidence is larger."""
    near, mixed = fitted["cells"], fitted["rows"]
    assert near.member_weights_.sum() == pytest.approx(1.0, rel=1e-12)
    assert len(near.member_weights_) >= 15
    assert near.model_.arrays["cells"].shape[1] == 2
    assert "cells" not in mixed.model_.arrays
    assert np.abs(near.predict(ASKED) - mixed.predict(ASKED)).max() < 0.1
    with pytest.warns(StreamKernelWarning, match="6 query points"):
        few_near, few_mixed = machine(6, partition="cells").fit(X, Y), machine(6).fit(X, Y)
    assert few_near.log_marginal_likelihood_value_ > few_mixed.log_marginal_likelihood_value_


def test_too_few_query_points_are_warned_of() -> None:
    with pytest.warns(
        StreamKernelWarning, match=r"the committee has 6 query points for .* effective degrees of freedom or more"
    ) as caught:
        model = machine(6).fit(X, Y)
    assert len(caught) == 1
    rule = model.model_.config["query_set"]
    assert rule["points"] == 6 < rule["from_sample"]
    assert rule["sample"] == SAMPLED
    # No warning with as many as it says.
    enough = machine(int(np.ceil(rule["from_sample"]))).fit(X, Y)
    assert enough.model_.config["query_set"]["points"] >= rule["from_sample"]


@pytest.mark.filterwarnings("ignore:the committee has")
@pytest.mark.filterwarnings("ignore:only .* basis functions")  # how many are depends on the last digits
def test_hyper_parameters_by_evidence() -> None:
    model = BayesianCommitteeMachine(N, block_size=BLOCK).fit(X, Y)
    assert 0.005 < model.noise_variance_[0] < 0.02
    assert model.model_.config["tuning"]["moved"] == ["lengthscale", "signal", "noise"]
    error = model.predict(ASKED) - np.sin(2 * ASKED[:, 0]) - 0.3 * ASKED[:, 1] ** 2
    assert np.sqrt((error**2).mean()) < 0.05


# --- appended rows ------------------------------------------------------------------------------------------------


def check_is_refit(updated: BayesianCommitteeMachine, whole: BayesianCommitteeMachine) -> None:
    """The same basis, and so the same sums."""
    np.testing.assert_array_equal(updated.components_, whole.components_)
    for name in ("sum_H", "sum_g", "sum_YY", "dual_coef", "shares", "signal_variance", "noise_variance"):
        expected = whole.model_.arrays[name]
        np.testing.assert_allclose(
            updated.model_.arrays[name], expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max(), err_msg=name
        )
    assert updated.log_marginal_likelihood_value_ == pytest.approx(whole.log_marginal_likelihood_value_, rel=1e-10)
    np.testing.assert_allclose(updated.predict(ASKED), whole.predict(ASKED), rtol=1e-8, atol=1e-9)


def whole_of(model: BayesianCommitteeMachine, rows: int) -> BayesianCommitteeMachine:
    """A fit of the model's basis to the first rows, by its own sums."""
    old = model.model_
    table = old.prepare(open_table(X[:rows], Y[:rows]))
    sums = Session(ThreadExecutor(1)).sweep(old.reduction_of_rows(rows), table, "again")
    whole = BayesianCommitteeMachine(N, **GIVEN)
    return whole._adopt(old.with_sums(sums))


@pytest.mark.parametrize("partition", ["rows", pytest.param("cells", marks=pytest.mark.slow)])
def test_an_update_of_whole_members_is_the_fit_to_all_rows(partition: str) -> None:
    # Members of cells are cut within 16 times as many rows.
    model = machine(partition=partition, block_size=50).fit(X[:800], Y[:800])
    whole = whole_of(model, M)
    model.update(X, Y)
    assert (model.last_update_.rows_folded, model.last_update_.rows_seen_before) == (M - 800, 800)
    check_is_refit(model, whole)
    assert model.member_weights_ is None
    digest = model.model_.digest
    assert model.update(X, Y).model_.digest == digest
    assert model.last_update_.rows_folded == 0


def test_an_update_in_steps() -> None:
    model = machine().fit(X[:500], Y[:500])
    whole = whole_of(model, 1300)
    for stop in (700, 1000, 1300):
        model.update(X[:stop], Y[:stop])
    check_is_refit(model, whole)
    assert model.model_.config["updates"]["times"] == 3


def test_members_that_are_cut_elsewhere_are_another_committee() -> None:
    """New rows begin a new member: of 530 rows the sixth has 30, as when it was fitted."""
    model = machine().fit(X[:530], Y[:530])
    whole = whole_of(model, 1000)
    model.update(X[:1000], Y[:1000])
    assert model.model_.config["totals"]["rows"] == 1000
    difference = np.abs(model.predict(ASKED) - whole.predict(ASKED)).max()
    assert 1e-9 < difference < 0.05


def test_saved_loaded_and_updated(tmp_path: Path) -> None:
    model = machine(partition="cells", block_size=50).fit(X[:800], Y[:800])
    model.save(tmp_path / "model")
    again = BayesianCommitteeMachine.load(tmp_path / "model")
    np.testing.assert_array_equal(again.member_weights_, model.member_weights_)
    np.testing.assert_array_equal(again.predict(ASKED), model.predict(ASKED))
    assert again.model_.digest == model.model_.digest
    assert again.update(X, Y).model_.digest == model.update(X, Y).model_.digest
    lazy = again.predict(da.from_array(ASKED, chunks=(20, -1)), return_std=True)
    np.testing.assert_allclose(
        lazy[1].compute(scheduler="threads"), model.predict(ASKED, return_std=True)[1], rtol=1e-12
    )


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"block_size": 0}, "block_size"),
        ({"block_size": 1.5}, "block_size"),
        ({"partition": "order"}, "partition"),
        ({"signal_variance": -1.0}, "signal_variance"),
        ({"tune": "never"}, "tune"),
        ({"tune": "none", "ard": True, "lengthscale": "evidence"}, "ard"),
    ],
)
def test_bad_parameters(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        machine(**options).fit(object(), object())


def test_blocks_that_do_not_fit_are_refused_by_the_plan() -> None:
    rows = da.zeros((200_000, 5), chunks=(10_000, -1))
    with pytest.raises(ResourceLimitError, match="projected memory"):
        machine(memory_limit="2GB", block_size=50_000).fit(rows, da.zeros(200_000, chunks=10_000))
