"""Each row of the table of rules, with every score and pool of sgma, and every option that is another algorithm.

The rule `columns` stands alone: it is for the linear kernel only, and looks at no row (`test_columns.py`).
A pool says which rows a score is given, and no score looks at how they were drawn: each score has one of the two pools.
"""

from __future__ import annotations

from typing import Any

import pytest

from streamkernel.selection import RULES, SCORES

__all__ = ["ALGORITHMS", "CASES", "FIRST_ALGORITHMS", "RULES_OF_ROWS", "TABLE", "WITHOUT_ROWS", "title"]

WITHOUT_ROWS = ("columns",)
RULES_OF_ROWS = tuple(rule for rule in RULES if rule not in WITHOUT_ROWS)

TABLE: list[tuple[str, dict[str, Any]]] = [
    *(("few-sweep", {"objective": objective}) for objective in ("trace", "prediction", 0.5)),
    *(("sgma", {"score": score}) for score in SCORES),
    *(
        ("sgma", {"score": score, "pool": ("split", "shared")[number % 2], "picks": 4, "candidates": 8})
        for number, score in enumerate(SCORES)
    ),
    ("csi", {}),
    ("csi", {"kappa": 0.5, "centre": False, "candidates": 5, "picks": 3}),
    ("csi-lookahead", {}),
    ("csi-lookahead", {"delta": 0, "gain_tolerance": 0.0}),
    ("csi-lookahead", {"published": True, "centre": False}),
    ("gp-posterior", {}),
    ("gp-posterior", {"ridge": 0.3, "picks": 4, "candidates": 8, "dual_rows": 9}),
    ("matching-pursuit-kpca", {}),
    ("rpcholesky", {}),
    ("rpcholesky", {"block": 1}),
    ("rpcholesky-block", {}),
    ("incomplete-cholesky", {}),
    ("incomplete-cholesky", {"block": 1}),
    ("incomplete-cholesky", {"block": 3, "exact": False}),
    ("leverage", {}),
    ("leverage", {"ridge": 0.1, "growth": 5}),
    ("kmeans", {}),
    ("kmeans", {"nearest": False, "sweeps": 1}),
    ("uniform", {}),
]


# Every rule once, and the options that change the loop rather than the numbers in it.
_OTHER_LOOPS = [
    ("few-sweep", {"objective": "prediction"}),
    ("sgma", {"score": "column-norm", "pool": "shared", "picks": 4, "candidates": 8}),
    ("kmeans", {"nearest": False, "sweeps": 1}),
]
ALGORITHMS = [row for number, row in enumerate(TABLE) if row in _OTHER_LOOPS or row[0] != TABLE[number - 1][0]]


# Each score has a row with a pool, in which four are picked at a time: one at a time, all but the first are slow tests.
_ONE_AT_A_TIME: list[tuple[str, dict[str, Any]]] = [("sgma", {"score": score}) for score in list(SCORES)[1:]]


def title(name: str, options: dict[str, Any]) -> str:
    return " ".join([name, *map(str, options.values())])


# The table as cases of `("name", "options")`.
CASES = [pytest.param(*row, id=title(*row), marks=[pytest.mark.slow] * (row in _ONE_AT_A_TIME)) for row in TABLE]
# For what another test shows of each row, too: those of `ALGORITHMS`, the rest slow.
FIRST_ALGORITHMS = [
    pytest.param(*row, id=title(*row), marks=[pytest.mark.slow] * (row not in ALGORITHMS)) for row in TABLE
]
