"""Numbered records, each made once: how writers that do not know of each other agree on an order.

::

    NAME/00000007.json    {"number": 7, "nonce": "...", "value": {...}}

Who has seen number 7 as the latest and appends makes number 8; of two who try, one fails and looks again. So a record
is replaced by compare-and-swap with nothing but `Blobs.create`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamkernel.atomic import parsed_json
from streamkernel.blobs.blobs import Blobs, Stamp
from streamkernel.errors import CorruptMetadataError

__all__ = ["Record", "RecordLog"]

_KEPT = 8
_KEY = re.compile(r"(\d{8,})\.json")


@dataclass(frozen=True)
class Record:
    """One record: its number, from 1, and what it says (plain JSON).

    `written` is when, by the clock of the place, in ns; 0 where that is not known.
    """

    number: int
    value: dict[str, Any]
    nonce: str
    written: int = field(default=0, compare=False)


class RecordLog:
    """The records below ``blobs/name/``.

    Parameters
    ----------
    blobs : where.
    name : of this log there; ``""`` for the whole place.
    kept : how many of the latest records are left when another is appended; None: all.
    """

    def __init__(self, blobs: Blobs, name: str, *, kept: int | None = _KEPT) -> None:
        self.blobs, self.name, self.kept = blobs, name, kept

    def latest(self) -> Record | None:
        """The record with the highest number; None if there is none.

        Raises
        ------
        CorruptMetadataError
            It is not one of ours.
        """
        while True:
            stamps = self._stamps()
            if not stamps:
                return None
            number = max(stamps)
            record = self.read(number)
            # Gone between the two calls: there are later ones by now.
            if record is not None:
                return replace(record, written=stamps[number].time)

    def read(self, number: int) -> Record | None:
        """The record of this number; None if there is none (any more)."""
        content = self.blobs.read(self._key(number))
        if content is None:
            return None
        try:
            record = parsed_json(content)
            if record["number"] != number or not isinstance(record["value"], dict):
                raise ValueError("another number")
            return Record(number, record["value"], str(record["nonce"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptMetadataError(
                f"{self.blobs.location}/{self._key(number)} is no record of ours; restore it from a copy or remove it"
            ) from error

    def all(self) -> list[Record]:
        """Every record that is still there, in order."""
        return [record for number in self._numbers() if (record := self.read(number)) is not None]

    def append(self, value: Mapping[str, Any], *, after: Record | None) -> Record | None:
        """Make the record that follows `after` (None: the first); None if another was made meanwhile.

        Whoever gets a record here knows that at that moment it was the latest.

        Raises
        ------
        CorruptMetadataError
            None was made, and none can be: its name is taken by something else, such as a folder.
        """
        number = 1 if after is None else after.number + 1
        record = Record(number, dict(value), uuid.uuid4().hex)
        content = {"number": number, "nonce": record.nonce, "value": record.value}
        text, tries = json.dumps(content, allow_nan=False, sort_keys=True).encode(), 2
        while not self.blobs.create(self._key(number), text):
            there = self.read(number)
            # Ours, if the answer to the first try was lost.
            if there is not None and there.nonce == record.nonce:
                break
            tries -= 1
            if there is not None or self._is_past(number, after):
                return None
            # A first record that was removed since, with all of its log, leaves the name free.
            if not tries:
                raise CorruptMetadataError(
                    f"{self.blobs.location}/{self._key(number)} is no record, and none can be made; remove it"
                )
        numbers = self._numbers()
        if not self._follows(numbers, number):
            # We slept for long: the number had been used and cleared away.
            self.blobs.remove(self._key(number))
            return None
        if self.kept is not None:
            for old in numbers[: -self.kept]:
                self.blobs.remove(self._key(old))
        return record

    def _is_past(self, number: int, after: Record | None) -> bool:
        """Whether the record of this number is gone: cleared away for later ones, or removed with all of them."""
        numbers = self._numbers()
        return numbers[-1] >= number if numbers else after is not None

    def _follows(self, numbers: list[int], number: int) -> bool:
        """Whether no number between this one and the latest is missing: these are cleared away from below."""
        return number in numbers and numbers[numbers.index(number) :] == list(range(number, numbers[-1] + 1))

    def _numbers(self) -> list[int]:
        return sorted(self._stamps())

    def _stamps(self) -> dict[int, Stamp]:
        """What a listing says of each record, by its number."""
        prefix = f"{self.name}/" if self.name else ""
        found = {key[len(prefix) :]: stamp for key, stamp in self.blobs.stamps(prefix).items()}
        numbers = {name: int(match[1]) for name in found if (match := _KEY.fullmatch(name))}
        # Of a number that is written in another way there is no record: `read` would not find it.
        return {number: found[name] for name, number in numbers.items() if name == f"{number:08d}.json"}

    def _key(self, number: int) -> str:
        name = f"{number:08d}.json"
        return f"{self.name}/{name}" if self.name else name
