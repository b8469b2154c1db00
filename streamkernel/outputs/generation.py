"""An output under construction at a URL: a generation that no record names yet.

A builder that dies leaves its objects; a later writer finds them by their age (`Generations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from streamkernel.blobs import Generation, Generations, Layer, content_digest, upload
from streamkernel.errors import InputChangedError, StoreError, StoreExistsError
from streamkernel.manifest import COMPLETE
from streamkernel.outputs.building import Building
from streamkernel.outputs.complete import Kind
from streamkernel.outputs.partial import PartialFolder
from streamkernel.outputs.replace import plain_copy
from streamkernel.outputs.temporary import TemporaryFolder
from streamkernel.wording import switch


class GenerationBuilding(Building):
    """Objects of a new generation. This disk holds what was not sent yet.

    Parameters
    ----------
    url : URL of the output.
    name : name of the generation; a new one if it is not given.
    grown : the generation to which rows are appended; None for a new output.
    first : number of the first chunk that an append writes anew.
    firsts : the same for arrays that have another one.
    """

    def __init__(
        self,
        url: str,
        name: str | None = None,
        *,
        grown: Generation | None = None,
        first: int = 0,
        firsts: Mapping[str, int] | None = None,
    ) -> None:
        self.target = url
        self.place = Generations(url)
        self.blobs = self.place.blobs
        self.name = name or self.place.new_name()
        self._grown = grown
        before, new = () if grown is None else grown.layers, Layer(self.name, first, tuple((firsts or {}).items()))
        self._layers = (*(layer for layer in before if not layer.is_covered(new)), new)
        self.prefix = self._layers[-1].prefix
        self._published = False
        self._silent = False  # the place does not answer, so that nothing can be removed there
        self._around: TemporaryFolder | None = None

    @property
    def folder(self) -> Path:  # type: ignore[override]  # made when it is first needed
        if self._around is None:
            self._around = TemporaryFolder()
        return self._around.path

    def send(self, key: str) -> None:
        file = self.folder / key
        with self._noting_silence():
            self.blobs.write(self.prefix + key, file.read_bytes())
        file.unlink()

    def fetch(self, key: str) -> None:
        content = self.blobs.read(self.prefix + key)
        assert content is not None, "we have written it"
        (self.folder / key).write_bytes(content)

    def publish(self, complete: bytes, *, overwrite: bool = False) -> None:
        with self._noting_silence():
            if self._around is not None:
                upload(self.folder, self.blobs, self.prefix)
            self.blobs.write(self.prefix + COMPLETE, complete)
            self._make_current(content_digest(complete), overwrite)
        self._published = True
        self._remove_folder()

    def _make_current(self, digest: str, overwrite: bool) -> None:
        if self._grown is not None:
            if self.place.publish(self._layers, digest, after=self._grown) is None:
                raise InputChangedError(
                    f"{self.target} was replaced while rows were being appended to it; nothing was appended: run again"
                )
        elif overwrite:
            self.place.replace(self._layers, digest, plain_copy(self.place))
        elif self.place.publish(self._layers, digest, after=None) is None:
            raise StoreExistsError(f"{self.target} exists; choose another path or {switch('overwrite')}")

    def abandon(self) -> None:
        self._remove_folder()
        if not self._published and not self._silent:
            # A place that is down cannot be cleared now.
            with suppress(StoreError):
                self.remove()

    def remove(self) -> None:
        """Remove the generation, unless it is current: a publication can succeed though its answer was lost."""
        if not self.is_current():
            self.place.discard(self.name)

    def is_current(self) -> bool:
        """Whether the current output consists of this generation, or needs it."""
        latest = self.place.latest()
        return latest is not None and any(layer.name == self.name for layer in latest.layers)

    def _remove_folder(self) -> None:
        if self._around is not None:
            self._around.remove()

    @contextmanager
    def _noting_silence(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            # Its subclasses are answers.
            self._silent = type(error) is StoreError
            raise


def building_at(target: str | Path, kind: Kind | None) -> Building:
    """The building of a new output at a path, or at a URL (text)."""
    return GenerationBuilding(target) if isinstance(target, str) else PartialFolder(target, kind)
