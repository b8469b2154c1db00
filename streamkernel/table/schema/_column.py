"""One column of a schema."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from streamkernel.errors import ParameterError
from streamkernel.table.values import listed
from streamkernel.type_aliases import Fields

KINDS = ("number", "boolean", "category", "date", "text")
ROLES = ("feature", "target", "weight", "id")
MISSING_POLICIES = ("refuse", "mean", "median", "indicator")
UNKNOWN_POLICIES = ("refuse", "ignore")
ENCODINGS = ("one-hot", "target-mean")
DATE_PARTS = ("elapsed", "year", "week", "day")
MAX_CATEGORIES = 100_000
_CHOICES = {
    "kind": KINDS,
    "role": ROLES,
    "missing": MISSING_POLICIES,
    "unknown": UNKNOWN_POLICIES,
    "encoding": ENCODINGS,
}


@dataclass(frozen=True)
class Column:
    """What a column of a source is, and the features that it becomes.

    ========  =============================================================  ==========================================
    kind      values                                                         features
    ========  =============================================================  ==========================================
    number    numbers                                                        ``value / unit``
    boolean   true/false, yes/no, t/f, y/n, 1/0                              1 or 0
    category  text or whole numbers                                          one-hot: one of 0 and 1 a category;
                                                                             target-mean: mean target of the category
    date      dates and times: ISO 8601, or of `format`                      ``elapsed``: days since `origin`, divided
                                                                             by `unit`; ``year``, ``week``, ``day``:
                                                                             sine and cosine of the position in them
    text      anything                                                       none: it is left out
    ========  =============================================================  ==========================================

    Attributes
    ----------
    name
        Name in the source.
    kind
        One of `KINDS`. A target is a number, or a category whose texts are class labels.
    role
        "feature"; "target"; "weight" (of the row); "id" (goes with the row to predictions, and is no feature).
    missing
        What becomes of a missing value. "refuse"; "mean" or "median" of the values that are there; "indicator": the
        mean, and one more feature that is 1 where the value is missing. A category has no mean: with any policy but
        "refuse", a missing one is a category of its own.
    missing_values
        Texts that stand for a missing value, beside the empty field, NA, NaN, null and the like.
    unit
        A number or the days since the origin are divided by it.
    encoding
        Of a category, "one-hot" or "target-mean". By default one-hot up to 32 categories.
    unknown
        What becomes of a category that the fit has not seen: "refuse", or "ignore": zeros, or the mean of all targets.
    parts
        Of a date, some of `DATE_PARTS`. By default elapsed time, and those that the dates cover.
    format
        Of a date in text, as of `strptime`, such as "%d.%m.%Y". By default ISO 8601.
    fill
        The number for a missing value (of a date in days since the origin). Found by the fit where it is not given.
    gaps
        Whether the rows of the fit have missing values, so that a feature tells of them.
    categories
        Sorted texts.
    outputs, means, mean_of_gaps, overall
        Of target means: what the means are of; one row a category; those of the missing category, and of all rows.
    origin
        Date from which elapsed time counts: the first one of the fit.

    Raises
    ------
    ParameterError
        A field has a value that means nothing.
    """

    name: str
    kind: str = "number"
    role: str = "feature"
    missing: str = "refuse"
    missing_values: tuple[str, ...] = ()
    unit: float = 1.0
    encoding: str | None = None
    unknown: str = "refuse"
    parts: tuple[str, ...] | None = None
    format: str | None = None
    fill: float | None = None
    gaps: bool | None = None
    categories: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    means: tuple[tuple[float, ...], ...] | None = None
    mean_of_gaps: tuple[float, ...] | None = None
    overall: tuple[float, ...] | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        if self.name == "":
            raise ParameterError("a column has the empty text as its name; rename it in the source")
        if not isinstance(self.name, str):
            raise ParameterError(f"the name of a column must be text, not {self.name!r}")
        for field, allowed in _CHOICES.items():
            value = getattr(self, field)
            if value not in allowed and not (field == "encoding" and value is None):
                raise ParameterError(f"{self}: {field} must be one of {', '.join(allowed)}, not {value!r}")
        self._check_texts("missing_values", "categories", "parts", "outputs")
        self._check_numbers()
        if self.parts is not None and (not self.parts or not {*self.parts} <= {*DATE_PARTS}):
            raise ParameterError(f"{self}: parts must be some of {', '.join(DATE_PARTS)}, not {listed(self.parts)}")
        if self.categories is not None and not 0 < len({*self.categories}) == len(self.categories):
            raise ParameterError(f"{self}: categories must be different texts; name each once")
        for field in ("format", "origin"):
            value = getattr(self, field)
            if value is not None and not isinstance(value, str):
                raise ParameterError(f"{self}: {field} must be text, not {value!r}")
        if self.origin is not None:
            self._check_origin()
        self._check_together()

    def _check_texts(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise ParameterError(f"{self}: {name} must be a list of texts, not {value!r:.80}")
            object.__setattr__(self, name, tuple(value))

    def _check_numbers(self) -> None:
        if not _is_number(self.unit) or not self.unit > 0:
            raise ParameterError(f"{self}: unit must be a number > 0, not {self.unit!r}")
        if self.fill is not None and not _is_number(self.fill):
            raise ParameterError(f"{self}: fill must be a number, not {self.fill!r}")
        if self.gaps is not None and not isinstance(self.gaps, bool):
            raise ParameterError(f"{self}: gaps must be true or false, not {self.gaps!r}")
        rows = [*(self.means or ()), *(row for row in (self.overall, self.mean_of_gaps) if row is not None)]
        width = len(self.outputs or ())
        if any(len(row) != width or not all(map(_is_number, row)) for row in rows):
            raise ParameterError(f"{self}: means, overall and mean_of_gaps must be {width} numbers each, as outputs")
        if self.means is not None:
            object.__setattr__(self, "means", tuple(tuple(map(float, row)) for row in self.means))
            if len(self.means) != len(self.categories or ()) or self.overall is None:
                raise ParameterError(f"{self}: means must be one row a category, with overall")

    def _check_origin(self) -> None:
        try:
            datetime.fromisoformat(str(self.origin))
        except ValueError:
            raise ParameterError(f"{self}: origin must be a date such as 2020-01-31, not {self.origin!r}") from None

    def _check_together(self) -> None:
        only = {"encoding": "category", "categories": "category", "means": "category", "parts": "date"}
        only |= {"format": "date", "origin": "date"}
        for field, kind in only.items():
            if getattr(self, field) is not None and self.kind != kind:
                raise ParameterError(f"{self}: {field} is for a {kind}, and this is a {self.kind}; leave it out")
        allowed = {"target": ("number", "category"), "weight": ("number",)}.get(self.role, KINDS)
        if self.kind not in allowed:
            raise ParameterError(f"{self}: a {self.role} is a {' or a '.join(allowed)}, not a {self.kind}")

    def __str__(self) -> str:
        return f"column {self.name!r}"

    @property
    def is_feature(self) -> bool:
        """Whether it becomes features."""
        return self.role == "feature" and self.kind != "text"

    @property
    def is_read(self) -> bool:
        """Whether its values are used."""
        return self.role != "feature" or self.kind != "text"

    @property
    def complete(self) -> bool:
        """Whether its features are known without a look at the rows."""
        if not self.is_feature:
            return True
        if self.missing != "refuse" and (self.gaps is None or (self.kind != "category" and self.fill is None)):
            return False
        if self.kind == "category":
            return self.categories is not None and (self.encoding != "target-mean" or self.means is not None)
        return self.kind != "date" or (self.parts is not None and self.origin is not None)

    @property
    def has_indicator(self) -> bool:
        """Whether a feature tells where the value is missing."""
        if self.kind == "category":
            return bool(self.gaps) and self.encoding != "target-mean"
        return bool(self.gaps) and self.missing == "indicator"

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of a complete column."""
        if not self.is_feature:
            return ()
        if self.kind == "date":
            names = [name for part in self.parts or () for name in self._of_part(part)]
        elif self.kind != "category":
            names = [self.name]
        elif self.encoding == "target-mean":
            names = [f"{self.name} (mean of {output})" for output in self.outputs or ()]
        else:
            names = [f"{self.name}={category}" for category in self.categories or ()]
        return (*names, f"{self.name} is missing") if self.has_indicator else tuple(names)

    def _of_part(self, part: str) -> tuple[str, ...]:
        return (
            (f"{self.name} (elapsed)",)
            if part == "elapsed"
            else (f"{self.name} (sine of the {part})", f"{self.name} (cosine of the {part})")
        )

    def to_config(self) -> Fields:
        """Plain JSON: the fields that are not the default."""
        config: Fields = {"name": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "name" and value != field.default:
                config[field.name] = _plain(value)
        return config

    @classmethod
    def from_config(cls, config: Fields, place: str) -> Column:
        """A column of JSON or TOML.

        Raises
        ------
        ParameterError
            A field is none of a column's, or has a value that means nothing.
        """
        if not isinstance(config, dict) or "name" not in config:
            raise ParameterError(f"{place}: each column needs a name, and {config!r:.80} has none")
        known = [field.name for field in fields(cls)]
        for name in config:
            if name not in known:
                raise ParameterError(
                    f"{place}: column {config['name']!r} has a field {name!r}; choose of {listed(known, 30)}"
                )
        try:
            return cls(**{name: _fixed(value) for name, value in config.items()})
        except ParameterError as error:
            raise ParameterError(f"{place}: {error}") from None
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{place}: column {config['name']!r} cannot be read ({error})") from None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _fixed(value: Any) -> Any:
    return tuple(_fixed(each) for each in value) if isinstance(value, list) else value
