"""A case of the messy inputs: files, a command, and what it gives; and makers of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Maker = Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    title: str
    make: Maker
    command: str
    # What the table holds, or a part of the message.
    gives: str
    input: bytes | None = None


def text(content: str, name: str = "rows.csv", encoding: str = "utf-8") -> Maker:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode(encoding))

    return make


def both(*makers: Maker) -> Maker:
    return lambda folder: [make(folder) for make in makers]
