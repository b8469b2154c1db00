"""BLAS without the GIL, accumulating in place.

`scipy.linalg.blas` holds the GIL, so two threads of `dsyrk` run one after the other; NumPy's ``K.T @ K`` releases
it but needs an (n, n) temporary and a second pass to add it up. The same library's routines, called through the
function pointers that SciPy publishes for Cython, do neither: ctypes lets go of the GIL for the call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg.cython_blas as _cython_blas
from numpy.typing import NDArray

__all__ = ["multiply_triangle", "require", "solve_triangle", "subtract_product", "syrk"]

Float = NDArray[np.float64]

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_CHAR = ctypes.c_char_p
_INT = ctypes.POINTER(ctypes.c_int)
_PTR = ctypes.c_void_p


def _routine(name: str, *argument_types: Any) -> Callable[..., None]:
    capsule = getattr(_cython_blas, "__pyx_capi__")[name]  # noqa: B009
    pointer = _capsule_pointer(capsule, _capsule_name(capsule))
    function: Callable[..., None] = ctypes.CFUNCTYPE(None, *argument_types)(pointer)
    return function


_SYRK = {
    np.dtype(np.float64): _routine("dsyrk", _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _PTR, _INT),
    np.dtype(np.float32): _routine("ssyrk", _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _PTR, _INT),
}
_GEMM = _routine("dgemm", _CHAR, _CHAR, _INT, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT, _PTR, _PTR, _INT)
_TRSM = _routine("dtrsm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT)
_TRMM = _routine("dtrmm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _PTR, _PTR, _INT, _PTR, _INT)
_DOUBLE = np.dtype(np.float64)


@cache
def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


@cache
def _scalar(value: float, dtype: np.dtype[Any]) -> Any:
    return ctypes.byref(ctypes.c_double(value) if dtype == np.float64 else ctypes.c_float(value))


def require(array: NDArray[Any], dtype: np.dtype[Any]) -> None:
    if array.ndim != 2 or array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError(f"a C-contiguous {dtype} matrix is needed, not {array.dtype} of shape {array.shape}")


def syrk(K: NDArray[Any], into: NDArray[Any]) -> None:
    """Add ``K^T K`` to the upper triangle of `into`, in place; the lower triangle is not touched.

    Parameters
    ----------
    K : (b, n) C-contiguous, float32 or float64.
    into : (n, n) C-contiguous, of the same dtype.
    """
    b, n = K.shape
    if b == 0 or n == 0:
        return
    require(K, K.dtype)
    require(into, K.dtype)
    if into.shape != (n, n):
        raise ValueError(f"the sums have shape {into.shape}, the block needs {(n, n)}")
    # In Fortran's eyes K is the (n, b) matrix A and the sum A A^T; its lower triangle is our upper one.
    one = _scalar(1.0, K.dtype)
    _SYRK[K.dtype](b"L", b"N", _int(n), _int(b), one, K.ctypes.data, _int(n), one, into.ctypes.data, _int(n))


def subtract_product(K: Float, L: Float, into: Float) -> None:
    """``into -= K L^T`` for K (b, r), L (n, r) and into (b, n), whose rows lie each in one piece."""
    (b, r), n = K.shape, len(L)
    # In Fortran's eyes all three are transposed.
    _GEMM(
        b"T", b"N", _int(n), _int(b), _int(r), _scalar(-1.0, _DOUBLE), L.ctypes.data, _leading(L), K.ctypes.data,
        _leading(K), _scalar(1.0, _DOUBLE), into.ctypes.data, _leading(into),
    )  # fmt: skip


def solve_triangle(L: Float, K: Float) -> None:
    """``K <- K L^-T`` for a lower triangle L (n, n) and K (b, n), whose rows lie each in one piece."""
    _triangle(_TRSM, L, K)


def multiply_triangle(W: Float, K: Float) -> None:
    """``K <- K W^T`` for a lower triangle W (n, n) and K (b, n), whose rows lie each in one piece."""
    _triangle(_TRMM, W, K)


def _triangle(routine: Callable[..., None], L: Float, K: Float) -> None:
    b, n = K.shape
    one = _scalar(1.0, _DOUBLE)
    # Fortran sees K^T (n, b) and L^T, an upper triangle.
    routine(
        b"L", b"U", b"T", b"N", _int(n), _int(b), one, L.ctypes.data, _leading(L), K.ctypes.data, _leading(K)
    )  # fmt: skip


def _leading(rows: Float) -> Any:
    return _int(rows.strides[0] // rows.itemsize)
