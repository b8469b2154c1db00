"""Blocks of kernel values, row by row: serial, without the GIL, one specialisation for each dtype.

``fill`` loops over tiles of ROWS rows and one panel of basis points. The sums of a tile over the features stay in
registers (`_tile.py`), and its values in the first-level cache, from which a writer (`_writer.py`) computes the kernel
values of the block. The values of row i depend on row i and the points only: same operations, same order, same bits in
every block.

`fused` marks each place where a product and a sum must be one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from streamkernel.compiled_loops import OPTIONS
from streamkernel.kernels.loops._sparse_sums import fill_sparse_block, sparse_norms_of
from streamkernel.kernels.loops._tile import (
    ROWS,
    fetch_for_writing,
    row_norms,
    tile_absolute,
    tile_different,
    tile_inner,
    tile_squared,
    tile_squares_of_products,
    tile_weighted,
)
from streamkernel.kernels.loops._writer import call_writer
from streamkernel.kernels.loops.formula import Metric
from streamkernel.kernels.loops.functions import INNER, MOST_TURNS, cosine_and_sine, number
from streamkernel.kernels.loops.instructions import full_width, stay_separate
from streamkernel.type_aliases import Fields, Untyped

# Rows whose scaled copies stay in cache while all panels pass over them; a multiple of ROWS. Each panel is read once
# for a group, and the group's sums against it (6 KB with AVX-512) stay in the first-level cache.
GROUP = 4 * ROWS
# Rows of which a column is mapped to circles at once: three vectors in the first-level cache.
CIRCLE_ROWS = 256


@njit(**INNER)
def norms_of_rows(rows, out):  # type: ignore[no-untyped-def]  # Numba infers them
    """Squared norms, ``out[i] = |x_i|^2``; `rows` and `out` are padded to a multiple of ROWS."""
    stay_separate()
    for i in range(0, len(out), ROWS):
        row_norms(rows, i, rows.shape[1], out)


@njit(**INNER)
def signed_values(values, x, z, out):  # type: ignore[no-untyped-def]  # Numba infers them
    """``out[i, j] = values[i, j] sign(x_i - z_j)``, the sign of 0 being 0."""
    stay_separate()
    full_width()
    for i in range(len(x)):
        row, target, here = values[i], out[i], x[i]
        zero = number(0.0, here)
        for j in range(len(z)):
            value = row[j]
            target[j] = (value if here > z[j] else zero) - (value if here < z[j] else zero)


@njit(**INNER)
def cosines_and_sines(x, period, inverse, c, s):  # type: ignore[no-untyped-def]  # Numba infers them
    """Cosines and sines of ``2 pi x / period``; returns how many are wrong: beyond MOST_TURNS, or NaN."""
    stay_separate()
    full_width()
    far = 0
    for i in range(len(x)):
        turns = x[i] * inverse
        c[i], s[i] = cosine_and_sine(x[i], period, inverse, turns)
        far += 0 if abs(turns) <= MOST_TURNS else 1
    return far


@njit(**INNER)
def circles_of(X, periods, inverses, memory, out):  # type: ignore[no-untyped-def]  # Numba infers them
    """``out[i, j] = cos(2 pi x_ij / period_j)``, ``out[i, p + j]`` the sine; returns how many are wrong.

    Column by column, since rows may have too few numbers for a vector; in float64 whatever the dtype is, since an angle
    in float32 would lose the digits of the difference of two rows.
    """
    b, p = X.shape
    far = 0
    for start in range(0, b, CIRCLE_ROWS):
        size = min(CIRCLE_ROWS, b - start)
        x, c, s = (
            memory[:size],
            memory[CIRCLE_ROWS : CIRCLE_ROWS + size],
            memory[2 * CIRCLE_ROWS : 2 * CIRCLE_ROWS + size],
        )
        for j in range(p):
            for i in range(size):
                x[i] = X[start + i, j]
            far += cosines_and_sines(x, periods[j], inverses[j], c, s)
            for i in range(size):
                out[start + i, j] = c[i]
                out[start + i, p + j] = s[i]
    return far


@njit(**OPTIONS)
def aligned(size, like):  # type: ignore[no-untyped-def]  # Numba infers them
    """Zeros with the dtype of `like`, aligned to a cache line, because a vector across two lines costs twice."""
    item = like.itemsize
    memory = np.zeros(size + 64 // item, like.dtype)
    skipped = (64 - memory.ctypes.data % 64) % 64 // item
    return memory[skipped : skipped + size]


@njit(**INNER)
def sums(metric, rows, size, wanted, n_near, panels, panel, weights, tiles):  # type: ignore[no-untyped-def]  # Numba infers them
    """Sums of the metric for the tiles t with ``lowest <= n_near[t] <= highest`` against one panel.

    The loop over tiles is inside this function, because Numba counts references at every call.
    """
    # Inlined where it is called, each of its tiles, some hundred instructions long, would be compiled three times.
    stay_separate()
    p = rows.shape[1]
    lowest, highest = wanted
    for t in range(-(-size // ROWS)):
        if lowest <= n_near[t] <= highest:
            i = t * ROWS
            if metric == Metric.EQUAL_SQUARED or metric == Metric.HALF_ANGLE:
                tile_squared(rows, i, panels, panel, weights, p, tiles)
            elif metric == Metric.SQUARED:
                tile_weighted(rows, i, panels, panel, weights, p, tiles)
            elif metric == Metric.ABSOLUTE:
                tile_absolute(rows, i, panels, panel, weights, p, tiles)
            elif metric == Metric.DIFFERENT:
                tile_different(rows, i, panels, panel, weights, p, tiles)
            else:
                tile_inner(rows, i, panels, panel, weights, p, tiles)


@njit(**INNER)
def directions(metric, rows, size, squares, norms, opposite):  # type: ignore[no-untyped-def]  # Numba infers them
    """Divide each row by its norm for HALF_ANGLE, by its largest entry for COSINE; a row of zeros stays.

    ``squares`` become the |x|^2 of the new rows, ``norms`` the |x| of the former ones, ``opposite`` the negative rows.
    The largest entry is divided by first, so that no square over- or underflows. `prepared.directions` does the same
    operations to the points: equal rows have equal bits, and exactly the angle 0.
    """
    p = rows.shape[1]
    for i in range(size):
        norms[i] = 0
        row, largest = rows[i], norms[i]
        for j in range(p):
            largest = max(largest, abs(row[j]))
        norms[i] = largest
        if largest > 0:
            for j in range(p):
                row[j] /= largest
    norms_of_rows(rows, squares)
    for i in range(size):
        root = np.sqrt(squares[i])
        norms[i] *= root
        if metric == Metric.HALF_ANGLE:
            row = rows[i]
            for j in range(p):
                if root > 0:
                    row[j] /= root
                opposite[i, j] = -row[j]


@njit(**INNER)
def cosines(tiles, size, width, row_squares, point_squares):  # type: ignore[no-untyped-def]  # Numba infers them
    """Inner products of a tile, divided by both norms; exactly 1 for equal rows, since sqrt(s s) = s."""
    full_width()
    for i in range(size):
        tile, x = tiles[i * width : (i + 1) * width], row_squares[i]
        for c in range(width):
            product = x * point_squares[c]
            cosine = tile[c] / np.sqrt(product)
            cosine = min(max(cosine, number(-1.0, x)), number(1.0, x))
            tile[c] = cosine if product > number(0.0, x) else number(0.0, x)


@njit(**INNER)
def half_angles(tiles, opposite, count):  # type: ignore[no-untyped-def]  # Numba infers them
    """``|u - v|^2 / |u + v|^2`` of unit rows is tan^2(theta / 2); 1, for pi / 2, where both rows are zeros."""
    full_width()
    for c in range(count):
        one, ratio = number(1.0, tiles[c]), tiles[c] / opposite[c]
        tiles[c] = ratio if tiles[c] + opposite[c] > number(0.0, one) else one


@njit(**INNER)
def fill_block(  # type: ignore[no-untyped-def]  # Numba infers them
    X, metric, writer, constants, degree, scale, weights, panels, limit, centred, angular, workspace, n, out
):
    """``out[i, c] = transform(metric(x_i, z_c))``, c < n; the transform is that of the writer, an address.

    Squared distances are computed as ``|x|^2 + |z|^2 - 2 x.z`` of centred rows where this is accurate enough: for row i
    and a panel with ``|x_i|^2 + max |z|^2 <= limit``. Elsewhere they are sums of squared differences.
    `centred` = (centre, scale, panels, squared norms (panels, width), the largest norm of each panel); it is not read
    if ``limit < 0``. `angular` = (squared norms, norms), (panels, width) each, of the points that an angle divides.
    """
    full_width()
    b, p = X.shape
    n_panels, width = panels.shape[0], panels.shape[2]
    centre, centred_scale, centred_panels, point_squares, largest = centred
    direction_squares, point_norms = angular
    tiles, base, rows, centred_rows, row_squares, norms, n_near, every, far = workspace
    is_angle = metric == Metric.COSINE or metric == Metric.HALF_ANGLE
    for start in range(0, b, GROUP):
        size = min(GROUP, b - start)
        # Rows of the last group beyond `size` hold what was there before: they are summed, and not written.
        for i in range(size):
            source, target = X[start + i], rows[i]
            for j in range(p):
                target[j] = source[j] * scale[j]
        if is_angle:
            directions(metric, rows, size, row_squares, norms, centred_rows)
        if limit >= 0:
            for i in range(size):
                source, target = X[start + i], centred_rows[i]
                for j in range(p):
                    target[j] = (source[j] - centre[j]) * centred_scale[j]
            norms_of_rows(centred_rows, row_squares)
        for panel in range(n_panels):
            column = panel * width
            kept = min(width, n - column)
            mixed, n_tiles = False, -(-size // ROWS)
            # The block is far larger than the caches: without this the writer would wait for its lines.
            for t in range(n_tiles):
                fetch_for_writing(out, start + t * ROWS, column, out.shape[1])
            if limit >= 0:
                # A near tile has products alone, a far one differences alone, and few tiles are mixed.
                for t in range(n_tiles):
                    i = t * ROWS
                    n_near[t] = 0
                    for r in range(i, i + ROWS):
                        n_near[t] += row_squares[r] + largest[panel] <= limit
                    mixed = mixed or 0 < n_near[t] < ROWS
                    if n_near[t] > 0:
                        tile_squares_of_products(
                            centred_rows, i, row_squares, centred_panels, panel, point_squares, p, tiles
                        )
            sums(metric, rows, size, (0, 0), n_near, panels, panel, weights, tiles)
            if metric == Metric.COSINE:
                cosines(tiles, size, width, row_squares, direction_squares[panel])
            elif metric == Metric.HALF_ANGLE:
                sums(metric, centred_rows, size, (0, 0), n_near, panels, panel, weights, base)
                half_angles(tiles, base, size * width)
            call_writer(
                writer, tiles, base, every, size, width, kept, out, start, column, constants, degree, norms,
                point_norms, panel,
            )  # fmt: skip
            if mixed:
                # A tile with near and far rows was written from products. Its far rows are written again, each from
                # differences: which of the two a row has must not depend on the rows beside it.
                sums(metric, rows, size, (1, ROWS - 1), n_near, panels, panel, weights, tiles)
                for i in range(size):
                    far[i] = 0 < n_near[i // ROWS] < ROWS and not row_squares[i] + largest[panel] <= limit
                call_writer(
                    writer, tiles, base, far, size, width, kept, out, start, column, constants, degree, norms,
                    point_norms, panel,
                )  # fmt: skip


@njit(**OPTIONS)
def new_workspace(X, panels):  # type: ignore[no-untyped-def]  # Numba infers them
    """Buffers (tiles, base, rows, centred rows, their squared norms, norms, near rows per tile, two masks of rows)."""
    p, width = X.shape[1], panels.shape[2]
    return (
        aligned(GROUP * width, X),
        aligned(GROUP * width, X),
        np.zeros((GROUP, p), X.dtype),
        np.zeros((GROUP, p), X.dtype),
        np.zeros(GROUP, X.dtype),
        np.zeros(GROUP, X.dtype),
        np.zeros(GROUP // ROWS, np.int64),
        np.ones(GROUP, np.bool_),
        np.zeros(GROUP, np.bool_),
    )


def entry_points(version: int) -> tuple[Callable[..., Any], ...]:
    """The functions that Python code calls, in the order of `signatures`; all others are compiled into them.

    `version` makes no difference to them, but to their keys in Numba's cache (`compiled_loops`).
    """

    def norms(rows, out):  # type: ignore[no-untyped-def]  # Numba infers them
        if version >= 0:
            norms_of_rows(rows, out)

    def signed(values, x, z, out):  # type: ignore[no-untyped-def]  # Numba infers them
        if version >= 0:
            signed_values(values, x, z, out)

    def circles(X, periods, inverses, out):  # type: ignore[no-untyped-def]  # Numba infers them
        full_width()
        far = 0
        if version >= 0:
            far = circles_of(X, periods, inverses, aligned(3 * CIRCLE_ROWS, periods), out)
        return far

    def fill(X, metric, writer, constants, degree, scale, weights, panels, limit, centred, angular, n, out):  # type: ignore[no-untyped-def]  # Numba infers them
        full_width()
        if version >= 0:
            work = new_workspace(X, panels)
            fill_block(
                X, metric, writer, constants, degree, scale, weights, panels, limit, centred, angular, work, n, out
            )

    def sparse_norms(pairs, metric, out):  # type: ignore[no-untyped-def]  # Numba infers them
        if version >= 0:
            sparse_norms_of(pairs, metric, out)

    def sparse_fill(X, metric, writer, constants, degree, Z, lists, norms, out):  # type: ignore[no-untyped-def]  # Numba infers them
        full_width()
        if version >= 0:
            sums, scratch = aligned(len(Z), X), aligned(len(Z), X)
            ones = np.ones(1, np.bool_)
            fill_sparse_block(X, metric, writer, constants, degree, Z, lists, norms, sums, scratch, ones, out)

    return norms, signed, circles, fill, sparse_norms, sparse_fill


def signatures(kind: Untyped) -> Fields:
    """The one signature of each compiled function for `kind`, numba's float32 or float64."""
    vector, matrix, cube = kind[::1], kind[:, ::1], kind[:, :, ::1]
    doubles = types.float64[::1]
    centred = types.Tuple((doubles, doubles, cube, matrix, vector))
    angular = types.UniTuple(matrix, 2)
    read_only = types.Array(kind, 2, "C", readonly=True)
    number, whole = types.int64, types.int64[::1]
    lists = types.Tuple((whole, whole, vector))
    arguments = (
        read_only, number, number, vector, number, vector, vector, cube, kind, centred, angular, number, matrix
    )  # fmt: skip
    return {
        "norms": types.void(matrix, vector),
        "signed": types.void(matrix, vector, vector, matrix),
        "circles": number(read_only, doubles, doubles, matrix),
        "fill": types.void(*arguments),
        "sparse_norms": types.void(read_only, number, vector),
        "sparse_fill": types.void(read_only, number, number, vector, number, read_only, lists, vector, matrix),
    }
