"""One sweep of boosting: masses and draws against all rows in memory, codes that are kept, and codes that are lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import boosting as naive

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.kernels import Gaussian
from streamkernel.reductions.boosting import (
    Boosted,
    BoostingStep,
    DrawnMember,
    Members,
    mass_unit,
)
from streamkernel.store import RowCodes
from streamkernel.table import Folds, open_table

RNG = np.random.default_rng(0)
M = 3000
X = RNG.standard_normal((M, 3))
W = RNG.random(M) * (RNG.random(M) > 0.1)
LABELS = {2: (X[:, 0] > 0.3).astype(int), 4: np.digitize(X[:, 0], [-0.5, 0.3, 1.0])}


def members_of(classes: int, count: int = 3) -> Members:
    """Members whose points they share."""
    rng = np.random.default_rng(1)
    sizes = np.array([9, 1, 12, 7, 5])[:count]
    K = 1 if classes == 2 else classes
    positions = np.concatenate([np.sort(rng.choice(15, size, replace=False)) for size in sizes])
    return Members(
        Gaussian(1.0), X[:15], positions, np.cumsum(sizes), rng.standard_normal((len(positions), K)),
        rng.standard_normal((count, K)), classes,
    )  # fmt: skip


def plain_codes(members: Members) -> Any:
    K = naive.gaussian(X, members.points, 1.0)
    found = np.empty((M, len(members)), dtype=int)
    for t in range(len(members)):
        run = members.run(t)
        f = K[:, members.positions[run]] @ members.coefficients[run] + members.constants[t]
        found[:, t] = f[:, 0] > 0.0 if members.classes == 2 else f.argmax(axis=1)
    return found


def step_of(members: Members, **given: Any) -> BoostingStep:
    """A step after two members, of three."""
    first = {
        "factors": np.array([0.7, 0.3]), "shifts": np.array([-0.1, 0.05]), "votes": np.array([0.7, 0.3]),
        "unit": mass_unit(float(W.sum())), "draw": "errors", "sizes": (40, 30), "seed": 5, "number": 3,
        "dtype": np.dtype(np.float64), "valued": True,
    }  # fmt: skip
    return BoostingStep(members, **{**first, **given})


def swept(step: BoostingStep, classes: int, threads: int = 1) -> Boosted:
    table = open_table(X, LABELS[classes], classify=True, weights=W)
    table = table.with_keys() if step.folds is not None else table
    return Session(ThreadExecutor(threads)).sweep(step, table, "step")


@pytest.mark.parametrize("classes", [2, 4])
def test_masses_errors_and_draws_are_those_of_all_rows_at_once(classes: int) -> None:
    members, y = members_of(classes), LABELS[classes]
    step, codes = step_of(members), plain_codes(members)
    np.testing.assert_array_equal(members.codes(X), codes)
    found = swept(step, classes)
    wrong = codes != y[:, None]
    signs = np.where(wrong[:, :2], 1.0, -1.0)
    mass = W * step.unit * np.exp(signs @ step.factors - step.shifts.sum())
    assert found.error == pytest.approx(mass[wrong[:, 2]].sum() / mass.sum(), rel=1e-12)
    vote = members.votes(codes, step.votes).argmax(axis=1)
    assert found.vote_errors[0] == pytest.approx(W[vote != y].sum() / W.sum(), rel=1e-12)
    assert found.member_errors[0] == pytest.approx(W[wrong[:, 2]].sum() / W.sum(), rel=1e-12)
    assert found.weight == pytest.approx((W.sum(), 0.0), rel=1e-12)
    assert found.rows == ((W > 0.0).sum(), 0)
    for part, among, size in zip(found.parts, (wrong[:, 2], ~wrong[:, 2]), step.sizes, strict=True):
        rows, importance = naive.reservoir(mass, among, size, 3, 5)
        np.testing.assert_array_equal(part.rows, rows)
        np.testing.assert_array_equal(part.X, X[rows])
        np.testing.assert_array_equal(part.labels, y[rows])
        np.testing.assert_allclose(part.importance / part.importance.sum(), importance, rtol=1e-10)
    joined = DrawnMember.of(found.parts, (40.0, 30.0))
    assert (np.diff(joined.rows) > 0).all()
    assert joined.weights.sum() == pytest.approx(70.0)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_bounded_masses_are_those_of_the_vote(classes: int, soft: bool) -> None:
    """The error is taken before the newest member votes, and rows are drawn after."""
    members, y, votes = replace(members_of(classes), soft=soft), LABELS[classes], np.array([0.7, 0.3, 0.9])
    none = np.zeros(0)
    step = step_of(members, bounded=True, factors=none, shifts=none, votes=votes, draw="vote", sizes=(50,))
    found, codes = swept(step, classes), members.codes(X)

    def mass(count: int) -> Any:
        u = naive.margins(members.votes(codes, votes[:count]), y)
        return W * step.unit * np.minimum(1.0, np.exp(-u))

    wrong = members.classes_of(codes)[:, 2] != y
    assert found.error == pytest.approx(mass(2)[wrong].sum() / mass(2).sum(), rel=1e-12)
    vote = members.votes(codes, votes).argmax(axis=1)
    assert found.vote_errors[0] == pytest.approx(W[vote != y].sum() / W.sum(), rel=1e-12)
    rows, importance = naive.reservoir(mass(3), np.ones(M, dtype=bool), 50, 3, 5)
    [part] = found.parts
    np.testing.assert_array_equal(part.rows, rows)
    np.testing.assert_allclose(part.importance / part.importance.sum(), importance, rtol=1e-10)


def test_two_reservoirs_of_all_rows_know_nothing_of_each_other() -> None:
    members, none = Members.none(Gaussian(1.0), 3, np.dtype(np.float64), 2), np.zeros(0)
    step = step_of(members, factors=none, shifts=none, votes=none, draw="all", sizes=(300, 600))
    first, second = swept(step, 2).parts
    assert (len(first.rows), len(second.rows)) == (300, 600)
    alone = swept(replace(step, sizes=(300,)), 2).parts[0]
    np.testing.assert_array_equal(first.rows, alone.rows)
    # Of 300 rows a share of 600 / (rows of weight > 0) or a little more is in both: heavy ones more often.
    shared = len(np.intersect1d(first.rows, second.rows))
    assert 40 < shared < 120


def test_held_out_rows_have_no_mass() -> None:
    members = members_of(2)
    folds = Folds(1, 4, 0)
    found = swept(step_of(members, folds=folds), 2)
    out = folds.held_out(open_table(X).with_keys().read(0, M).keys)  # type: ignore[arg-type]
    assert found.rows == ((W > 0.0)[~out].sum(), (W > 0.0)[out].sum())
    assert not out[np.concatenate([part.rows for part in found.parts])].any()
    vote = members.votes(plain_codes(members), np.array([0.7, 0.3])).argmax(axis=1)
    assert found.vote_errors[1] == pytest.approx(W[out & (vote != LABELS[2])].sum() / W[out].sum(), rel=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_kept_codes_change_nothing_and_lost_ones_are_made_again(tmp_path: Path, classes: int) -> None:
    members = replace(members_of(classes), soft=True)
    plain = swept(step_of(members, counted=(1, 2)), classes)
    names = tuple(members.digest(t) for t in range(3))
    kept = RowCodes(tmp_path, 256, members.code_dtype)
    step = step_of(members, counted=(1, 2), kept=kept, names=names)
    assert_equal(swept(step, classes, threads=3), plain)
    for name in names:
        np.testing.assert_array_equal(kept.read(name, 0, M), members.codes(X)[:, names.index(name)])
    # Read now: other coefficients would give other classes.
    blank = replace(members, coefficients=0.0 * members.coefficients)
    assert_equal(swept(replace(step, members=blank), classes), plain)
    shutil.rmtree(tmp_path / names[0])
    (tmp_path / names[2] / "c" / "3").write_bytes(b"torn")
    assert_equal(swept(step, classes), plain)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_confidence_of_a_value_far_outside_is_1(classes: int) -> None:
    """255 steps of it are more than whole numbers of 64 bits."""
    members = members_of(classes)
    far = replace(members, soft=True, constants=1e17 * members.constants)
    near = replace(far, constants=1e3 * members.constants, coefficients=0.0 * members.coefficients)
    np.testing.assert_array_equal(far.codes(X[:9]), near.codes(X[:9]))


def assert_equal(found: Boosted, wanted: Boosted) -> None:
    for name in ("error", "weight", "rows", "vote_errors", "member_errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name in ("margins", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for part, other in zip(found.parts, wanted.parts, strict=True):
        np.testing.assert_array_equal(part.rows, other.rows)
        np.testing.assert_array_equal(part.importance, other.importance)


def test_names_of_codes_follow_from_the_member_alone() -> None:
    members = members_of(2)
    assert members.part(1, 3).digest(0) == members.digest(1)
    other = replace(members, constants=members.constants + 1e-12)
    assert other.digest(1) != members.digest(1)


def test_draws_are_in_proportion_to_masses() -> None:
    """Over many draws, each row comes as often as its probability 1 - exp(-D key) says; on average importance is D."""
    members = Members.none(Gaussian(1.0), 3, np.dtype(np.float64), 2)
    total = np.zeros(M)
    for number in range(200):
        step = step_of(
            members, factors=np.zeros(0), shifts=np.zeros(0), votes=np.zeros(0), draw="all", sizes=(60,), number=number
        )
        [part] = swept(step, 2).parts
        total[part.rows] += part.importance
    groups = np.array_split(np.argsort(W), 6)
    for group in groups[1:]:
        assert total[group].sum() / 200 == pytest.approx(W[group].sum() * mass_unit(float(W.sum())), rel=0.1)
