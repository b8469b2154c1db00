"""An estimator that is as it was, where a method of it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamkernel.type_aliases import Untyped


@contextmanager
def kept_if_it_fails(estimator: Untyped) -> Iterator[None]:
    """Give an estimator the attributes back that it had before the block, where this raises.

    scikit-learn's check of the rows sets ``n_features_in_`` and ``feature_names_in_`` before a fit begins. Beside the
    model of an earlier fit, they would be those of other rows.
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:  # also where the user interrupts it
        # At once: threads that predict meanwhile, and a second interrupt, find no estimator without a model.
        estimator.__dict__ = before
        raise
