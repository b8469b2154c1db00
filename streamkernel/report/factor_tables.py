"""Words and numbers of one or several factors: headline, cards, tables, and what to know before trusting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamkernel.engine import format_bytes
from streamkernel.factors import Factor
from streamkernel.report.factor_facts import BoundCurve, FactorCurve, PcaCurve, differences, times_the_optimum
from streamkernel.report.facts import Absent, Memory, Sweeps, memory_use, sweep_times
from streamkernel.report.tables import Card, Table, lengthscale_words, scaling_words
from streamkernel.report.words import count, duration, kernel_words, percent, plain, plural, shortened, significant

__all__ = ["Drawn", "factor_cards", "factor_headline", "factor_notices", "factor_tables"]

_BESIDE = 5  # columns of words that fit beside each other
_ENDED = {
    "size": "the rank that was asked for",
    "tolerance": "the tolerance was met",
    "rank": "no independent row was left",
}


@dataclass(frozen=True)
class Drawn:
    """A factor and what is drawn of it."""

    factor: Factor
    label: str
    curve: FactorCurve | Absent
    bound: BoundCurve | Absent

    @property
    def times(self) -> Sweeps | Absent:
        return sweep_times(self.factor)

    @property
    def memory(self) -> Memory | Absent:
        return memory_use(self.factor)

    @property
    def rank(self) -> int:
        return self.factor.shape[1]

    @property
    def relative(self) -> float:
        return self.factor.relative_residual_trace


def factor_headline(drawn: Sequence[Drawn]) -> tuple[str, str]:
    """What the page is about, and a sentence on it."""
    first = drawn[0].factor
    (rows, n), features = first.shape, len(first.config["column_names"])
    kernel = kernel_words(first.config["kernel"])
    kernel = kernel[:1].upper() + kernel[1:]
    if len(drawn) == 1:
        sweeps = plural(len((first.config.get("run") or {}).get("sweeps", [])), "sweep")
        return "Low-rank factor", (
            f"{kernel} kernel matrix of {plural(rows, 'row')} of {plural(features, 'feature')}, as G Gᵀ with "
            f"{plural(n, 'column')}, in {sweeps} over the data."
        )
    kept = differences([one.factor for one in drawn])
    matrix = (
        f"a {kernel} kernel matrix of {plural(rows, 'row')} of {plural(features, 'feature')}"
        if not kept
        else f"kernel matrices that differ in {' and '.join(kept)}"
    )
    return f"{len(drawn)} low-rank factors", f"Factors G, G Gᵀ ~ K, of {matrix}, by {_rules(drawn)}."


def _rules(drawn: Sequence[Drawn]) -> str:
    rules = list(dict.fromkeys(plain(one.factor.config.get("rule", "–"), 40) for one in drawn))
    return rules[0] if len(rules) == 1 else f"{', '.join(rules[:-1])} and {rules[-1]}"


def factor_cards(drawn: Sequence[Drawn], pca: PcaCurve | Absent | None) -> list[Card]:
    """Twelve numbers, as on a model's page."""
    return _one(drawn[0], pca) if len(drawn) == 1 else _several(drawn, pca)


def _one(one: Drawn, pca: PcaCurve | Absent | None) -> list[Card]:
    config, (rows, n) = one.factor.config, one.factor.shape
    ended = _ENDED.get(str(config.get("ended")), "")
    asked = int(config.get("requested_basis", n))
    return [
        Card("Rows", count(rows), "of the kernel matrix"),
        Card("Features", count(len(config["column_names"])), scaling_words(one.factor)),
        Card("Rank", count(n), f"of {count(asked)}: {ended}" if n < asked and ended else "columns of G"),
        Card("Rounds", count(_rounds(one)), f"of choosing, by {plain(config.get('rule', '–'), 40)}"),
        Card("Residual trace", percent(one.relative), _exact(one)),
        _optimum(pca, n, one),
        _least_bound([one]),
        Card("Lengthscale", *lengthscale_words(one.factor)),
        Card("Sweeps", *_sweeps(one)),
        Card("Time", *_time(one)),
        Card("Peak memory", *_memory(one)),
        Card("G on disk", *_disk(one)),
    ]


def _several(drawn: Sequence[Drawn], pca: PcaCurve | Absent | None) -> list[Card]:
    first = drawn[0].factor
    kept = differences([one.factor for one in drawn])
    ranks = [one.rank for one in drawn]
    common = min(ranks)
    at = {one.label: float(one.curve.relative[common]) for one in drawn if isinstance(one.curve, FactorCurve)}
    best = min(at, key=lambda label: at[label], default="")
    return [
        Card("Factors", count(len(drawn)), shortened(_rules(drawn), 60)),
        Card("Rows", count(first.shape[0]), "not of all" if "rows" in kept else "of the kernel matrix"),
        Card("Kernel", kernel_words(first.config["kernel"]), "not of all" if kept else "of all"),
        Card("Lengthscale", *lengthscale_words(first)),
        Card("Rank", count(common) if common == max(ranks) else f"{count(common)} to {count(max(ranks))}", "columns"),
        _least(drawn, "Least residual trace", lambda one: one.relative, percent),
        Card(f"At rank {count(common)}", percent(at.get(best)), f"by {best}" if best else "nothing to explain"),
        _optimum(pca, common, drawn[0]),
        _least_bound(drawn),
        _least(drawn, "Fewest sweeps", lambda one: _number(one.times, "sweeps"), count),
        _least(drawn, "Shortest time", lambda one: _number(one.times, "total"), duration),
        _least(drawn, "Least peak memory", lambda one: _number(one.memory, "measured"), lambda b: format_bytes(int(b))),
    ]


def _number(record: Sweeps | Memory | Absent, name: str) -> float | None:
    if isinstance(record, Absent):
        return None
    found = getattr(record, name)
    return float(len(found) if name == "sweeps" else found)


def _least(
    drawn: Sequence[Drawn], label: str, value: Callable[[Drawn], float | None], words: Callable[[float], str]
) -> Card:
    known = [(number, one.label) for one in drawn if (number := value(one)) is not None]
    if not known:
        return Card(label, "–", "not recorded")
    least, who = min(known, key=lambda pair: pair[0])
    ties = sum(number == least for number, _ in known)
    return Card(label, words(least), f"{who} and {ties - 1} more" if ties > 1 else who)


def _exact(one: Drawn) -> str:
    rounding = isinstance(one.curve, FactorCurve) and one.curve.vanished
    return "no more than rounding" if rounding else "of the kernel's trace, exact"


def _optimum(pca: PcaCurve | Absent | None, rank: int, first: Drawn) -> Card:
    label = f"PCA at rank {count(rank)}"
    if pca is None:
        return Card(label, "–", "no table was given")
    if isinstance(pca, Absent):
        return Card(label, "–", "too many rows, or no trace")
    times = times_the_optimum(first.curve, pca, rank)
    note = "the optimum" if times is None else f"the optimum; {first.label} has {significant(times)} times it"
    return Card(label, percent(pca.at(rank)), note)


def _least_bound(drawn: Sequence[Drawn]) -> Card:
    bounds = [one.bound for one in drawn if isinstance(one.bound, BoundCurve)]
    if not bounds:
        return Card("Compression bound", "–", "none for this kernel or basis")
    least = min(bounds, key=lambda bound: bound.best)
    if least.vacuous:
        return Card("Compression bound", "vacuous", "at every rank: too few rows")
    by = f", {least.label}" if len(drawn) > 1 else ""
    return Card("Compression bound", significant(least.best), f"of k(x, x), at rank {count(least.best_size)}{by}")


def _rounds(one: Drawn) -> int:
    return sum(record["stop"] > record["start"] for record in one.factor.config.get("rounds") or [])


def _sweeps(one: Drawn) -> tuple[str, str]:
    times = one.times
    if isinstance(times, Absent):
        return "–", "not recorded"
    return count(len(times.sweeps)), "from checkpoints" if times.each is None else f"{duration(times.each)} a sweep"


def _time(one: Drawn) -> tuple[str, str]:
    times = one.times
    return (
        ("–", "not recorded")
        if isinstance(times, Absent)
        else (duration(times.total), "from the first read to the end")
    )


def _memory(one: Drawn) -> tuple[str, str]:
    memory = one.memory
    if isinstance(memory, Absent):
        return "–", "not recorded"
    return format_bytes(memory.measured), f"{format_bytes(memory.promised)} promised"


def _disk(one: Drawn) -> tuple[str, str]:
    stored = one.factor.config.get("columns")
    if stored is None:
        return "–", "columns were not stored"
    rows, n = one.factor.shape
    return format_bytes(rows * n * (4 if stored["dtype"] == "float32" else 8)), plain(stored["dtype"])


def _bound_words(one: Drawn) -> str:
    if isinstance(one.bound, Absent):
        return "none"
    if one.bound.vacuous:
        return "vacuous at every rank"
    return f"{significant(one.bound.best, 4)} of k(x, x) at rank {count(one.bound.best_size)}"


def _facts(one: Drawn, first: Factor, pca: PcaCurve | Absent | None) -> list[tuple[str, str]]:
    config, (rows, n) = one.factor.config, one.factor.shape
    settings, certificate = config.get("settings", {}), config["certificate"]
    lengthscale, how = lengthscale_words(one.factor)
    disk, dtype = _disk(one)
    options = "".join(f", {plain(k)} {plain(v)}" for k, v in (settings.get("rule_options") or {}).items())
    facts = [
        ("Rows", f"{count(rows)} ({count(config['rows']['start'])} to {count(config['rows']['stop'])})"),
        ("Rank", f"{count(n)} of {count(config.get('requested_basis', n))}"),
        ("Ended by", _ENDED.get(str(config.get("ended")), plain(config.get("ended", "–")))),
        ("Rule", plain(config.get("rule", "–"), 40) + options),
        ("Kernel", kernel_words(config["kernel"])),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Features", f"{count(len(config['column_names']))}, {scaling_words(one.factor)}"),
        ("Trace", significant(certificate["trace"], 6)),
        ("Residual trace", significant(one.factor.residual_trace, 4)),
        ("Certificate", f"{percent(one.relative, 4)} of the trace"),
    ]
    if isinstance(pca, PcaCurve):
        # The optimum is that of the first factor's matrix.
        times = None if differences([first, one.factor]) else times_the_optimum(one.curve, pca, n)
        facts.append(("Times the PCA optimum", significant(times)))
    sweeps, each = _sweeps(one)
    return [
        *facts,
        ("Compression bound", _bound_words(one)),
        ("Columns on disk", f"{dtype}, {disk}" if disk != "–" else "none"),
        ("Sweeps", f"{sweeps}, {each}"),
        ("Time", _time(one)[0]),
        ("Memory promised", format_bytes(one.memory.promised) if isinstance(one.memory, Memory) else "–"),
        ("Memory measured", format_bytes(one.memory.measured) if isinstance(one.memory, Memory) else "–"),
        ("Seed", plain(settings.get("seed", "–"))),
        ("Digest", one.factor.digest),
    ]


def factor_tables(drawn: Sequence[Drawn], pca: PcaCurve | Absent | None) -> tuple[list[Table], list[Table]]:
    """The facts side by side (several factors only), and the tables of settings and software."""
    first = drawn[0].factor
    facts = [_facts(one, first, pca) for one in drawn]
    data = [("Fingerprint of the table", plain(first.config.get("table_fingerprint", "–"), 64))]
    software = {plain(name): plain(value) for name, value in (first.config.get("software") or {}).items()}
    if software:
        machine = software.pop("machine", "")
        data.append(("Software", ", ".join(f"{name} {value}" for name, value in software.items())))
        data.append(("Machine", machine or "–"))
    paths = [(one.label, "in memory" if one.factor.path is None else plain(one.factor.path, 200)) for one in drawn]
    if len(drawn) == 1:
        return [], [Table("Facts", tuple(facts[0])), Table("Data and software", (("Path", paths[0][1]), *data))]
    beside = []
    for start in range(0, len(drawn), _BESIDE):
        some = slice(start, start + _BESIDE)
        rows = tuple((names[0][0], *(value for _, value in names)) for names in zip(*facts[some], strict=True))
        beside.append(Table("Side by side", rows, ("", *(one.label for one in drawn[some])), wide=True))
    return beside, [Table("Paths", tuple(paths)), Table("Data and software of the first", tuple(data))]


def factor_notices(drawn: Sequence[Drawn]) -> list[str]:
    """Sentences about what looks wrong, or keeps the lines from being comparable."""
    found = []
    kept = differences([one.factor for one in drawn])
    if kept:
        of = " or ".join(kept)
        found.append(
            f"These factors are not all of one {of}: the lines are shares of the traces of different matrices, and a "
            "PCA optimum is that of the first."
        )
    for one in drawn:
        asked = int(one.factor.config.get("requested_basis", one.rank))
        who = one.label if len(drawn) > 1 else "The selection"
        if one.factor.config.get("ended") == "rank" and one.rank < asked:
            found.append(f"{who} stopped at rank {count(one.rank)} of {count(asked)}: no independent row was left.")
        if isinstance(one.memory, Memory) and one.memory.measured > one.memory.promised:
            over = f"{format_bytes(one.memory.measured)} against {format_bytes(one.memory.promised)}"
            found.append(f"{who} went over the memory that was promised: {over}.")
    return found
