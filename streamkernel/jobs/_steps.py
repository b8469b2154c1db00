"""Where the checkpoints of a job are, and which ones there are: names only, nothing in them is read."""

from __future__ import annotations

import re

from streamkernel.blobs import blobs_at, joined, parent_of

_KEY = re.compile(r"(\d{4,})/(\d{4,})-([a-z][a-z0-9_]*)/.*")


def steps_of(id: str, model: str) -> str:
    """Location of the checkpoints of a job: beside its model."""
    parent, name = parent_of(model)
    return joined(parent, f".{name}.{id}.run")


def remove_steps(location: str) -> None:
    """Remove the checkpoints of a run, if there are any."""
    blobs_at(location).remove_below()


def steps_saved(location: str) -> int:
    """Number of steps with a checkpoint."""
    return len(attempts_at(location))


def attempts_at(location: str) -> dict[tuple[int, str], list[int]]:
    """The drivers that have begun to save each step, by its number and name."""
    found: dict[tuple[int, str], set[int]] = {}
    for key in blobs_at(location).keys(""):
        match = _KEY.fullmatch(key)
        if match:
            found.setdefault((int(match[2]), match[3]), set()).add(int(match[1]))
    return {step: sorted(attempts) for step, attempts in found.items()}
