"""What a parameter is: its meaning, its values and its default, stated once, at the field of the settings.

From a field follow the check of a value, the option of the command line and its help, the JSON schema of a job and the
row in docs/parameters.md. A test holds the constructors of the estimators equal to the fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from streamkernel.errors import ParameterError
from streamkernel.settings.checks import checked_choice, checked_number, checked_truth, checked_whole
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option


@dataclass(frozen=True)
class Parameter:
    """One parameter of a fit.

    Attributes
    ----------
    help : what it means, one sentence.
    group : "kernel", "basis", "rows", or "model" for those that only some estimators have.
    kind : type of its values: float, int, bool, str for words only, list for numbers, one for each feature,
        dict for numbers by name; or another.
    words : texts that it takes, in place of a number or alone.
    least, most : range of a number.
    above : whether `least` itself is out of range.
    optional : whether None is a value.
    flag : name of its option on the command line where that is another one; None where it has none.
    checked : whether `check` checks the values; False where the check is of what they are for, such as the kernel's.
    default_words : the default in words, where None stands for something that is computed.
    matrix : whether its numbers are the rows of a matrix.
    stored : whether `BasisSettings.to_config` has the value; False where another field has it, such as the kernel.
    """

    help: str
    group: str
    kind: type = float
    words: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    optional: bool = False
    flag: str | None = ""
    checked: bool = True
    default_words: str = ""
    matrix: bool = False
    stored: bool = True

    def check(self, name: str, value: Unchecked) -> None:
        """Raise `ParameterError` for a value that the parameter does not take."""
        if not self.checked or (value is None and self.optional):
            return
        if self.kind is bool:
            checked_truth(name, value)
        elif self.kind is str:
            checked_choice(name, value, self.words)
        elif self.words and isinstance(value, str):
            if value not in self.words:
                raise ParameterError(f"{option(name)} must be {self.values}, not {value!r}", value=value)
        elif self.kind in (list, dict):
            return  # The kernel, or the settings, check numbers.
        elif self.kind is int:
            checked_whole(name, value, int(self.least))
        else:
            checked_number(name, value, least=self.least, most=self.most, exclusive=self.above)

    def plain(self, value: Unchecked) -> Unchecked:
        """A checked value as JSON: a number in the type of the parameter, so that equal settings have equal digests."""
        number = self.kind in (bool, int, float) and value is not None and not isinstance(value, str)
        return self.kind(value) if number else value

    @property
    def values(self) -> str:
        """The values that it takes, in words."""
        if self.kind is bool:
            return "true or false"
        words = [repr(word) for word in self.words]
        if self.kind in (int, float):
            words.append(("a whole number" if self.kind is int else "a number") + self._range())
        if self.kind is list:
            words.append("a matrix" if self.matrix else "a number > 0")
        if self.kind is dict:
            words.append("a number for each class")
        return ", ".join(words[:-1]) + " or " * (len(words) > 1) + "".join(words[-1:])

    def _range(self) -> str:
        least = "" if self.least == -math.inf else f" {'>' if self.above else '>='} {self.least:g}"
        least = " > 0" if self.kind is int and self.least == 1 else least
        return least + ("" if self.most == math.inf else f"{' and' if least else ''} <= {self.most:g}")

    def json_schema(self, default: Any) -> Fields:
        """The values that it takes, as JSON schema."""
        found: Fields = {"description": self.help}
        if isinstance(default, (str, int, float)) or default is None:
            found["default"] = default
        if self.kind not in (float, int, bool, str, list) and not self.words:
            return found
        kinds: list[Fields] = [{"enum": [*self.words]}] if self.words else []
        if self.kind is bool:
            kinds.append({"type": "boolean"})
        elif self.kind is list:
            numbers = {"type": "array", "items": {"type": "number"}}
            kinds += [{"type": "array", "items": numbers}] if self.matrix else [{"type": "number"}, numbers]
        elif self.kind is dict:
            pair = {"type": "array", "minItems": 2, "maxItems": 2}
            kinds += [
                {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
                {"type": "array", "items": pair},
            ]
        elif self.kind is str:
            kinds = kinds or [{"type": "string"}]
        else:
            number: Fields = {"type": "integer" if self.kind is int else "number"}
            if self.least > -math.inf:
                number["exclusiveMinimum" if self.above else "minimum"] = self.least
            if self.most < math.inf:
                number["maximum"] = self.most
            kinds.append(number)
        if self.optional:
            kinds.append({"type": "null"})
        return found | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def parameter(default: Any, help: str, group: str = "model", *, compare: bool = True, **about: Any) -> Any:
    """A field of a dataclass of settings; `about` are the other attributes of `Parameter`."""
    metadata = {"parameter": Parameter(help, group, **about)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, compare=compare, metadata=metadata)


def left_to_the_fit(settings: Unchecked, name: str, words: str) -> Any:
    """The field `name` of a class of settings again, with the default None: the fit chooses by its table, as `words`
    say.
    """
    stated, _ = parameters_in(settings)[name]
    return field(default=None, metadata={"parameter": replace(stated, optional=True, default_words=words)})


def parameters_in(settings: Unchecked) -> dict[str, tuple[Parameter, Any]]:
    """The parameters of a class of settings by name, each with its default."""
    return {
        each.name: (each.metadata["parameter"], {} if each.default_factory is dict else each.default)
        for each in fields(settings)
    }


def check_values(settings: Unchecked) -> None:
    """Check each value of settings by its parameter.

    Raises
    ------
    ParameterError
        A value is of a wrong type or out of range.
    """
    for each in fields(settings):
        each.metadata["parameter"].check(each.name, getattr(settings, each.name))
