"""All compiled loops of the kernels: serial, without the GIL, one specialisation for each dtype.

``fill`` loops over tiles of ROWS rows and one panel of basis points. The sums of a tile over the features stay in
registers (`_tile.py`), and its values in the first-level cache, from which `write` computes the kernel values of the
block. The values of row i depend on row i and the points only: same operations, same order, same bits in every block.

``fastmath`` is off. `fused` marks each place where a product and a sum must be one operation.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import float32, njit, types
from numba.extending import overload

from streamkernel.kernels._tile import (
    ROWS,
    columns,
    fetch_for_writing,
    full_width,
    fused,
    row_norms,
    scaled_by_power,
    split_power,
    tile_absolute,
    tile_inner,
    tile_squared,
    tile_squares_of_products,
    tile_weighted,
)

__all__ = ["ROWS", "columns", "fill", "norms", "signatures"]

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# No reference counts: their atomic increments at every call would cost more than a tile with few features.
INNER: dict[str, Any] = {**OPTIONS, "_nrt": False}

# Rows whose scaled copies stay in cache while all panels pass over them; a multiple of ROWS.
GROUP = 4 * ROWS


def exponential(s: Any, high: Any, low: Any, cut: Any) -> Any:
    """``2^(s (high + low))`` for an exponent <= 0; 0 for s >= cut, where the result is below the normal numbers."""
    raise TypeError("only compiled code calls this")


@overload(exponential)
def exponential_of(s, high, low, cut):  # type: ignore[no-untyped-def]
    return exponential_single if s == float32 else exponential_double


# 2^y = 2^k 2^r, k = round(y) taken from the lowest bits of y + magic, r = y - k in [-1/2, 1/2]. The polynomials of
# 2^r are near-minimax (Lawson's iteration in extended precision): relative error 4e-9 and 8e-18, exactly 1 at 0.


def exponential_single(s, high, low, cut):  # type: ignore[no-untyped-def]
    magic = np.float32(12582912.0)  # 1.5 2^23
    shifted = fused(s, high, magic)
    r = fused(s, low, fused(s, high, magic - shifted))
    q = np.float32(0.0001546971717670186)
    q = fused(q, r, np.float32(0.0013390866863407917))
    q = fused(q, r, np.float32(0.009618030826868655))
    q = fused(q, r, np.float32(0.055503571054728786))
    q = fused(q, r, np.float32(0.2402265108386363))
    q = fused(q, r, np.float32(0.6931471880289614))
    q = fused(q, r, np.float32(1.0))
    return np.float32(0.0) if s >= cut else scaled_by_power(q, shifted)


def exponential_double(s, high, low, cut):  # type: ignore[no-untyped-def]
    magic = 6755399441055744.0  # 1.5 2^52
    shifted = fused(s, high, magic)
    r = fused(s, low, fused(s, high, magic - shifted))
    q = 4.463851498285265e-10
    q = fused(q, r, 7.072911921480511e-09)
    q = fused(q, r, 1.0178006083847267e-07)
    q = fused(q, r, 1.3215440646385704e-06)
    q = fused(q, r, 1.5252733955375667e-05)
    q = fused(q, r, 0.0001540353044566646)
    q = fused(q, r, 0.0013333558146302236)
    q = fused(q, r, 0.009618129107603858)
    q = fused(q, r, 0.055504108664821965)
    q = fused(q, r, 0.24022650695910105)
    q = fused(q, r, 0.6931471805599453)
    q = fused(q, r, 1.0)
    return 0.0 if s >= cut else scaled_by_power(q, shifted)


def logarithm(t: Any) -> Any:
    """``log2(1 + t)`` for t >= 0 below the largest power of two."""
    raise TypeError("only compiled code calls this")


@overload(logarithm)
def logarithm_of(t):  # type: ignore[no-untyped-def]
    return logarithm_single if t == float32 else logarithm_double


# 1 + t + error = 2^k (1 + f), 1 + f in [sqrt 1/2, sqrt 2]; log2(1 + f) = g P(g^2), g = f / (2 + f), P near-minimax.


def logarithm_single(t):  # type: ignore[no-untyped-def]
    one = np.float32(1.0)
    whole = one + t
    error = t - (whole - one) if t < one else one - (whole - t)
    k, mantissa, inverse = split_power(whole)
    f = fused(error, inverse, mantissa - one)
    g = f / (np.float32(2.0) + f)
    z = g * g
    q = fused(np.float32(0.4317483081870034), z, np.float32(0.5767138351130098))
    q = fused(q, z, np.float32(0.9617988537011853))
    q = fused(q, z, np.float32(2.885390079779014))
    return fused(q, g, k)


def logarithm_double(t):  # type: ignore[no-untyped-def]
    whole = 1.0 + t
    error = t - (whole - 1.0) if t < 1.0 else 1.0 - (whole - t)
    k, mantissa, inverse = split_power(whole)
    f = fused(error, inverse, mantissa - 1.0)
    g = f / (2.0 + f)
    z = g * g
    q = fused(0.2137423436756529, z, 0.22090545442104045)
    q = fused(q, z, 0.2623346152012654)
    q = fused(q, z, 0.3205985307137128)
    q = fused(q, z, 0.4121985858722346)
    q = fused(q, z, 0.5770780163454169)
    q = fused(q, z, 0.9617966939259899)
    q = fused(q, z, 2.8853900817779268)
    return fused(q, g, k)


@njit(**INNER)
def write_exponential(tiles, width, kept, wanted, size, out, row, column, constants):  # type: ignore[no-untyped-def]
    """``exp(-t)``; the factor is part of high + low."""
    full_width()
    _, _, high, low, cut, _, _ = constants
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                target[c] = exponential(source[c], high, low, cut)


@njit(**INNER)
def write_matern12(tiles, width, kept, wanted, size, out, row, column, constants):  # type: ignore[no-untyped-def]
    """``exp(-r)``, ``r = sqrt t``."""
    full_width()
    factor, _, high, low, cut, _, _ = constants
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                target[c] = exponential(np.sqrt(factor * source[c]), high, low, cut)


@njit(**INNER)
def write_matern32(tiles, width, kept, wanted, size, out, row, column, constants):  # type: ignore[no-untyped-def]
    """``(1 + r) exp(-r)``, ``r = sqrt t``."""
    full_width()
    factor, _, high, low, cut, _, largest = constants
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                t = factor * source[c]
                r = np.sqrt(largest if t > largest else t)
                e = exponential(r, high, low, cut)
                target[c] = fused(r, e, e)


@njit(**INNER)
def write_matern52(tiles, width, kept, wanted, size, out, row, column, constants):  # type: ignore[no-untyped-def]
    """``(1 + r + r^2 / 3) exp(-r)``, ``r = sqrt t``; 1/3 is `shape`."""
    full_width()
    factor, _, high, low, cut, shape, largest = constants
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                t = factor * source[c]
                t = largest if t > largest else t
                r = np.sqrt(t)
                e = exponential(r, high, low, cut)
                target[c] = fused(fused(t, shape, r), e, e)


@njit(**INNER)
def write_rational(tiles, width, kept, wanted, size, out, row, column, constants):  # type: ignore[no-untyped-def]
    """``(1 + t)^-shape``."""
    full_width()
    factor, _, high, low, cut, shape, largest = constants
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                t = factor * source[c]
                target[c] = exponential(shape * logarithm(largest if t > largest else t), high, low, cut)


@njit(**INNER)
def write_power(tiles, width, kept, wanted, size, out, row, column, constants, degree, base):  # type: ignore[no-untyped-def]
    """``t^degree``, by repeated squaring over the bits of the degree, from the highest."""
    full_width()
    factor, offset, _, _, _, _, _ = constants
    for c in range(size * width):
        tiles[c] = fused(factor, tiles[c], offset)
    bit = 1
    while 2 * bit <= degree:
        bit *= 2
    if bit > 1:
        for c in range(size * width):
            base[c] = tiles[c]
    while bit > 1:
        bit //= 2
        for c in range(size * width):
            tiles[c] *= tiles[c]
        if degree & bit:
            for c in range(size * width):
                tiles[c] *= base[c]
    for i in range(size):
        if wanted[i]:
            source, target = tiles[i * width : i * width + kept], out[row + i, column : column + kept]
            for c in range(kept):
                target[c] = source[c]


@njit(**INNER)
def write(transform, constants, degree, tiles, base, size, wanted, out, row, column, width):  # type: ignore[no-untyped-def]
    """``out <- transform(t)``, ``t = factor tiles + offset``, for the rows out of `size` that are `wanted`.

    `transform` is a number of `base.Transform`. Each transform has its own loop over the rows, so that its constants
    are loaded before the loop.
    """
    full_width()
    kept = min(width, out.shape[1] - column)
    if transform == 2:
        write_exponential(tiles, width, kept, wanted, size, out, row, column, constants)
    elif transform == 3:
        write_matern12(tiles, width, kept, wanted, size, out, row, column, constants)
    elif transform == 4:
        write_matern32(tiles, width, kept, wanted, size, out, row, column, constants)
    elif transform == 5:
        write_matern52(tiles, width, kept, wanted, size, out, row, column, constants)
    elif transform == 6:
        write_rational(tiles, width, kept, wanted, size, out, row, column, constants)
    else:
        write_power(tiles, width, kept, wanted, size, out, row, column, constants, degree, base)


@njit(**INNER)
def norms_of_rows(rows, out):  # type: ignore[no-untyped-def]
    """Squared norms, ``out[i] = |x_i|^2``; `rows` and `out` are padded to a multiple of ROWS."""
    for i in range(0, len(out), ROWS):
        row_norms(rows, i, rows.shape[1], out)


@njit(**OPTIONS)
def aligned(size, like):  # type: ignore[no-untyped-def]
    """Zeros with the dtype of `like`, aligned to a cache line, because a vector across two lines costs twice."""
    item = like.itemsize
    memory = np.zeros(size + 64 // item, like.dtype)
    skipped = (64 - memory.ctypes.data % 64) % 64 // item
    return memory[skipped : skipped + size]


@njit(**INNER)
def sums(metric, rows, size, wanted, n_near, panels, panel, weights, tiles):  # type: ignore[no-untyped-def]
    """Sums of the metric for the tiles t with ``lowest <= n_near[t] <= highest`` against one panel.

    `metric` is a number of `base.Metric`, or 3 for squares with equal weights. The loop over tiles is inside this
    function, because Numba counts references at every call.
    """
    p = rows.shape[1]
    lowest, highest = wanted
    for t in range(-(-size // ROWS)):
        if lowest <= n_near[t] <= highest:
            i = t * ROWS
            if metric == 3:
                tile_squared(rows, i, panels, panel, weights, p, tiles)
            elif metric == 0:
                tile_weighted(rows, i, panels, panel, weights, p, tiles)
            elif metric == 1:
                tile_absolute(rows, i, panels, panel, weights, p, tiles)
            else:
                tile_inner(rows, i, panels, panel, weights, p, tiles)


@njit(**INNER)
def fill_block(X, metric, transform, constants, degree, scale, weights, panels, limit, centred, workspace, out):  # type: ignore[no-untyped-def]
    """``out[i, c] = transform(metric(x_i, z_c))``.

    Squared distances are computed as ``|x|^2 + |z|^2 - 2 x.z`` of centred rows where this is accurate enough: for row i
    and a panel with ``|x_i|^2 + max |z|^2 <= limit``. Elsewhere they are sums of squared differences.
    `centred` = (centre, scale, panels, squared norms (panels, width), the largest norm of each panel); it is not read
    if ``limit < 0``.
    """
    full_width()
    b, p = X.shape
    n_panels, width = panels.shape[0], panels.shape[2]
    centre, centred_scale, centred_panels, point_squares, largest = centred
    tiles, base, rows, centred_rows, row_squares, n_near, every, far = workspace
    for start in range(0, b, GROUP):
        size = min(GROUP, b - start)
        for i in range(size):
            source, target = X[start + i], rows[i]
            for j in range(p):
                target[j] = source[j] * scale[j]
        if limit >= 0:
            for i in range(size):
                source, target = X[start + i], centred_rows[i]
                for j in range(p):
                    target[j] = (source[j] - centre[j]) * centred_scale[j]
            for i in range(0, size, ROWS):
                row_norms(centred_rows, i, p, row_squares)
        for panel in range(n_panels):
            mixed, n_tiles = False, -(-size // ROWS)
            for t in range(n_tiles):
                fetch_for_writing(out, start + t * ROWS, panel * width, out.shape[1])
            if limit >= 0:
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
            write(transform, constants, degree, tiles, base, size, every, out, start, panel * width, width)
            if mixed:
                sums(metric, rows, size, (1, ROWS - 1), n_near, panels, panel, weights, tiles)
                for i in range(size):
                    far[i] = 0 < n_near[i // ROWS] < ROWS and not row_squares[i] + largest[panel] <= limit
                write(transform, constants, degree, tiles, base, size, far, out, start, panel * width, width)


@njit(**OPTIONS)
def new_workspace(X, panels):  # type: ignore[no-untyped-def]
    """Buffers (tiles, base, rows, centred rows, their squared norms, numbers of near rows per tile, masks of rows)."""
    p, width = X.shape[1], panels.shape[2]
    return (
        aligned(GROUP * width, X),
        aligned(GROUP * width, X),
        np.zeros((GROUP, p), X.dtype),
        np.zeros((GROUP, p), X.dtype),
        np.zeros(GROUP, X.dtype),
        np.zeros(GROUP // ROWS, np.int64),
        np.ones(GROUP, np.bool_),
        np.zeros(GROUP, np.bool_),
    )


def source_version() -> int:
    """A hash of the text of this file and of `_tile.py`, as a number."""
    digest = hashlib.sha256()
    for name in ("_loops.py", "_tile.py"):
        digest.update(Path(__file__).with_name(name).read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


def entry_points(version: int) -> tuple[Any, Any]:
    """The functions `norms` and `fill`, which Python code calls; all other functions are compiled into them.

    Numba's cache checks the time and size of one file only, and a wheel gives every file the same time. But the
    variables of a closure are part of the key of the cache. `version` is one of them, so that a change of the loops
    compiles them again.
    """

    def norms(rows, out):  # type: ignore[no-untyped-def]
        if version >= 0:
            norms_of_rows(rows, out)

    def fill(X, metric, transform, constants, degree, scale, weights, panels, limit, centred, out):  # type: ignore[no-untyped-def]
        full_width()
        if version >= 0:
            workspace = new_workspace(X, panels)
            fill_block(X, metric, transform, constants, degree, scale, weights, panels, limit, centred, workspace, out)

    try:
        return njit(cache=True, **OPTIONS)(norms), njit(cache=True, **OPTIONS)(fill)
    except RuntimeError:  # there is no writable folder for a cache: compile in every process
        return njit(**OPTIONS)(norms), njit(**OPTIONS)(fill)


norms, fill = entry_points(source_version())


def signatures(kind: Any) -> dict[str, Any]:
    """The one signature of each compiled function for `kind`, numba's float32 or float64."""
    vector, matrix, cube = kind[::1], kind[:, ::1], kind[:, :, ::1]
    doubles = types.float64[::1]
    centred = types.Tuple((doubles, doubles, cube, matrix, vector))
    read_only = types.Array(kind, 2, "C", readonly=True)
    constants = types.UniTuple(kind, 7)
    number = types.int64
    arguments = (read_only, number, number, constants, number, vector, vector, cube, kind, centred, matrix)
    return {"norms": types.void(matrix, vector), "fill": types.void(*arguments)}
