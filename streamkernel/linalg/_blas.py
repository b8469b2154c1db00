"""BLAS and LAPACK without the GIL, in place.

`scipy.linalg` holds the GIL. Two threads of its `dsyrk` run one after the other; and for the seconds or minutes of a
large eigendecomposition no thread of the process sends a heartbeat, so that its lease or its worker is given up.
NumPy's ``K.T @ K`` releases the GIL, but needs an (n, n) temporary and a second pass that adds it. This module avoids
all of this: it calls the routines of the same library through the function pointers that SciPy publishes
(`scipy.linalg.cython_blas`, and `scipy.LowLevelCallable` for their C signatures), and ctypes releases the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
import scipy.linalg.cython_blas as _cython_blas
import scipy.linalg.cython_lapack as _cython_lapack
from scipy import LowLevelCallable

from streamkernel.errors import DependencyError
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Int, Untyped

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_CHAR = ctypes.c_char_p
_INT = ctypes.POINTER(ctypes.c_int)
_PTR = ctypes.c_void_p


def _routine(name: str, *argument_types: Untyped, library: Untyped = _cython_blas) -> Callable[..., None]:
    routine = LowLevelCallable.from_cython(library, name)
    # "void (char *, char *, int *, ...)". Another type would make the call read memory that is not its own: SciPy could
    # be built for a BLAS whose integers have 64 bits.
    types = routine.signature.removeprefix("void (").removesuffix(")").split(", ")
    fits = [(given == "char *", given == "int *") == (wanted is _CHAR, wanted is _INT)
            for given, wanted in zip(types, argument_types, strict=False)]  # fmt: skip
    if len(types) != len(argument_types) or not all(fits):
        raise DependencyError(
            f"{name} of SciPy is {routine.signature}, not of 32-bit integers; install a build of SciPy that is"
        )
    pointer = _capsule_pointer(routine.function, routine.signature.encode())
    function: Callable[..., None] = ctypes.CFUNCTYPE(None, *argument_types)(pointer)
    return function


_SYRK = {
    np.dtype(np.float64): _routine("dsyrk", _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _PTR, _INT),
    np.dtype(np.float32): _routine("ssyrk", _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _PTR, _INT),
}
_GEMM = {
    np.dtype(dtype): _routine(name, _CHAR, _CHAR, _INT, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT, _PTR, _PTR, _INT)
    for dtype, name in ((np.float64, "dgemm"), (np.float32, "sgemm"))
}
_TRSM = _routine("dtrsm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT)
_TRMM = _routine("dtrmm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT)
_POTRF = _routine("dpotrf", _CHAR, _INT, _PTR, _INT, _INT, library=_cython_lapack)
_TRTRI = _routine("dtrtri", _CHAR, _CHAR, _INT, _PTR, _INT, _INT, library=_cython_lapack)
_TRTRS = _routine("dtrtrs", _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _INT, _PTR, _INT, _INT, library=_cython_lapack)
_SYGST = _routine("dsygst", _INT, _CHAR, _INT, _PTR, _INT, _PTR, _INT, _INT, library=_cython_lapack)
_SYEVD = _routine("dsyevd", _CHAR, _CHAR, _INT, _PTR, _INT, _PTR, _PTR, _INT, _INT, _INT, _INT, library=_cython_lapack)
_SYTRD = _routine("dsytrd", _CHAR, _INT, _PTR, _INT, _PTR, _PTR, _PTR, _PTR, _INT, _INT, library=_cython_lapack)
_STERF = _routine("dsterf", _INT, _PTR, _PTR, _INT, library=_cython_lapack)
_STEDC = _routine("dstedc", _CHAR, _INT, _PTR, _PTR, _PTR, _INT, _PTR, _INT, _INT, _INT, _INT, library=_cython_lapack)
_ORMTR = _routine(
    "dormtr", _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _INT, _PTR, _PTR, _INT, _PTR, _INT, _INT, library=_cython_lapack
)
_PSTRF = _routine("dpstrf", _CHAR, _INT, _PTR, _INT, _INT, _INT, _PTR, _PTR, _INT, library=_cython_lapack)
_DOUBLE = np.dtype(np.float64)
# Rows of a matrix whose eigenvectors are computed at once: the work array has 2 n^2 numbers, counted in 32 bits.
MOST_DECOMPOSED = 32_766


# Made once for each value: BLAS takes numbers by reference, and a call has about ten of them.
@cache
def _int(value: int) -> Untyped:
    return ctypes.byref(ctypes.c_int(value))


@cache
def _scalar(value: float, dtype: AnyDType) -> Untyped:
    return ctypes.byref(ctypes.c_double(value) if dtype == np.float64 else ctypes.c_float(value))


def require(array: AnyArray, dtype: AnyDType) -> None:
    """Raise ValueError unless the array is a C-contiguous matrix of this dtype: BLAS would read other memory.

    Neither may it begin between two numbers, as arrays from a network do: BLAS ends the process on some processors.
    """
    if array.ndim != 2 or array.dtype != dtype or not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"an aligned, C-contiguous {dtype} matrix is needed, not {array.dtype} of shape {array.shape}")


def require_rows(array: AnyArray, dtype: AnyDType) -> None:
    """Raise ValueError unless the array is a matrix of this dtype with contiguous rows, such as a part of another."""
    whole = array.flags.c_contiguous or (array.strides[-1] == array.itemsize and array.strides[0] >= array.strides[-1])
    if array.ndim != 2 or array.dtype != dtype or not (whole and array.flags.aligned):
        raise ValueError(f"an aligned {dtype} matrix of whole rows is needed, not {array.dtype} of shape {array.shape}")


def syrk(K: AnyArray, into: AnyArray, *, lower: bool = False) -> None:
    """Add ``K^T K`` to the upper triangle of `into`, in place; the lower triangle is not touched.

    Parameters
    ----------
    K : (b, n) float32 or float64, each row contiguous.
    into : (n, n) of the same dtype, each row contiguous.
    lower : True to add to the lower triangle, and not to touch the upper one.
    """
    b, n = K.shape
    if b == 0 or n == 0:
        return
    require_rows(K, K.dtype)
    require_rows(into, K.dtype)
    if into.shape != (n, n):
        raise ValueError(f"the sums have shape {into.shape}, the block needs {(n, n)}")
    # Fortran reads K as the (n, b) matrix A, and the sum as A A^T; its lower triangle is our upper one.
    one, triangle = _scalar(1.0, K.dtype), b"U" if lower else b"L"
    _SYRK[K.dtype](
        triangle, b"N", _int(n), _int(b), one, K.ctypes.data, _leading(K), one, into.ctypes.data, _leading(into)
    )


def add_product(A: AnyArray, B: AnyArray, into: AnyArray) -> None:
    """``into += A^T B`` for A (b, n), B (b, k) and into (n, k) of one dtype, each row contiguous."""
    (b, n), k, dtype = A.shape, B.shape[1], A.dtype
    if min(b, n, k) == 0:
        return
    for matrix in (A, B, into):
        require_rows(matrix, dtype)
    if len(B) != b or into.shape != (n, k):
        raise ValueError(f"blocks of {A.shape} and {B.shape} do not add to sums of {into.shape}")
    # Fortran reads all three transposed.
    _GEMM[dtype](
        b"N", b"T", _int(k), _int(n), _int(b), _scalar(1.0, dtype), B.ctypes.data, _leading(B), A.ctypes.data,
        _leading(A), _scalar(1.0, dtype), into.ctypes.data, _leading(into),
    )  # fmt: skip


def subtract_product(K: AnyArray, L: AnyArray, into: AnyArray) -> None:
    """``into -= K L^T`` for K (b, r), L (n, r) and into (b, n) of one dtype, each row contiguous."""
    (b, r), n, dtype = K.shape, len(L), K.dtype
    # Fortran reads all three transposed.
    _GEMM[dtype](
        b"T", b"N", _int(n), _int(b), _int(r), _scalar(-1.0, dtype), L.ctypes.data, _leading(L), K.ctypes.data,
        _leading(K), _scalar(1.0, dtype), into.ctypes.data, _leading(into),
    )  # fmt: skip


def subtract_gram(G: Float, into: Float) -> None:
    """``into -= G G^T`` for G (b, n), in the lower triangle of `into` (b, b); the upper triangle is not touched."""
    b, n = G.shape
    # Fortran reads G^T, and our lower triangle is its upper one.
    _SYRK[_DOUBLE](
        b"U", b"T", _int(b), _int(n), _scalar(-1.0, _DOUBLE), G.ctypes.data, _leading(G), _scalar(1.0, _DOUBLE),
        into.ctypes.data, _leading(into),
    )  # fmt: skip


def subtract_product_left(L: Float, B: Float, into: Float) -> None:
    """``into -= L B`` for L (b, r), B (r, n) and into (b, n), each row contiguous."""
    (b, r), n = L.shape, B.shape[1]
    _GEMM[_DOUBLE](
        b"N", b"N", _int(n), _int(b), _int(r), _scalar(-1.0, _DOUBLE), B.ctypes.data, _leading(B), L.ctypes.data,
        _leading(L), _scalar(1.0, _DOUBLE), into.ctypes.data, _leading(into),
    )  # fmt: skip


def factor_lower(C: Float) -> int | None:
    """Overwrite the lower triangle of C (b, b), positive definite, by its Cholesky factor; the rest is not touched.

    Returns
    -------
    int or None
        First row with a pivot that is not positive or is NaN, where the factorisation stopped; None for success.
    """
    info = ctypes.c_int()
    _POTRF(b"U", _int(len(C)), C.ctypes.data, _leading(C), ctypes.byref(info))
    if info.value > 0:
        return info.value - 1
    # LAPACK may return NaN without an error code. A NaN in any row is also on the diagonal.
    broken = np.flatnonzero(~np.isfinite(np.diagonal(C)))
    return int(broken[0]) if len(broken) else None


def solved_by_triangle(L: Float, B: Float, *, transposed: bool) -> tuple[Float, int | None]:
    """``L^-1 B``, or ``L^-T B``, for a lower triangle L (n, n) in either order and B (n,) or (n, d), not empty.

    A leading square of a larger matrix is read where it is: a copy for each row of a factor would be O(n^3) bytes.

    Returns
    -------
    solution : float64, of the shape of B; in the order of Fortran.
    zero : first row with a zero on the diagonal of L, for which there is no solution; None for success.
    """
    L = np.asarray(L, np.float64)
    near, far = sorted(L.strides)
    if near != L.itemsize or far < len(L) * L.itemsize or far % L.itemsize:
        L = np.ascontiguousarray(L)
    # Fortran reads rows as columns, and so L in the order of C as an upper triangle.
    of_fortran = L.strides[0] == L.itemsize
    triangle, trans = (b"L", transposed) if of_fortran else (b"U", not transposed)
    leading = _int(max(L.strides[1 if of_fortran else 0] // L.itemsize, len(L)))
    X, n, info = np.array(B, np.float64, order="F"), _int(len(L)), ctypes.c_int()
    _TRTRS(
        triangle, b"T" if trans else b"N", b"N", n, _int(X.size // len(L)), L.ctypes.data, leading, X.ctypes.data, n,
        ctypes.byref(info),
    )  # fmt: skip
    return X, info.value - 1 if info.value else None


def whiten_gram(H: Float, L: Float) -> None:
    """``H <- L^-1 H L^-T`` of a symmetric H (n, n), for a lower triangle L in either order.

    Only the upper triangle of H is read and written. One routine uses the symmetry: half the operations of two
    triangular solves.
    """
    require(H, _DOUBLE)
    L, n = np.asfortranarray(L, np.float64), _int(len(H))
    # Fortran reads H as its transpose, and the upper triangle as the lower one.
    _SYGST(_int(1), b"L", n, H.ctypes.data, n, L.ctypes.data, n, ctypes.byref(ctypes.c_int()))


def eigenvectors(A: Float) -> tuple[Float, Float]:
    """Ascending eigenvalues (n,) of a symmetric matrix (n, n), whose lower triangle is read, and eigenvectors (n, n).

    There are at most `MOST_DECOMPOSED` rows.

    Raises
    ------
    numpy.linalg.LinAlgError
        The eigenvalues did not converge.
    """
    size = len(A)
    work = 1 + 6 * size + 2 * size * size
    vectors, values = np.array(A, np.float64, order="F"), np.empty(size)
    if size == 0:
        return values, vectors
    n, info = _int(size), ctypes.c_int()
    numbers, integers = np.empty(work), np.empty(3 + 5 * size, np.intc)
    _SYEVD(
        b"V", b"L", n, vectors.ctypes.data, n, values.ctypes.data, numbers.ctypes.data, _int(work),
        integers.ctypes.data_as(_INT), _int(len(integers)), ctypes.byref(info),
    )  # fmt: skip
    if info.value:
        raise np.linalg.LinAlgError(f"LAPACK's dsyevd ended with {info.value}")
    return values, vectors


# Rows of LAPACK's panels of reflections: more workspace than these makes nothing faster.
_PANEL = 64


def tridiagonal_form(A: Float) -> tuple[Float, Float, Float, Float]:
    """``A = Q T Q^T`` of a symmetric matrix (n, n), whose lower triangle is read; n >= 1.

    Returns
    -------
    reflections, scales : Q, as `times_reflections` takes it: (n, n) in the order of Fortran, and (n - 1,).
    diagonal, beside : (n,) diagonal of T, and (n - 1,) numbers beside it.
    """
    n, reflections = _int(len(A)), np.array(A, np.float64, order="F")
    diagonal, (beside, scales) = np.empty(len(A)), np.empty((2, len(A) - 1))
    numbers = np.empty(_PANEL * len(A))
    _SYTRD(
        b"L", n, reflections.ctypes.data, n, diagonal.ctypes.data, beside.ctypes.data, scales.ctypes.data,
        numbers.ctypes.data, _int(len(numbers)), ctypes.byref(ctypes.c_int()),
    )  # fmt: skip
    return reflections, scales, diagonal, beside


def times_reflections(reflections: Float, scales: Float, B: Float, *, transposed: bool) -> Float:
    """``Q B``, or ``Q^T B``, for the Q of `tridiagonal_form` and B (n, d), in the order of Fortran; n, d >= 1."""
    n, d = B.shape
    X, numbers = np.array(B, np.float64, order="F"), np.empty(_PANEL * (max(n, d) + _PANEL + 1))
    _ORMTR(
        b"L", b"L", b"T" if transposed else b"N", _int(n), _int(d), reflections.ctypes.data, _int(n),
        scales.ctypes.data, X.ctypes.data, _int(n), numbers.ctypes.data, _int(len(numbers)),
        ctypes.byref(ctypes.c_int()),
    )  # fmt: skip
    return X


def tridiagonal_values(diagonal: Float, beside: Float) -> Float:
    """Ascending eigenvalues (n,) of a tridiagonal matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        They did not converge.
    """
    values, rest, info = diagonal.copy(), beside.copy(), ctypes.c_int()
    _STERF(_int(len(values)), values.ctypes.data, rest.ctypes.data, ctypes.byref(info))
    if info.value:
        raise np.linalg.LinAlgError(f"LAPACK's dsterf ended with {info.value}")
    return values


def tridiagonal_vectors(diagonal: Float, beside: Float) -> Float:
    """Eigenvectors (n, n) of a tridiagonal matrix, in the order of Fortran and of ascending eigenvalues; n >= 1.

    Raises
    ------
    numpy.linalg.LinAlgError
        The eigenvalues did not converge.
    """
    size, info = len(diagonal), ctypes.c_int()
    values, rest, vectors = diagonal.copy(), beside.copy(), np.empty((size, size), order="F")
    numbers, integers = np.empty(1 + 4 * size + size * size), np.empty(3 + 5 * size, np.intc)
    _STEDC(
        b"I", _int(size), values.ctypes.data, rest.ctypes.data, vectors.ctypes.data, _int(size), numbers.ctypes.data,
        _int(len(numbers)), integers.ctypes.data_as(_INT), _int(len(integers)), ctypes.byref(info),
    )  # fmt: skip
    if info.value:
        raise np.linalg.LinAlgError(f"LAPACK's dstedc ended with {info.value}")
    return vectors


def pivoted_factor(A: Float) -> tuple[Float, Int]:
    """U (r, n) with ``U^T U = A[order][:, order]`` of a positive semidefinite A (n, n), by pivots that fall.

    Returns
    -------
    U : (r, n), upper triangle; r is the number of pivots above ``n eps max_i A_ii``, as LAPACK's dpstrf takes them.
    order : (n,) positions in A.
    """
    U, n = np.array(A, np.float64, order="F"), _int(len(A))
    order, rank, numbers = np.zeros(len(A), np.intc), ctypes.c_int(), np.empty(2 * len(A))
    if len(A):
        _PSTRF(
            b"U", n, U.ctypes.data, n, order.ctypes.data_as(_INT), ctypes.byref(rank), _scalar(-1.0, _DOUBLE),
            numbers.ctypes.data, ctypes.byref(ctypes.c_int()),
        )  # fmt: skip
    return np.triu(U)[: rank.value], order.astype(np.int64) - 1


def invert_lower(L: Float) -> None:
    """``L <- L^-1`` for a lower triangle L (b, b) without zeros on its diagonal; the rest of L is not touched."""
    _TRTRI(b"U", b"N", _int(len(L)), L.ctypes.data, _leading(L), ctypes.byref(ctypes.c_int()))


def solve_triangle(L: Float, K: Float) -> None:
    """``K <- K L^-T`` for a lower triangle L (n, n) and K (b, n), each row contiguous."""
    _triangle(_TRSM, b"L", b"T", L, K)


def multiply_triangle(W: Float, K: Float) -> None:
    """``K <- K W^T`` for a lower triangle W (n, n) and K (b, n), each row contiguous."""
    _triangle(_TRMM, b"L", b"T", W, K)


def solve_triangle_left(L: Float, B: Float) -> None:
    """``B <- L^-1 B`` for a lower triangle L (b, b) and B (b, n), each row contiguous."""
    _triangle(_TRSM, b"R", b"N", L, B)


def multiply_triangle_left(W: Float, B: Float) -> None:
    """``B <- W B`` for a lower triangle W (b, b) and B (b, n), each row contiguous."""
    _triangle(_TRMM, b"R", b"N", W, B)


def _triangle(routine: Callable[..., None], side: bytes, transposed: bytes, L: Float, K: Float) -> None:
    b, n = K.shape
    one = _scalar(1.0, _DOUBLE)
    # Fortran reads K^T (n, b), so that the side is the other one, and L^T, an upper triangle.
    routine(
        side, b"U", transposed, b"N", _int(n), _int(b), one, L.ctypes.data, _leading(L), K.ctypes.data, _leading(K)
    )  # fmt: skip


def _leading(rows: Float) -> Untyped:
    # A single row may have any stride, but BLAS requires at least its length.
    return _int(max(rows.strides[0] // rows.itemsize, rows.shape[1], 1))
