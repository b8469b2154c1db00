"""Followers in this process, and who watches them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from updates import X, Y

from streamkernel import append_rows, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.following.follower import Fold, Follower
from streamkernel.following.update_saved import update_saved
from streamkernel.models import RidgeModel

QUICK: dict[str, Any] = {"interval": 0.01}


def append(store: Path, start: int, stop: int) -> None:
    append_rows(open_table(X[start:stop], Y[start:stop]), store)


def by_hand(model: Path, store: Path, *rows: int) -> None:
    table = open_table(store)
    update_saved(
        model, RidgeModel.load, table.slice(*rows) if rows else table, lambda kept: Session(checkpoints=kept), stale=1e9
    )


class Watched:
    """Counts, and appends the next rows after each fold."""

    def __init__(self, store: Path, *ends: int) -> None:
        self.store, self.ends, self.events = store, list(ends), []  # type: ignore[var-annotated]

    def folded(self, fold: Fold) -> None:
        self.events.append(fold.rows)
        if self.ends:
            append(self.store, fold.rows, self.ends.pop(0))

    def failed(self, error: Exception, seconds: float) -> None:
        self.events.append(type(error).__name__)

    def recovered(self) -> None:
        self.events.append("recovered")


def follower(store: Path, model: Path, watcher: Watched, **options: Any) -> Follower:
    @contextlib.contextmanager
    def executor() -> Iterator[ThreadExecutor]:
        watcher.events.append("started")
        yield ThreadExecutor(1)
        watcher.events.append("ended")

    fields: dict[str, Any] = {"executor": executor, "load": RidgeModel.load, "options": {}, **QUICK, **options}
    return Follower(store=str(store), model=str(model), watcher=watcher, **fields)
