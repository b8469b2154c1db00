"""A saved model that stays in memory until another process replaces the saved one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Generations, generation_of, is_url
from streamkernel.errors import StoreError
from streamkernel.models.updatable import UpdatableModel
from streamkernel.store.plain import plain

M = TypeVar("M", bound=UpdatableModel)

_CONFIG = "config.json"


class CachedModel(Generic[M]):
    """The `load` argument of `update_saved` for a model that is updated repeatedly: it keeps the model in memory.

    Parameters
    ----------
    location : path or URL of the model.
    load : function that reads the model.

    Attributes
    ----------
    generation : generation of the model in memory; None where the model must be read (again).
    """

    def __init__(self, location: str, load: Callable[[Any], M]) -> None:
        self.location, self._load = location, load
        self.generation: Hashable | None = None
        self._model: M | None = None

    def saved_generation(self) -> Hashable | None:
        """The generation that is saved now; None where there is none."""
        return generation_of(self.location)

    def __call__(self, location: Any = None) -> M:
        """Return the saved model; read it only if it was replaced."""
        now = self.saved_generation()
        if self._model is None or now is None or now != self.generation:
            # Drop the old model first: only one at a time is in memory.
            self._model = self.generation = None
            self._model = self._load(self.location if is_url(self.location) else Path(self.location))
            # If the model was replaced while it was read, the next call sees another generation than `now`.
            self.generation = now
        return self._model

    def saved(self, model: M) -> None:
        """Keep a model that was just saved, if it is still the saved one."""
        before = self.saved_generation()
        self._model, self.generation = None, None
        # The configuration contains the record of the run, which differs for every run.
        if self._saved_config() == plain(model.record.to_config()) and self.saved_generation() == before:
            self._model, self.generation = model, before

    def _saved_config(self) -> Any:
        try:
            if is_url(self.location):
                content = Generations(self.location).read(_CONFIG) or b""
            else:
                content = (Path(self.location) / _CONFIG).read_bytes()
            return parsed_json(content)["config"]
        except (OSError, StoreError, ValueError, KeyError, TypeError):
            return None
