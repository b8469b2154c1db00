"""The rows of the fault table: what goes wrong, what is promised, and the figure that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROMISES", "Promise", "table"]


@dataclass(frozen=True)
class Promise:
    """One row of the table."""

    fault: str
    promise: str
    asked: str


PROMISES = {
    "worker": Promise("kill -9 of a worker in mid-reduction", "same bits", "10 of 10 equal, at most baseline + 10 s"),
    "all workers": Promise("all workers killed, others started", "goes on", "equal, 30 s"),
    "every 4 s": Promise("a worker killed every 4 s", "finishes, same bits", "5 of 5"),
    "factor": Promise(
        "kill -9 in a factor build, resumed",
        "no partial or duplicate rows",
        "digests equal, finished chunks rewritten 0",
    ),
    "poison": Promise("a task that kills its worker", "error names the chunk", "15 s"),
    "memory": Promise("a task over the memory limit", "memory advice", "20 s"),
    "stopped": Promise("SIGSTOP of a worker", "recovered through worker-ttl", "equal, 25 s (ttl 6 s)"),
    "scheduler": Promise("kill -9 of the scheduler", "typed error, resumable", "error in 5 s, loses at most 1 sweep"),
    "client killed": Promise("kill -9 of the client", "checkpoint valid", "resume bitwise equal"),
    "client ended": Promise("SIGTERM of the client", "checkpoint, then exit", "resume bitwise equal"),
    "second driver": Promise("a second driver of the same run", "refused", "one loser, 0 writes"),
    "full output": Promise("disk full on the output", "previous generation valid", "error in 5 s, resume equal"),
    "full checkpoint": Promise("disk full on a checkpoint", "previous one valid", "error in 5 s, resume equal"),
    "torn": Promise("stray .partial; torn or empty newest checkpoint", "ignored, the one before it, warned", "equal"),
    "chunks": Promise("a chunk deleted or flipped between sweeps", "error names it", "50 of 50 positions"),
    "transient": Promise("store errors that pass", "tried again", "equal"),
    "permanent": Promise("store errors that stay", "fails clearly, never fill", "30 s"),
    "one digest": Promise(
        "1, 2, 3 workers; 1, 2 threads; shuffled submission; tasks run twice", "same bits", "1 digest"
    ),
    "numba": Promise("a corrupt Numba cache", "recovers", "success, 1 warning"),
    "lifetime": Promise("a worker's lifetime ends", "drains", "equal"),
}


def table(reached: dict[str, list[str]], failed: set[str]) -> list[tuple[str, str, str, str]]:
    """(fault, promise, asked, reached) of the rows that were run, in the order of the table."""
    rows = []
    for name, promise in PROMISES.items():
        if name in failed:
            figure = "NOT REACHED"
        elif name in reached:
            figure = "; ".join(reached[name])
        else:
            continue
        rows.append((promise.fault, promise.promise, promise.asked, figure))
    return rows
