"""How a CSV file writes its values."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

# A shell cannot easily give a tab.
_TABS = ("tab", "\\t")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class CsvFormat:
    """Separator, decimal point and encoding of a CSV file.

    Attributes
    ----------
    separator
        One letter, or "tab"; by default the comma, semicolon or tab of which the first line has most.
    decimal
        "." or ",".
    encoding
        Any text encoding that Python knows.

    Raises
    ------
    ParameterError
        A value that cannot be one.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.separator in _TABS:
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and not _can_separate(self.separator):
            raise ParameterError(
                f"{option('separator')} must be one ASCII letter that is in no number and no quote, such as ';' or "
                f"'tab', not {self.separator!r}",
                value=self.separator,
            )
        if self.decimal not in (".", ","):
            raise ParameterError(f"{option('decimal')} must be '.' or ',', not {self.decimal!r}", value=self.decimal)
        try:
            "a".encode(self.encoding).decode(self.encoding)
            name = codecs.lookup(self.encoding).name
        except (LookupError, TypeError, ValueError):
            raise ParameterError(
                f"{option('encoding')} must be a text encoding, such as 'utf-8', 'latin-1' or 'utf-16', not "
                f"{self.encoding!r}",
                value=self.encoding,
            ) from None
        # A byte order mark is dropped in any case.
        object.__setattr__(self, "encoding", "utf-8" if name == "utf-8-sig" else name)

    def separator_of(self, line: str, *, tabs: bool) -> str:
        """The separator of a file with this first line; `tabs`: the file says by its name that it is a tab."""
        if self.separator is not None:
            return self.separator
        if tabs:
            return "\t"
        # A comma in numbers separates nothing.
        marks = ";\t" if self.decimal == "," else ",;\t"
        outside = _QUOTED.sub("", line)
        return max(marks, key=outside.count)


def _can_separate(text: Unchecked) -> bool:
    one = isinstance(text, str) and len(text) == 1 and text.isascii()
    return one and not text.isalnum() and text not in '"\r\n\0.+-'
