"""A selection of which some functions have no place any more: what is known of the others stays theirs."""

from __future__ import annotations

import numpy as np

from streamkernel.basis import Basis
from streamkernel.fits.gaussian.gaussian import _places
from streamkernel.kernels import Gaussian
from streamkernel.selection.problem import Selection


def test_gains_go_with_their_functions() -> None:
    points = np.arange(12.0).reshape(6, 2)
    # Centres of clusters have no row numbers.
    basis = Basis(Gaussian(1.0), points, np.full(6, -1))
    parts = np.arange(12.0).reshape(6, 2)
    found = Selection(basis, np.arange(6.0), (), "size", gain_parts=parts, traces=np.arange(7.0))
    kept = basis.take(np.array([0, 2, 5]))
    positions = _places(kept, basis)
    assert positions.tolist() == [0, 2, 5]
    left = found.left(kept, positions)
    assert left.gains.tolist() == [0.0, 2.0, 5.0]
    assert left.gain_parts is not None
    np.testing.assert_array_equal(left.gain_parts, parts[[0, 2, 5]])
    assert (left.ended, left.predicted_gains, left.traces) == ("rank", None, None)
    none = Selection(basis, np.zeros(0), (), "size").left(kept, positions)
    assert len(none.gains) == 0
