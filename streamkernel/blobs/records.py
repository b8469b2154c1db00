"""Numbered records, each made once: writers that do not know of each other agree on an order.

::

    NAME/00000007.json    {"number": 7, "nonce": "...", "value": {...}}

A writer that sees number 7 as the latest record appends number 8. If two writers try, one fails and reads the latest
record again. This is compare-and-swap, and it needs only `Blobs.create`.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass, field, replace

from streamkernel.atomic import parsed_json
from streamkernel.blobs.blobs import Blobs, Stamp
from streamkernel.errors import CorruptMetadataError
from streamkernel.type_aliases import Fields, FieldsView

_KEPT = 8
_KEY = re.compile(r"(\d{8,})\.json")


@dataclass(frozen=True)
class Record:
    """One record: its number, from 1, and its value (plain JSON).

    `written` is the time of its creation, in ns, by the clock of the place; 0 if unknown.
    """

    number: int
    value: Fields
    nonce: str
    written: int = field(default=0, compare=False)


class RecordLog:
    """The records below ``blobs/name/``.

    Parameters
    ----------
    blobs : place of the log.
    name : name of this log in the place; ``""`` for the whole place.
    kept : number of latest records that remain after an append; None: all.
    """

    def __init__(self, blobs: Blobs, name: str, *, kept: int | None = _KEPT) -> None:
        self.blobs, self.name, self.kept = blobs, name, kept

    def latest(self) -> Record | None:
        """The record with the highest number; None if there is none.

        Raises
        ------
        CorruptMetadataError
            The record is not in our format.
        """
        while True:
            stamps = self.stamps()
            if not stamps:
                return None
            number = max(stamps)
            record = self.read(number)
            # Removed between the two calls: there are later records by now.
            if record is not None:
                return replace(record, written=stamps[number].time)

    def latest_or_damaged(self) -> Record | None:
        """Like `latest`, but where that is damaged, a record with its number and no value; another can follow it."""
        try:
            return self.latest()
        except CorruptMetadataError:
            stamps = self.stamps()
            number = max(stamps, default=0)
            return Record(number, {}, f"damaged {number}", stamps[number].time) if number else None

    def read(self, number: int) -> Record | None:
        """The record with this number; None if it was never made or was removed."""
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
                f"{self.blobs.location}/{self._key(number)} is no record of ours",
                remedy="restore it from a copy or remove it",
            ) from error

    def all(self) -> list[Record]:
        """Every record that still exists, in order."""
        return [record for number in self._numbers() if (record := self.read(number)) is not None]

    def append(self, value: FieldsView, *, after: Record | None) -> Record | None:
        """Make the record that follows `after` (None: the first); None if another was made meanwhile.

        If a record is returned, it was the latest one at that moment.

        Raises
        ------
        CorruptMetadataError
            No record can be made: something else, such as a folder, has its name.
        """
        number = 1 if after is None else after.number + 1
        record = Record(number, dict(value), uuid.uuid4().hex)
        content = {"number": number, "nonce": record.nonce, "value": record.value}
        text, tries = json.dumps(content, allow_nan=False, sort_keys=True).encode(), 2
        while not self.blobs.create(self._key(number), text):
            there = self.read(number)
            # The record is ours if the answer to the first try was lost.
            if there is not None and there.nonce == record.nonce:
                break
            tries -= 1
            if there is not None or self._is_past(number, after):
                return None
            # If the first record and its whole log were removed since, the name is free: try once more.
            if not tries:
                raise CorruptMetadataError(
                    f"{self.blobs.location}/{self._key(number)} is no record, and none can be made",
                    remedy="remove it",
                )
        numbers = self._numbers()
        if not self._follows(numbers, number):
            # This process was stopped for long: the number was used before, and its record was removed.
            self.blobs.remove(self._key(number))
            return None
        if self.kept is not None:
            for old in numbers[: -self.kept]:
                self.blobs.remove(self._key(old))
        return record

    def add(self, value: FieldsView) -> None:
        """Make a record that follows the latest one, whatever that is: it is not read, so damage of it is no matter."""
        while True:
            number = max(self.stamps(), default=0)
            if self.append(value, after=Record(number, {}, "") if number else None) is not None:
                return

    def _is_past(self, number: int, after: Record | None) -> bool:
        """Whether the record of this number was removed: because later ones exist, or with the whole log."""
        numbers = self._numbers()
        return numbers[-1] >= number if numbers else after is not None

    def _follows(self, numbers: list[int], number: int) -> bool:
        """Whether this number is new: none from it to the latest is missing, and it is one that is still kept.

        The oldest records are always removed first. The number just below those that remain is not missed among them:
        so it must not be so old that its record may have been removed.
        """
        if number not in numbers or (self.kept is not None and number <= numbers[-1] - self.kept):
            return False
        return numbers[numbers.index(number) :] == list(range(number, numbers[-1] + 1))

    def _numbers(self) -> list[int]:
        return sorted(self.stamps())

    def stamps(self) -> dict[int, Stamp]:
        """The stamp of each record that exists, by its number."""
        prefix = f"{self.name}/" if self.name else ""
        found = {key[len(prefix) :]: stamp for key, stamp in self.blobs.stamps(prefix).items()}
        numbers = {name: int(match[1]) for name in found if (match := _KEY.fullmatch(name))}
        # Other spellings of a number are left out: `read` would not find these keys.
        return {number: found[name] for name, number in numbers.items() if name == f"{number:08d}.json"}

    def _key(self, number: int) -> str:
        name = f"{number:08d}.json"
        return f"{self.name}/{name}" if self.name else name
