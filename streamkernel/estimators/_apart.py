"""A fit apart from its estimator, which takes the result at once, or is as it was where the fit fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def apart(estimator: T) -> Iterator[T]:
    """A copy of an estimator to fit, whose attributes the estimator takes where the block does not raise.

    scikit-learn's check of the rows sets ``n_features_in_`` and ``feature_names_in_`` before a fit begins. Beside the
    model of an earlier fit, they would be those of other rows; and a second fit that begins meanwhile, in another
    thread, would take them for those of the model. Threads that predict meanwhile see the old model or the new one.
    """
    copy = object.__new__(type(estimator))
    copy.__dict__ = dict(estimator.__dict__)
    yield copy
    estimator.__dict__ = copy.__dict__
