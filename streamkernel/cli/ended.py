"""That a signal ended a command, apart from what loads the engine."""

from __future__ import annotations

import signal

__all__ = ["TERMINATED", "EndedBySignal"]

TERMINATED = 128 + signal.SIGTERM


class EndedBySignal(BaseException):
    """Not an error of the run: whoever cleans up after errors keeps its checkpoints."""
