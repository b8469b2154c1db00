"""How many of the rows of a compressed table each class gets."""

from __future__ import annotations

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option


def shares(weights: Float, rows: Int, size: int) -> Int:
    """Numbers (C,) of rows for each class, in sum `size`: in proportion to the weights, at least one, at most its rows.

    One row after the other goes to the class that is farthest below its share (largest remainder, as a loop would give
    it); a class that has all its rows leaves the others to the rest.

    Parameters
    ----------
    weights : (C,) sum of the row weights of each class.
    rows : (C,) number of its rows of weight > 0.
    size : number of rows to share out, at most the sum of `rows`.

    Raises
    ------
    ParameterError
        There are more classes than rows to share out.
    """
    held = rows > 0
    if size < held.sum():
        raise ParameterError(
            f"{option('size')} is {size}, and the rows have {int(held.sum())} classes; give at least a row for each"
        )
    found = held.astype(np.int64)
    while (left := size - int(found.sum())) > 0:
        open_ = found < rows
        wanted = np.where(open_, size * weights / weights.sum() - found, -np.inf)
        # Whole parts at once, then single rows by the largest remainder.
        whole = np.clip(np.floor(np.maximum(wanted, 0.0)), 0, rows - found).astype(np.int64)
        if 0 < whole.sum() <= left:
            found += whole
        else:
            found[int(np.argmax(wanted))] += 1
    return found
