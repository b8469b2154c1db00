"""Outputs at a URL, copied to a local folder to be read: whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.blobs import MOST_FOLLOWED, Generation, Generations, content_digest, download
from streamkernel.errors import (
    CorruptMetadataError,
    IncompleteStoreError,
    ModelFormatError,
    ResourceLimitError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.manifest import COMPLETE
from streamkernel.outputs import TemporaryFolder


@contextmanager
def fetched(url: str, max_bytes: int) -> Iterator[Path]:
    """The output at a URL, copied to a local folder while the block runs; errors in it name the URL.

    Raises
    ------
    StoreNotFoundError
        Nothing is there.
    ResourceLimitError
        It is larger than `max_bytes`; nothing was fetched.
    CorruptMetadataError, IncompleteStoreError
        Its COMPLETE is not the one that was published.
    """
    place = Generations(url)
    with TemporaryFolder() as around:
        folder = around / "fetched"
        generation = place.latest_or_plain()
        for _ in range(MOST_FOLLOWED):
            try:
                _fetch(place, generation, folder, max_bytes)
                break
            except StoreError as error:
                if type(error) is StoreError:  # the place does not answer
                    raise
                # Two new generations since we began, so ours was removed: take the new one.
                latest = place.latest_or_plain()
                if latest.identity == generation.identity:
                    raise
                generation = latest
                folder = around / f"fetched-{latest.layers[-1].name}"
        with named(folder, url):
            yield folder


def _fetch(place: Generations, generation: Generation, folder: Path, max_bytes: int) -> None:
    url = place.location
    stamps = place.blobs.stamps(generation.prefix)
    lacks_config = generation.record is None and "config.json" not in stamps
    # What a killed writer left is nothing, as it is in a folder, where it has another name.
    if lacks_config and not (stamps and place.taken()):
        raise StoreNotFoundError(f"nothing at {url}", remedy="check the address")
    if lacks_config:
        raise ModelFormatError(f"{url} is not a saved model (no config.json)", remedy="choose another path")
    size = sum(stamp.size for stamp in stamps.values())
    if size > max_bytes:
        raise ResourceLimitError(
            f"{url} has {size} bytes, more than the {max_bytes} allowed; is this the store you meant?"
        )
    folder.mkdir()
    download(place.blobs, stamps, generation.prefix, folder)
    if generation.digest is None:
        return
    if not (folder / COMPLETE).exists():
        raise IncompleteStoreError(f"{url} has lost its {COMPLETE}", remedy="restore it from a copy")
    if content_digest((folder / COMPLETE).read_bytes()) != generation.digest:
        raise CorruptMetadataError(f"{url}: {COMPLETE} is not as it was written", remedy="restore it from a copy")


@contextmanager
def named(folder: Path, url: str) -> Iterator[None]:
    """Replace the folder's name by the URL in the messages of errors."""
    try:
        yield
    except StoreError as error:
        error.args = tuple(arg.replace(str(folder), url) if isinstance(arg, str) else arg for arg in error.args)
        error.what = error.what.replace(str(folder), url)
        raise
