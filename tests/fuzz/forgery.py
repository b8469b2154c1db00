"""Bundles that are whole, to the last digest, and say what no bundle of ours says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz.damage import Files, arrays_damaged, json_damaged, lay, resealed, taken
from fuzz.limits import Yard
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from streamkernel.errors import StreamKernelError
from streamkernel.store import Bundle, read_bundle, write_bundle

__all__ = ["Forgery", "of_inputs", "reconfigured"]


def of_inputs(examples: int) -> settings:
    """So many inputs, the same ones every time."""
    return settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def reconfigured(path: Path, config: dict[str, Any]) -> None:
    """Give the bundle at a path another configuration, which its manifest vouches for."""
    files = taken(path)
    header = {**json.loads(files["config.json"]), "config": config}
    files = resealed({**files, "config.json": json.dumps(header).encode()})
    for name in ("config.json", "COMPLETE"):
        (path / name).write_bytes(files[name])


class Forgery:
    """Forgeries of the bundle that is `below` in a store.

    Parameters
    ----------
    yard : where the store is laid once, to be read.
    files : of the store, as they should be.
    below : "" where the store is the bundle, else as "basis/".
    """

    def __init__(self, yard: Yard, files: Files, below: str = "") -> None:
        self.files, self.below = files, below
        self._header = json.loads(files[f"{below}config.json"])
        lay(yard.place("whole"), files, [])
        self._arrays = read_bundle(yard.place_of("whole") / below, self._header["kind"], versions=range(9)).arrays
        yard.place("whole")

    def drawn(self) -> st.SearchStrategy[Any]:
        """Another configuration, other arrays, and which of the two are taken."""
        config = json_damaged(self.files[f"{self.below}config.json"])
        return st.tuples(config, arrays_damaged(self._arrays), st.integers(0, 2))

    def lay(self, path: Path, drawn: tuple[bytes, dict[str, Any], int]) -> None:
        """Write a store with it."""
        config, arrays, both = drawn
        with_config = resealed({**self.files, f"{self.below}config.json": config}, self.below)
        if both == 0:
            lay(path, with_config, [])
            return
        others = {name: content for name, content in self.files.items() if not name.startswith(self.below)}
        lay(path, others, [])
        try:
            found = json.loads(config)["config"] if both == 1 else self._header["config"]
            write_bundle(path / self.below, Bundle(self._header["kind"], self._header["version"], found, arrays))
        except (StreamKernelError, ValueError, TypeError, KeyError, RecursionError):
            for name, content in with_config.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
