"""The compiled functions, ready to call: compiled or loaded once per dtype, and once more if the cache was damaged."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
from numba import float32, float64
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from streamkernel.errors import StreamKernelWarning
from streamkernel.kernels import _loops

__all__ = ["Compiled", "compiled"]

KINDS = {np.dtype(np.float32): float32, np.dtype(np.float64): float64}


class Compiled:
    """The functions of `_loops` that Python calls, each with one signature per dtype."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ready: set[tuple[str, np.dtype[Any]]] = set()
        self.warned = False

    def function(self, name: str, dtype: np.dtype[Any]) -> Any:
        """The function, compiled or loaded from the cache on the first call."""
        function = getattr(_loops, name)
        if (name, dtype) not in self.ready:
            with self.lock:
                if (name, dtype) not in self.ready:
                    self.compile_or_recover(function, _loops.signatures(KINDS[dtype])[name])
                    self.ready.add((name, dtype))
        return function

    def compile_or_recover(self, function: Any, signature: Any) -> None:
        """Compile `function` for `signature` or load it from Numba's cache; one that cannot be read is cleared once."""
        try:
            function.compile(signature)
        except NumbaError:  # our own mistake, not the cache's
            raise
        except Exception as error:  # a truncated file raises whatever unpickling comes to
            cache = function._cache
            cache.flush()
            function.compile(signature)
            if not self.warned:
                self.warned = True
                warnings.warn(
                    f"Numba's cache in {cache.cache_path} could not be read ({type(error).__name__}: {error});"
                    " it was cleared and the loops compiled again",
                    StreamKernelWarning,
                    stacklevel=2,
                )

    def norms(self, rows: NDArray[Any], out: NDArray[Any]) -> None:
        """``out[i] = |x_i|^2``."""
        self.function("norms", rows.dtype)(rows, out)

    def fill(self, X: NDArray[Any], *arguments: Any) -> None:
        """One block; see `_loops.fill_block`."""
        self.function("fill", X.dtype)(X, *arguments)


compiled = Compiled()
