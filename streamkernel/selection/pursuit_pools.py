"""Pools for matching pursuit without targets: picks per sweep, and candidates per pick."""

from __future__ import annotations

from streamkernel.type_aliases import Fields, FieldsView

_LEAST_POOL = 59
CANDIDATES = 20  # per pick, in a pool that all picks share
_SWEEPS = 20
_FEWEST, _UNKNOWN = 10, 50  # picks per sweep; the second where the basis size is not known (at most 1000)


def picks_of_a_sweep(n: int | None) -> int:
    """Ten, or more, so that twenty sweeps give n functions."""
    return _UNKNOWN if n is None else max(_FEWEST, -(-n // _SWEEPS))


def candidates_of_a_pick(picks: int) -> int:
    """Twenty, or more, for a pool of 59: the best of 59 is among the best 5 % with probability .95."""
    return max(CANDIDATES, -(-_LEAST_POOL // picks))


def pursuit_rule(n: int | None, options: FieldsView | None) -> Fields:
    """Settings of the rule that picks n rows by exact Rayleigh quotients; `options` are the user's."""
    picks = picks_of_a_sweep(n)
    pools = {
        "pool": "shared",
        "picks": picks,
        "candidates": candidates_of_a_pick(picks if n is None else min(n, picks)),
    }
    given = dict(options or {})
    if given.get("pool", "shared") != "shared":
        # Each pick then has candidates of its own, in the papers' number.
        del pools["candidates"]
    return {"rule": "sgma", "rule_options": pools | given}
