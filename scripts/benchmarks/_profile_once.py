"""One fit on the command line, with the seconds of each of its parts; a process of its own."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from _peak import peak_bytes

# Module, name in it, and the part that its calls are, perhaps with an argument; the time of a call within another one
# counts for the inner one.
PARTS = (
    ("streamkernel.compiled_loops", "Compiled._compile_or_recover", "compiled loops loaded"),
    ("streamkernel.cli.fit_request", "open_table", "table opened and checked"),
    ("streamkernel.table._pinned_rows", "PinnedRows.check_unchanged", "table opened and checked"),
    ("streamkernel.table._pinned_rows", "PinnedRows.check_read", "table opened and checked"),
    ("streamkernel.fits.ridge.ridge", "plan_ridge", "plan"),
    ("streamkernel.selection.row_cache", "RowCache.count_repeats", "sampled rows: drawn and compared"),
    ("streamkernel.fits.steps.choose_basis", "_searched", "metric, kernel, lengthscale on a sample"),
    ("streamkernel.engine.session", "Session.shared", "candidates: kernel blocks and sums"),
    ("streamkernel.selection.greedy", "lazy_picks", "candidates: picks"),
    ("streamkernel.basis", "Basis.append", "basis: its factor"),
    ("streamkernel.fits.ridge.ridge", "choose_basis", "rest of the selection"),
    ("streamkernel.reductions.sums", "NormalEquations.of", "whitening decided"),
    ("streamkernel.engine.session", "Session.sweep", "sweep: {3}"),
    ("streamkernel.fits.ridge.ridge", "by_decomposition", "alpha and coefficients"),
    ("streamkernel.models.saved", "SavedModel.save", "model saved"),
)


class Clock:
    """Seconds of each part, without those of the parts within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[float] = []

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*arguments, **options)  # within a part that the main thread waits for
            began = time.perf_counter()
            self._open.append(0.0)
            try:
                return function(*arguments, **options)
            finally:
                taken = time.perf_counter() - began
                name = part.format(*arguments)
                self.seconds[name] = self.seconds.get(name, 0.0) + taken - self._open.pop()
                if self._open:
                    self._open[-1] += taken

        return call


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    loading = time.time()
    gc.disable()  # as the program does while it loads (`streamkernel.cli.main`)
    clock = Clock()
    command = import_module("streamkernel.cli").main
    import_module("streamkernel.cli.commands.fit")  # with the settings of all kinds, which are its options
    for module, name, part in PARTS:
        holder, *inner, last = [import_module(module), *name.split(".")]
        for each in inner:
            holder = getattr(holder, each)
        found = vars(holder)[last]
        if isinstance(found, classmethod):
            setattr(holder, last, classmethod(clock.timed(part, found.__func__)))
        else:
            setattr(holder, last, clock.timed(part, found))
    loaded = time.time()
    sys.argv = ["streamkernel", "fit", arguments["store"], arguments["model"], "--quiet", *arguments["options"]]
    status = command()
    assert status == 0
    ended = time.time()
    parts = {"Python starts": loading - arguments["began"], "libraries loaded": loaded - loading}
    total = ended - arguments["began"]
    parts |= clock.seconds
    return {
        "parts": parts | {"everything else": total - sum(parts.values())},
        "total": total,
        "peak": peak_bytes(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
