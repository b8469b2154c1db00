"""Numbers and names as text for people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from streamkernel.type_aliases import FieldsView, Unchecked

if TYPE_CHECKING:
    from streamkernel.factors import SavedBasis

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Control characters, lone surrogates (no UTF-8 file can hold them), and marks that change the direction of the text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")

# Kernels that are named after a person; the words of the others are those of their names.
_KERNELS = {"gaussian": "Gaussian", "laplacian": "Laplacian", "matern": "Matérn"}


_MOST_SEEN = 5  # columns of a kernel that are named


def plain(text: object, longest: int = 60) -> str:
    """The user's text as one line that can be shown anywhere; it is not yet escaped."""
    return shortened(_UNPRINTABLE.sub("\ufffd", str(text)), longest)


def shortened(text: str, longest: int) -> str:
    """At most `longest` characters; the last one is an ellipsis if the text was cut."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def capitalised(text: str) -> str:
    """The text with a capital as its first letter."""
    return text[:1].upper() + text[1:]


def count(number: float) -> str:
    """1,234,567"""
    return f"{number:,.0f}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """1 row, 2 rows."""
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def power_of_ten(exponent: int) -> str:
    """10⁻³"""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def significant(number: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits: 0.0123, 12.3 or 1.23 × 10⁻⁷.

    From 0.0001 to 999,999 the whole part keeps all its digits: 35063.2 is 35,063.
    """
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0.0:
        return "0"
    mantissa, power = f"{abs(number):.{digits - 1}e}".split("e")
    exponent = int(power)
    sign = "−" if number < 0 else ""
    if not -4 <= exponent < 6:
        # A power alone is easier to read than 1 x 10^k.
        leading = "" if float(mantissa) == 1.0 else f"{mantissa} × "
        return f"{sign}{leading}{power_of_ten(exponent)}"
    return f"{sign}{abs(number):,.{max(digits - 1 - exponent, 0)}f}"


def percent(share: float | None, digits: int = 3) -> str:
    """A share as percent; below 0.001 % as a power of ten."""
    if share is None or not math.isfinite(share):
        return "–"
    if share != 0.0 and abs(share) < 1e-5:
        return significant(share, digits)
    return f"{significant(100.0 * share, digits)} %"


def with_error(
    number: float | None, error: float | None, form: Callable[[float | None, int], str] = significant
) -> str:
    """A number with its standard error: 0.123 ± 0.0042; alone where that is not known.

    Parameters
    ----------
    form : `significant` or `percent`.
    """
    if error is None or not math.isfinite(error):
        return form(number, 3)
    return f"{form(number, 3)} ± {form(error, 2)}"


def score_text(scores: Mapping[str, float], name: str, form: Callable[[float | None, int], str] = significant) -> str:
    """A score with its standard error, which stands beside it under the name with ``_se``."""
    return with_error(scores[name], scores.get(f"{name}_se"), form)


def duration(seconds: float | None) -> str:
    """12 ms, 3.4 s, 2 min 5 s or 1 h 12 min."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 0.9995:
        return f"{1e3 * seconds:.0f} ms" if seconds >= 0.01 or seconds == 0.0 else f"{1e3 * seconds:.1g} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60.0), 60)
    return f"{count(hours)} h {minutes} min" if minutes else f"{count(hours)} h"


def kernel_of(model: SavedBasis) -> str:
    """The kernel of a model as a phrase (`kernel_text`); the columns of a metric have no names."""
    return kernel_text(model.record.kernel, model.column_names if model.metric is None else ())


def kernel_text(config: FieldsView, columns: Sequence[str] = ()) -> str:
    """A kernel's configuration as a phrase: "Matérn 3/2", "Gaussian (lengthscale 2.000, columns=[age, hours])".

    Its lengthscale stands elsewhere; those of the parts of a sum, a product or a multiple are in the phrase, and the
    columns that a part sees.

    Parameters
    ----------
    columns : names of all columns; without them a part sees positions.
    """
    return _composite_text(config, columns) or _formula_text(config, ("kernel", "lengthscale"))


def _composite_text(config: FieldsView, columns: Sequence[str]) -> str:
    """A kernel that is made of others; empty for one that is not."""
    name, parts = str(config.get("kernel", "unknown")), [each for each in config.values() if isinstance(each, Mapping)]
    if name == "of_columns" and parts:
        return _seen_text(parts[0], config.get("columns", ()), columns)
    inner = []
    for part in parts:
        text = _composite_text(part, columns) or _formula_text(part, ("kernel",))
        is_sum = part.get("kernel") == "sum"
        inner.append(f"({text})" if is_sum and name not in ("sum", "fixed") else text)
    if name == "scaled" and inner:
        return f"{significant(config['factor'], 4)} × {inner[0]}"
    return {"sum": " + ", "product": " × "}.get(name, f" {plain(name)} ").join(inner)


def _seen_text(part: FieldsView, seen: Sequence[int], columns: Sequence[str]) -> str:
    """A part that sees some of the columns: a few of their names, and the number of the others."""
    known = [columns[each] if each < len(columns) else str(each) for each in seen]
    shown = [plain(each, 30) for each in known[:_MOST_SEEN]]
    more = [f"{len(known) - _MOST_SEEN} more"] if len(known) > _MOST_SEEN else []
    text = f"columns=[{', '.join([*shown, *more])}]"
    inner = _composite_text(part, known)
    if inner:
        return f"({inner}) ({text})"
    formula = _formula_text(part, ("kernel",))
    return f"{formula[:-1]}, {text})" if formula.endswith(")") else f"{formula} ({text})"


def _formula_text(config: FieldsView, hidden: tuple[str, ...]) -> str:
    """A kernel of one formula, with the parameters that are not hidden."""
    name = str(config.get("kernel", "unknown"))
    words = _KERNELS.get(name, plain(name.replace("_", " ")))
    if name == "precomputed":
        hidden = (*hidden, "n_columns")
    if name == "matern":
        words, hidden = f"{words} {round(2 * config.get('nu', 0.5))}/2", (*hidden, "nu")
    shown = ", ".join(f"{plain(key)} {_value(value)}" for key, value in config.items() if key not in hidden)
    return f"{words} ({shown})" if shown else words


def _value(value: Unchecked) -> str:
    if isinstance(value, float):
        return significant(value, 4)
    if isinstance(value, (list, tuple)):
        return f"{len(value)} values"
    return plain(value)
