"""Rows of a kernel matrix as a plain array: a row holds its own place among the columns, k(x, x), and its values.

Rows of a matrix of m columns are an array (b, 2 + m)::

    place    R[i, 0]    column that is the row itself; -1 where no column is
    own      R[i, 1]    k(x_i, x_i); NaN where it is not known
    values   R[i, 2:]   k(x_i, z_j) of each column j

Such rows are cut, gathered, stored and sent as all rows are. Two of them need no other rows: ``k(x, z)`` is the value
of x at the place of z. Only what reads rows as points of a space must know: the kernel (`kernels.rows.precomputed`),
and the checks and the keys of a table.
"""

from __future__ import annotations

from streamkernel.type_aliases import AnyArray

LEADING = 2  # numbers of a row before its values
NO_PLACE = -1.0


def places_in(rows: AnyArray) -> AnyArray:
    """(b,) columns of the rows themselves, a view."""
    return rows[:, 0]


def own_in(rows: AnyArray) -> AnyArray:
    """(b,) values k(x, x), a view."""
    return rows[:, 1]


def kernel_values_in(rows: AnyArray) -> AnyArray:
    """(b, m) values k(x, z_j), a view."""
    return rows[:, LEADING:]


def at_own_columns(rows: AnyArray) -> AnyArray:
    """The same n rows of a kernel matrix with n columns alone: those that are these rows, in their order.

    Parameters
    ----------
    rows : (n, 2 + m), each with a place.
    """
    found = rows[:, [0, 1, *(LEADING + places_in(rows).astype(int))]]
    places_in(found)[:] = range(len(rows))
    return found
