"""Pools for matching pursuit without targets: how many picks a sweep serves, and out of how many candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CANDIDATES", "candidates_of_a_pick", "picks_of_a_sweep", "pursuit_rule"]

_LEAST_POOL = 59
CANDIDATES = 20  # a pick, of a pool that all picks share
_SWEEPS = 20
_FEWEST, _UNKNOWN = 10, 50  # picks; where the size of the basis is not known, which is 1000 at most


def picks_of_a_sweep(n: int | None) -> int:
    """Ten, or as many as n functions take in twenty sweeps."""
    return _UNKNOWN if n is None else max(_FEWEST, -(-n // _SWEEPS))


def candidates_of_a_pick(picks: int) -> int:
    """Twenty, or what makes a pool of 59: the best of so many is among the best 5 % with probability .95."""
    return max(CANDIDATES, -(-_LEAST_POOL // picks))


def pursuit_rule(n: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings of the rule that picks n rows by exact Rayleigh quotients; `options` are those that a user gave."""
    picks = picks_of_a_sweep(n)
    pools = {
        "pool": "shared",
        "picks": picks,
        "candidates": candidates_of_a_pick(picks if n is None else min(n, picks)),
    }
    given = dict(options or {})
    if given.get("pool", "shared") != "shared":
        # Each pick has candidates of its own then, and as many as the papers give it.
        del pools["candidates"]
    return {"rule": "sgma", "rule_options": pools | given}
