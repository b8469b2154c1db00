"""An output under construction, in a folder or at a URL: whole under its name once it is published, or absent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from streamkernel.blobs import Blobs


class Building(ABC):
    """Files are made in `folder`; `publish` makes them the output, `abandon` removes them if they were not published.

    Attributes
    ----------
    target : path or URL (text) of the output.
    folder : local folder of the files: the place itself, or one from which `publish` sends them to a URL.
    blobs, prefix : where the output is until it is published; tasks write their chunks there.
    """

    target: str | Path
    folder: Path
    blobs: Blobs
    prefix: str

    def send(self, key: str) -> None:
        """Called when a file of `folder` is complete: at a URL it is sent now, and removed from this disk."""
        return

    def fetch(self, key: str) -> None:
        """Make sure that a file that was sent is in `folder` again."""
        return

    @abstractmethod
    def publish(self, complete: bytes, *, overwrite: bool = False) -> None:
        """Write COMPLETE after all other files, and give the output its name.

        With `overwrite`, an existing output is replaced in one step.

        Raises
        ------
        StoreExistsError
            Another process has published an output meanwhile, and `overwrite` is false.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Remove all that was built so far; does nothing after `publish`."""
