"""Rows of a Zarr array, pinned when opened: a later read gives the same values, or raises an error."""

from __future__ import annotations

import warnings

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.storage import LocalStore, StorePath

from streamkernel.atomic import array_digest, text_digest
from streamkernel.blobs import first_line
from streamkernel.errors import (
    CorruptChunkError,
    CorruptMetadataError,
    InputChangedError,
    StreamKernelError,
    UncheckedChunksWarning,
)
from streamkernel.manifest import COMPLETE, ArrayManifest, Manifest, parse_manifest
from streamkernel.table.rows import RowArray
from streamkernel.table.stored._bounds import bounded
from streamkernel.table.stored._chunks import ChunkFiles
from streamkernel.table.stored.blob_store import BlobStore
from streamkernel.table.stored.chunk_bytes import ChunkBytes
from streamkernel.table.stored.metadata import ZarrArray, array_metadata, join, open_array, place, read_bytes, retried
from streamkernel.table.values import float_dtype
from streamkernel.type_aliases import AnyArray, Fields, Int

_warned: set[str] = set()


class ZarrRows(RowArray):
    """Rows of the Zarr array at `path` in `store`.

    It pickles as store, path and pin (digests of the metadata file and of COMPLETE); the receiver opens the
    array again and refuses one whose pin differs. If `ingest` has appended rows since, the manifest proves that the
    pinned rows are unchanged; only these are visible then.

    Parameters
    ----------
    store, path
        Store and path of the array.
    name
        "X" or "y": role of the rows, for messages.
    manifest_key
        Key of the COMPLETE file whose digests are checked at every read; None for foreign arrays.
    manifest
        That file's content, from a caller that has just read it; None to read it here.
    """

    def __init__(
        self, store: Store, path: str, name: str, manifest_key: str | None = None, manifest: Manifest | None = None
    ) -> None:
        self.name = name
        self._store, self._path, self._manifest_key = store, path, manifest_key
        self._latest = manifest
        self._metadata_pin: str | None = None
        self._manifest_pin: str | None = None
        self._content: str | None = None
        self._open(manifest)
        if not self.checksummed:
            self._warn_unchecked()
        # Time and size of every chunk: a rewrite during a fit is noticed even where nothing checks the bytes.
        self._survey: Int | None = self._files.survey()

    def _open(self, read: Manifest | None = None) -> None:
        content = array_metadata(self._store, self._path)
        self._manifest = self._pinned(text_digest(content.decode("utf-8", "replace")), "is another one", read)
        array = open_array(self._store, self._path, content, self.name)
        self._array = self._readable(array)
        self.shape = tuple(int(n) for n in self._array.shape)
        self.dtype = np.dtype(self._array.dtype)
        self.chunk_rows = int(self._array.chunks[0])  # of an inner chunk, where there are shards
        self.proved = self._manifest is not None
        if self._manifest is not None and self._manifest.n_rows <= self.shape[0]:
            self.shape = (self._manifest.n_rows, *self.shape[1:])
        if self.name != "y" or self.dtype.kind not in "UTO":
            float_dtype(self.dtype, f"{self.name} at {place(self._store, self._path)}")
        self._files = ChunkFiles(self._store, self._path, array)
        ours = isinstance(self._store, (LocalStore, BlobStore))
        self._bytes = ChunkBytes.of(array) if ours else None
        manifest = self._manifest
        if manifest is not None and (
            manifest.shape != self.shape
            or manifest.chunk_rows != self._array.chunks[0]
            or manifest.dtype != self.dtype.str
        ):
            raise CorruptMetadataError(
                f"{place(self._store, self._manifest_key or '')} describes {self._path} as {manifest.shape} "
                f"{manifest.dtype}, its metadata as {self.shape} {self.dtype.str}; write the store again"
            )

    def _readable(self, array: ZarrArray) -> ZarrArray:
        """The array with bounded chunks; at a URL an absent chunk raises an error."""
        made = bounded(array)
        if not isinstance(self._store, BlobStore):
            return made
        path = StorePath(self._store.requiring_chunks(), made.path)
        return zarr.Array(zarr.AsyncArray(metadata=made.metadata, store_path=path))

    def _pinned(self, metadata: str, what: str, now: Manifest | None = None) -> ArrayManifest | None:
        """The array's pinned manifest, which the first call pins; None for a foreign array.

        Parameters
        ----------
        metadata
            Digest of the present metadata file.
        what
            Words for the error where the metadata file is not the pinned one.
        now
            The present manifest; None to read it.
        """
        changed = f"its metadata file {join(self._path, 'zarr.json')} {what}"
        if self._manifest_key is None:
            if self._metadata_pin not in (None, metadata):
                raise self._changed(changed)
            self._metadata_pin = metadata
            return None
        now = self._read_manifest() if now is None else now
        entry = self._path.rpartition("/")[2]
        if entry not in now.arrays:
            where = place(self._store, self._manifest_key)
            raise CorruptMetadataError(f"{where} does not list the array {entry}; write the store again")
        then = now if self._manifest_pin is None else now.at(self._manifest_pin)
        if then is None:
            raise self._changed("its COMPLETE manifest is another one" if metadata == self._metadata_pin else changed)
        # The metadata file was read before the manifest, so it may be that of an earlier generation.
        known = [now.metadata, then.metadata, *(earlier.metadata for earlier in now.history)]
        if all(metadata != digests.get(entry) for digests in known):
            if self._metadata_pin is not None:
                raise self._changed(changed)
            raise CorruptMetadataError(
                f"{place(self._store, join(self._path, 'zarr.json'))} is not the file that {COMPLETE} was written "
                "with; write the store again"
            )
        self._metadata_pin, self._manifest_pin = then.metadata.get(entry, metadata), then.digest
        if self._content is None:
            # The first one stays: an earlier release that appends rows drops it from the history.
            self._content = then.content
        return then.arrays[entry]

    def _read_manifest(self) -> Manifest:
        assert self._manifest_key is not None
        content = read_bytes(self._store, self._manifest_key)
        where = place(self._store, self._manifest_key)
        if content is None:
            if self._manifest_pin is not None:
                raise self._changed("its COMPLETE manifest is gone")
            raise CorruptMetadataError(f"{where} is missing; write the store again")
        # The file is read anew at every check, on purpose: this shows a change during the fit. It is parsed again only
        # if it is another one.
        text = content.decode("utf-8", "replace")
        if self._latest is None or self._latest.digest != text_digest(text):
            self._latest = parse_manifest(text, where)
        return self._latest

    def _warn_unchecked(self) -> None:
        where = place(self._store, self._path)
        if where not in _warned:
            _warned.add(where)
            warnings.warn(
                f"{where} has no checksum codec: a flipped bit would be read as a number; ingest it, or add CRC32C",
                UncheckedChunksWarning,
                stacklevel=2,
            )

    @property
    def checksummed(self) -> bool:
        """True where flipped bits are found: a codec or the manifest checks them."""
        return self._manifest is not None or self._files.checksummed

    @property
    def fingerprint(self) -> str:
        """Digest of the metadata file and of the table's content; path and source are not part of it.

        Of a table that an earlier release made, and of outputs of rows, that of the manifest in place of the content.
        """
        return text_digest(f"{self._metadata_pin}/{self._content or self._manifest_pin}")

    @property
    def stamp(self) -> str:
        if self.proved:
            return ""
        survey = self._files.survey() if self._survey is None else self._survey
        # Without the inode number, which a copy does not keep.
        return array_digest(survey[:, :2])

    def digest_known(self, first: int, last: int) -> bool:
        """Whether the rows are a chunk, and there is a manifest that lists it."""
        return self._manifest is not None and (first, last) == self.chunk_span(first)

    def digest(self, first: int, last: int) -> str:
        """For a whole chunk the digest in the manifest, which every read is compared with; for other rows a read."""
        if self._manifest is not None and self.digest_known(first, last):
            return self._manifest.digests[first // self.chunk_rows]
        return super().digest(first, last)

    def where(self, row: int) -> str:
        """The chunk that holds `row`."""
        return self._files.describe(self._files.keys(row, row + 1)[0])

    def load(self, first: int, last: int) -> AnyArray:
        """Decode one row of chunks, with checks of presence, checksum and digest; three attempts in all."""
        return retried(lambda: self._decode(first, last), self.where(first))

    def _decode(self, first: int, last: int) -> AnyArray:
        values = self._read_by_zarr(first, last) if self._bytes is None else self._read(self._bytes, first, last)
        if self._manifest is not None:
            wanted = self._manifest.digests[first // self.chunk_rows]
            if array_digest(values) != wanted:
                key = self._files.keys(first, last)[0]
                raise self._files.corrupt(key, "its values are not those listed in COMPLETE")
        return values

    def _read(self, chunk: ChunkBytes, first: int, last: int) -> AnyArray:
        [key] = self._files.keys(first, last)
        content = self._files.content(key)
        try:
            return chunk.decoded(content)[: last - first]
        except (ValueError, RuntimeError) as error:
            raise self._files.corrupt(key, first_line(error)) from error

    def _read_by_zarr(self, first: int, last: int) -> AnyArray:
        self._files.require(first, last)
        try:
            values = np.asarray(self._array[first:last])
        except (OSError, StreamKernelError, MemoryError):
            raise
        except Exception as error:  # codecs raise ValueError, RuntimeError, zlib.error ... for damaged bytes
            raise self._blame(first, last, error) from error
        # zarr reads a chunk that vanished meanwhile as fill; a second check after the read finds it.
        self._files.require(first, last)
        return values

    def _blame(self, first: int, last: int, error: Exception) -> CorruptChunkError:
        """The error for the chunk that cannot be decoded, in one row of chunks."""
        keys = self._files.keys(first, last)
        why = first_line(error)
        if len(keys) > 1:
            across = (self._array.shards or self._array.chunks)[1]
            for number, key in enumerate(keys):
                try:
                    self._array[first:last, number * across : (number + 1) * across]
                except OSError:
                    raise
                except Exception:  # the same decoding error, now of one chunk alone
                    return self._files.corrupt(key, why)
        return self._files.corrupt(keys[0], why)

    def check_unchanged(self) -> None:
        """Compare metadata, manifest and every chunk's presence, size and time with the pin.

        Raises
        ------
        MissingChunkError, CorruptChunkError
            A chunk is gone, or was damaged.
        InputChangedError
            Anything was rewritten or resized.
        """
        self._check_pins()
        survey = self._files.survey()
        if self._survey is None:  # unpickled: the sizes and times stayed with the driver
            self._survey = survey
            return
        changed = np.flatnonzero((survey != self._survey).any(axis=1))
        for index in changed:
            self._recheck(int(index))
        # The rewritten chunks have the same values, by their digests: their new sizes and times are the pin from now
        # on.
        self._survey = survey

    def _check_pins(self) -> None:
        try:
            content = array_metadata(self._store, self._path)
        except FileNotFoundError as error:
            raise self._changed("it is no longer there") from error
        self._pinned(text_digest(content.decode("utf-8", "replace")), "was rewritten or resized")

    def _recheck(self, index: int) -> None:
        """Check a chunk file that was rewritten: raise, unless digests prove that it has the same values."""
        first, last = self._files.rows_at(index)
        row = first
        while row < last:
            low, high = self.chunk_span(row)
            self.load(low, high)
            row = high
        if self._manifest is None:
            raise self._changed(f"{self._files.describe(self._files.key_at(index))} was rewritten")

    def _changed(self, why: str) -> InputChangedError:
        return InputChangedError(
            f"{self.name} at {place(self._store, self._path)} is not what it was when it was opened: {why}; start again"
        )

    def __getstate__(self) -> Fields:
        return {
            key: self.__dict__[key]
            for key in ("name", "_store", "_path", "_manifest_key", "_metadata_pin", "_manifest_pin", "_content")
        }

    def __setstate__(self, state: Fields) -> None:
        self.__dict__.update(state)
        self._survey = self._latest = None
        self._open()
