"""A saved model that stays in memory as long as nobody else replaces it where it was saved."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

from streamkernel.atomic import parsed_json
from streamkernel.blobs import Generations, generation_of, is_url
from streamkernel.errors import StoreError
from streamkernel.estimators.updatable import Updatable
from streamkernel.store.plain import plain

__all__ = ["KeptInMemory"]

M = TypeVar("M", bound=Updatable[Any])

_CONFIG = "config.json"


class KeptInMemory(Generic[M]):
    """What `update_saved` loads models by, for one that is updated again and again.

    Parameters
    ----------
    location : of the model.
    load : what reads it.

    Attributes
    ----------
    generation : the one that the model in memory is; None where it must be read (again).
    """

    def __init__(self, location: str, load: Callable[[Any], M]) -> None:
        self.location, self._load = location, load
        self.generation: Hashable | None = None
        self._model: M | None = None

    def saved_generation(self) -> Hashable | None:
        """The one that is saved now; None where there is none."""
        return generation_of(self.location)

    def __call__(self, location: Any = None) -> M:
        """The model as it is saved."""
        now = self.saved_generation()
        if self._model is None or now is None or now != self.generation:
            # One of them at a time.
            self._model = self.generation = None
            self._model = self._load(self.location if is_url(self.location) else Path(self.location))
            # Replaced while it was read: `now` tells that the next time.
            self.generation = now
        return self._model

    def saved(self, model: M) -> None:
        """Take a model that was saved a moment ago, if it is still the one that is there."""
        before = self.saved_generation()
        self._model, self.generation = None, None
        # With the record of its run, of which no two are alike.
        if self._saved_config() == plain(model.config) and self.saved_generation() == before:
            self._model, self.generation = model, before

    def _saved_config(self) -> Any:
        try:
            if is_url(self.location):
                place = Generations(self.location)
                content = place.blobs.read(place.latest_or_plain().prefix + _CONFIG) or b""
            else:
                content = (Path(self.location) / _CONFIG).read_bytes()
            return parsed_json(content)["config"]
        except (OSError, StoreError, ValueError, KeyError, TypeError):
            return None
