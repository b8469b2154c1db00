"""Names of parameters, functions and estimators in messages, which each front end words for its users.

A message of the library names a parameter by `option`, never by the flag of a command::

    raise ParameterError(f"{option('alpha')} must be a number >= 0, not {value!r}", value=value)
    raise NumericalError(f"... is lost in rounding; give {option('alpha', 1e-8)} or more")

    Python          alpha must be a number >= 0, not -1.0           alpha=1e-08
    command line    --alpha must be a number >= 0, not -1.0         --alpha 1e-08
    HTTP            alpha must be a number >= 0, not -1.0           "alpha": 1e-08

The functions here return text with marks around the name. The classes of `streamkernel.errors` take such text: their
``str`` is in Python's words, and `worded` gives the text in the words of another front end. `escaped` is for names that
come from data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Two characters of Unicode's private use area: no text of ours or of a user's data has them.
_BEGIN, _END = "\ue000", "\ue001"
_MARKED = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")


@dataclass(frozen=True)
class Mention:
    """A name in a message.

    Attributes
    ----------
    kind : "option", "switch", "call", "estimator" or "help".
    name : Python's name: of a parameter, of a function, of an estimator's class.
    values : of an option, the value to give, if any; of a call, the names of its options.
    """

    kind: str
    name: str
    values: tuple[Any, ...] = ()


def option(name: str, *value: object) -> str:
    """A parameter, or with `value` a parameter and the value to give: ``alpha``, ``alpha=0.5``."""
    return _marked("option", name, value)


def switch(name: str) -> str:
    """What to do to set a parameter that is False by default: ``ask for overwrite (overwrite=True)``."""
    return _marked("switch", name)


def call(function: str, *options: str) -> str:
    """A function and those of its options that matter: ``ingest(target=...)``."""
    return _marked("call", function, options)


def estimator(name: str) -> str:
    """An estimator, by the name of its class: ``KernelRidge``."""
    return _marked("estimator", name)


def help_of(name: str) -> str:
    """The list of the parameters of an estimator, by the name of its class: ``help(KernelRidge)``."""
    return _marked("help", name)


def worded(message: str, words: Callable[[Mention], str]) -> str:
    """The message with its names in the words of a front end."""

    def replaced(found: re.Match[str]) -> str:
        mention = _read(found[1])
        return found[0] if mention is None else words(mention)

    return _MARKED.sub(replaced, message)


def mentions(message: str) -> list[Mention]:
    """The names in a message, in their order."""
    read = (_read(text) for text in _MARKED.findall(message))
    return [mention for mention in read if mention is not None]


def escaped(text: str) -> str:
    """The text with escapes for what cannot be printed: a column's name may have letters that steer a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def in_python(mention: Mention) -> str:
    """A name as Python's users write it."""
    if mention.kind == "call":
        return f"{mention.name}({', '.join(f'{name}=...' for name in mention.values)})"
    if mention.kind == "help":
        return f"help({mention.name})"
    if mention.kind == "switch":
        return f"ask for {mention.name} ({mention.name}=True)"
    return "=".join([mention.name, *map(repr, mention.values)])


def _marked(kind: str, name: str, values: tuple[Any, ...] = ()) -> str:
    # JSON escapes everything but ASCII, so that a value cannot hold a mark.
    return f"{_BEGIN}{json.dumps([kind, name, *values], default=str)}{_END}"


def _read(text: str) -> Mention | None:
    """The name between two marks; None for anything else, which a file or another program may hold."""
    try:
        parts = json.loads(text)
    except ValueError:
        return None
    if not isinstance(parts, list) or len(parts) < 2:
        return None
    kind, name, *values = parts
    words = (kind, name, *values) if kind == "call" else (kind, name)
    return Mention(kind, name, tuple(values)) if all(isinstance(word, str) for word in words) else None
