"""Outcomes of `skmp`, one by one in a CSV file: an interrupted run goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ACTIVE = (59, 228)
KMP = "KMP"
PAPER_C = 10.0  # has about as many support vectors as the paper's machines
NOT_RUN = "not run"
HEAD = ("rows", "method", "repeat", "seed", "terms", "functions", "error", "residual", "of")

Float = NDArray[np.float64]


def skmp(size: int) -> str:
    return f"SKMP-{size}"


def again(size: int) -> str:
    return f"SKMP-{size}, fitted again"


def svm(cost: float) -> str:
    return f"SVM, C = {cost:g}"


def validated(cost: float) -> str:
    return f"cross-validated SVM, C = {cost:g}"


@dataclass(frozen=True)
class Key:
    """One run: rows to fit, method, repeat, and the seed of rows and draws."""

    rows: int
    method: str
    repeat: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Test errors and |r|^2 / m after so many terms; of a support vector machine its support vectors, and no residual.

    `functions` are the different rows among the terms.
    """

    key: Key
    terms: Sequence[int]
    functions: Sequence[int]
    errors: Sequence[float]
    residuals: Sequence[float]


class Kept:
    """The file. A line says how many its outcome has, so that one that was cut off is made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[Key, Outcome] = {}
        if path.exists():
            with path.open(newline="", encoding="utf-8") as stream:
                self._read([row for row in csv.DictReader(stream) if row["of"]])

    def _read(self, lines: list[dict[str, str]]) -> None:
        def key(line: dict[str, str]) -> Key:
            return Key(int(line["rows"]), line["method"], int(line["repeat"]), int(line["seed"]))

        for known, group in groupby(lines, key):
            part = list(group)
            if len(part) == int(part[0]["of"]):
                columns = [[float(line[name]) for line in part] for name in ("error", "residual")]
                counts = [[int(line[name]) for line in part] for name in ("terms", "functions")]
                self.outcomes[known] = Outcome(known, *counts, *columns)

    def get(self, key: Key, make: Callable[[], Outcome]) -> Outcome:
        if key not in self.outcomes:
            found = make()
            # Of its digits only those that a later run reads again.
            self._read([dict(zip(HEAD, map(str, line), strict=True)) for line in _lines(found)])
            self._write()
            print(f"{key}: {found.errors[-1]:.4f} at {found.terms[-1]}", flush=True)
        return self.outcomes[key]

    def _write(self) -> None:
        new = self.path.with_suffix(".new")
        with new.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(HEAD)
            for key in sorted(self.outcomes, key=lambda k: (k.rows, k.method, k.seed, k.repeat)):
                writer.writerows(_lines(self.outcomes[key]))
        new.replace(self.path)


def _lines(outcome: Outcome) -> list[tuple[object, ...]]:
    key = outcome.key
    numbers = list(zip(outcome.terms, outcome.functions, outcome.errors, outcome.residuals, strict=True))
    return [
        (key.rows, key.method, key.repeat, key.seed, terms, functions, f"{error:.6g}", f"{residual:.6g}", len(numbers))
        for terms, functions, error, residual in numbers
    ]


@dataclass(frozen=True)
class Found:
    """The outcomes, by rows and method."""

    outcomes: Sequence[Outcome]

    def of(self, rows: int, method: str) -> list[Outcome]:
        return [each for each in self.outcomes if (each.key.rows, each.key.method) == (rows, method)]

    def one(self, rows: int, method: str) -> Outcome | None:
        found = self.of(rows, method)
        return found[0] if found else None

    def errors(self, rows: int, method: str) -> Float:
        """(repeats, marks)"""
        return np.array([each.errors for each in self.of(rows, method)])

    @property
    def validations(self) -> dict[str, Outcome]:
        """By the name of the machine."""
        start = "cross-validated "
        return {o.key.method.removeprefix(start): o for o in self.outcomes if o.key.method.startswith(start)}

    @property
    def machines(self) -> list[str]:
        """The one that cross-validation chose, then that of the paper's count of support vectors."""
        chosen = [min(self.validations, key=lambda name: self.validations[name].errors[0])] if self.validations else []
        return list(dict.fromkeys([*chosen, svm(PAPER_C)]))
