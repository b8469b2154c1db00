"""The certificate of a basis: residual traces, and the path of them along the picks."""

from __future__ import annotations

import numpy as np

from streamkernel.records import Certificate
from streamkernel.type_aliases import Float


def path_of(trace: float, squares: Float) -> Float:
    """``tr(K - K~_t)`` for t = 0 .. n, (n + 1,): each function reduces the trace by the squares of its column.

    Whitening is triangular in the order of picking, so that one sweep over all n functions gives the values for the
    first t.
    """
    return np.maximum(trace - np.concatenate([[0.0], np.cumsum(squares)]), 0.0)


def certificate_of(trace: float, residual_trace: float) -> Certificate:
    """The certificate, as it is stored and printed."""
    return Certificate(
        trace=trace,
        residual_trace=residual_trace,
        relative_residual_trace=residual_trace / trace if trace else 0.0,
    )
