"""The record of a search for hyper-parameters, which the models of Gaussian processes keep."""

from __future__ import annotations

from streamkernel.records import Count, Record


class TuningRecord(Record):
    """The search for hyper-parameters; `best` is the point whose lengthscales the model has."""

    objective: str
    parameters: tuple[str, ...]
    sample_rows: Count
    best: Count | None = None
    moved: tuple[str, ...] = ()
    signal: float | None = None
    noise: float | None = None
    value: float | None = None
