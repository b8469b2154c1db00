"""An output under construction at a URL: a generation that no record names yet.

::

    OUT/generations/1f3a9c20b7d4/               the output so far
    OUT/UNFINISHED/run.json                     description of an output that survives its builder, with its name
    OUT/UNFINISHED/1f3a9c20b7d4/KEY/DIGEST      its finished chunks: empty objects
    OUT/UNFINISHED/LEASE/                       lease of its builder
"""

from __future__ import annotations

import json
import re
import warnings
from contextlib import suppress
from typing import Any

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Generations, Layer, Lease, content_digest
from streamkernel.errors import (
    CheckpointMismatchError,
    CorruptMetadataError,
    RunLockedError,
    StoreError,
    StreamKernelWarning,
)
from streamkernel.manifest import COMPLETE
from streamkernel.store.arrays import ZARR_JSON
from streamkernel.store.objects import publish_generation
from streamkernel.store.plain import differences
from streamkernel.store.row_places import ObjectRows

__all__ = ["TTL", "PartialObjects", "UnfinishedObjects"]

UNFINISHED = "UNFINISHED"
RUN = f"{UNFINISHED}/run.json"
FORMAT = "streamkernel.unfinished"
# Time to live of the lease, in seconds: a silent builder counts as alive for that long.
TTL = 15.0

_NAME = re.compile(r"[0-9a-f]{12}")


class PartialObjects:
    """A generation in which the output at `target` is built; `abandon` removes it.

    Attributes
    ----------
    rows : place of its chunks.
    resumed : whether an earlier builder had begun it; always False.
    """

    resumed = False

    def __init__(self, target: str) -> None:
        self.target = target
        self._place = Generations(target)
        self._name = self._place.new_name()
        self.rows = ObjectRows(target, Layer(self._name, 0).prefix, None)
        self.noted: dict[str, set[str]] = {}

    def begin(self) -> None:
        """Do nothing: this output cannot be resumed."""
        return

    def publish(self, complete: bytes, *, overwrite: bool) -> None:
        """Make the generation current."""
        publish_generation(self._place, self._name, complete, overwrite=overwrite)

    def abandon(self) -> None:
        """Remove all that was built so far; if this fails now, a later writer finds the stray generation by its age."""
        with suppress(StoreError):
            self._place.discard(self._name)


class UnfinishedObjects:
    """A generation that stays until it is published; parameters and errors are those of `UnfinishedFolder`."""

    def __init__(self, target: str, config: dict[str, Any], *, resume: bool) -> None:
        self.target = target
        self._config = config
        self._place = Generations(target)
        self._blobs = self._place.blobs
        lease = Lease.acquire(self._blobs, f"{UNFINISHED}/LEASE", ttl=TTL, wait=1.1 * TTL, while_silent=True)
        if lease is None:
            raise RunLockedError(f"{target} is being written by another process; wait for it or stop it first")
        self._lease = lease
        try:
            earlier = self._earlier() if resume else None
            if earlier is None:
                self._clear()
            self.resumed = earlier is not None
            self._name = earlier or self._place.new_name()
            self.rows = self._rows(self._name)
        except BaseException:
            self._lease.release()
            raise

    def begin(self) -> None:
        """Mark the output as resumable, once its metadata are written."""
        run = {"format": FORMAT, "version": 1, "name": self._name, "config": self._config, "metadata": self._pin()}
        self._blobs.write(RUN, json.dumps(run, allow_nan=False).encode())

    def publish(self, complete: bytes, *, overwrite: bool) -> None:
        """Make the generation current."""
        self._lease.check()
        publish_generation(self._place, self._name, complete, overwrite=overwrite)
        self._forget(self._name)
        self._lease.release()

    def abandon(self) -> None:
        """Release the lease. Finished chunks stay for the next builder."""
        with suppress(StoreError):  # the lease expires by itself
            self._lease.release()

    def _rows(self, name: str) -> ObjectRows:
        return ObjectRows(self.target, Layer(name, 0).prefix, f"{UNFINISHED}/{name}/")

    def _earlier(self) -> str | None:
        """Checked name of the generation that an earlier builder left; None if there is none to resume."""
        content = self._blobs.read(RUN)
        if content is None:
            return None
        where = f"{self.target}/{RUN}"
        try:
            run = parsed_json(content)
            name, config, metadata = str(run["name"]), run["config"], run["metadata"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptMetadataError(f"{where} is not as it was written; start without resuming") from error
        if run.get("format") != FORMAT or not _NAME.fullmatch(name):
            raise CorruptMetadataError(f"{where} is not as it was written; start without resuming")
        found = list(differences(self._config, config))
        if found:
            raise CheckpointMismatchError(
                f"the unfinished output at {self.target} has another configuration: {'; '.join(found)};"
                " use the same options, or start without resuming"
            )
        latest = self._place.latest()
        if latest is not None and any(layer.name == name for layer in latest.layers):
            # Published, but its builder died before it removed the rest.
            return None
        self.rows = self._rows(name)
        if self._pin() != metadata:
            message = f"the unfinished output at {self.target} is damaged and is written anew"
            warnings.warn(message, StreamKernelWarning, stacklevel=2)
            return None
        # A former `finish` may have stopped after COMPLETE: a generation that is still written must not look whole.
        self._blobs.remove(self.rows.folder + COMPLETE)
        return name

    def _pin(self) -> dict[str, str]:
        """Digest of every metadata object of the group and its arrays."""
        names = [ZARR_JSON, *(f"{name}/{ZARR_JSON}" for name in self._config["arrays"])]
        contents = {name: self._blobs.read(self.rows.folder + name) for name in names}
        return {name: content_digest(content) for name, content in contents.items() if content is not None}

    def _clear(self) -> None:
        """Remove the unfinished output of an earlier builder."""
        try:
            name = str(parsed_json(self._blobs.read(RUN) or b"{}")["name"])
        except (ValueError, KeyError, TypeError, RecursionError):
            name = ""
        self._blobs.remove(RUN)
        if not _NAME.fullmatch(name):
            return
        latest = self._place.latest()
        if latest is None or all(layer.name != name for layer in latest.layers):
            self._place.discard(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._blobs.remove(RUN)
        self._blobs.remove_all(self._blobs.keys(f"{UNFINISHED}/{name}/"))

    @property
    def noted(self) -> dict[str, set[str]]:
        """Digests of its finished chunks."""
        return self.rows.noted()
