"""One or several factors as text: headline, tables, and warnings to read before trusting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamkernel.byte_counts import format_bytes
from streamkernel.factors import Factor
from streamkernel.report.facts.factors import BoundCurve, FactorCurve, PcaCurve, differences, times_the_optimum
from streamkernel.report.facts.fit import Absent, Memory, Sweeps, memory_use, sweep_times
from streamkernel.report.pages.parts import Table, cost_cards, lengthscale_text, metric_text, provenance, scaling_text
from streamkernel.report.text import capitalised, count, duration, kernel_text, percent, plain, plural, significant

_BESIDE = 5  # most columns of text that fit side by side
ENDED = {
    "size": "the requested rank",
    "tolerance": "the tolerance was met",
    "rank": "no independent row was left",
    "bound": "the compression bound is least there",
    "gap": "a full fit could gain little more",
}


@dataclass(frozen=True)
class FactorCurves:
    """A factor and its curves."""

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


def factor_headline(factors: Sequence[FactorCurves]) -> tuple[str, str]:
    """Title of the page, and one sentence about its content."""
    first = factors[0].factor
    (rows, n), features = first.shape, len(first.record.column_names)
    kernel = capitalised(kernel_text(first.record.kernel))
    if len(factors) == 1:
        run = first.record.run
        sweeps = plural(0 if run is None else len(run.sweeps), "sweep")
        return "Low-rank factor", (
            f"{kernel} kernel matrix of {plural(rows, 'row')} of {plural(features, 'feature')}, as G Gᵀ with "
            f"{plural(n, 'column')}, in {sweeps} over the data."
        )
    different = differences([one.factor for one in factors])
    matrix = (
        f"a {kernel} kernel matrix of {plural(rows, 'row')} of {plural(features, 'feature')}"
        if not different
        else f"kernel matrices that differ in {' and '.join(different)}"
    )
    return f"{len(factors)} low-rank factors", f"Factors G, G Gᵀ ~ K, of {matrix}, by {rules_text(factors)}."


def rules_text(factors: Sequence[FactorCurves]) -> str:
    """The rules, each named once."""
    rules = list(dict.fromkeys(plain(one.factor.record.rule, 40) for one in factors))
    return rules[0] if len(rules) == 1 else f"{', '.join(rules[:-1])} and {rules[-1]}"


def sweeps_text(one: FactorCurves) -> tuple[str, str]:
    """Number of sweeps, and seconds per sweep."""
    times = one.times
    if isinstance(times, Absent):
        return "–", "not recorded"
    return count(len(times.sweeps)), "from checkpoints" if times.each is None else f"{duration(times.each)} a sweep"


def disk_text(one: FactorCurves) -> tuple[str, str]:
    """Size of G on disk, and its dtype."""
    stored = one.factor.record.columns
    if stored is None:
        return "–", "columns were not stored"
    rows, n = one.factor.shape
    return format_bytes(rows * n * (4 if stored.dtype == "float32" else 8)), plain(stored.dtype)


def _bound_text(one: FactorCurves) -> str:
    if isinstance(one.bound, Absent):
        return "none"
    if one.bound.vacuous:
        return "vacuous at every rank"
    return f"{significant(one.bound.best, 4)} of k(x, x) at rank {count(one.bound.best_size)}"


def _facts(one: FactorCurves, first: Factor, pca: PcaCurve | Absent | None) -> list[tuple[str, str]]:
    record, (rows, n) = one.factor.record, one.factor.shape
    lengthscale, how = lengthscale_text(one.factor)
    disk, dtype = disk_text(one)
    options = "".join(f", {plain(k)} {plain(v)}" for k, v in record.settings.rule_options.items())
    facts = [
        ("Rows", f"{count(rows)} ({count(record.rows.start)} to {count(record.rows.stop)})"),
        ("Rank", f"{count(n)} of {count(record.requested_basis)}"),
        ("Ended by", ENDED.get(record.ended, plain(record.ended))),
        ("Rule", plain(record.rule, 40) + options),
        ("Kernel", kernel_text(record.kernel)),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Features", f"{count(len(record.column_names))}, {scaling_text(one.factor)}"),
        ("Metric", metric_text(one.factor) or "none"),
        ("Trace", significant(record.certificate.trace, 6)),
        ("Residual trace", significant(one.factor.residual_trace, 4)),
        ("Certificate", f"{percent(one.relative, 4)} of the trace"),
    ]
    if isinstance(pca, PcaCurve):
        # The optimum is known for the first factor's matrix only.
        times = None if differences([first, one.factor]) else times_the_optimum(one.curve, pca, n)
        facts.append(("Times the PCA optimum", significant(times)))
    sweeps, each = sweeps_text(one)
    return [
        *facts,
        ("Compression bound", _bound_text(one)),
        ("Columns on disk", f"{dtype}, {disk}" if disk != "–" else "none"),
        ("Sweeps", f"{sweeps}, {each}"),
        ("Time", cost_cards(one.factor)[0].value),
        ("Memory promised", format_bytes(one.memory.promised) if isinstance(one.memory, Memory) else "–"),
        ("Memory measured", format_bytes(one.memory.measured) if isinstance(one.memory, Memory) else "–"),
        ("Seed", plain(record.settings.seed)),
        ("Digest", one.factor.digest),
    ]


def factor_tables(factors: Sequence[FactorCurves], pca: PcaCurve | Absent | None) -> tuple[list[Table], list[Table]]:
    """The facts side by side (only for several factors), and the tables of settings and software."""
    first = factors[0].factor
    facts = [_facts(one, first, pca) for one in factors]
    data = provenance(first.record)
    paths = [(one.label, "in memory" if one.factor.path is None else plain(one.factor.path, 200)) for one in factors]
    if len(factors) == 1:
        return [], [Table("Facts", tuple(facts[0])), Table("Data and software", (("Path", paths[0][1]), *data))]
    beside = []
    for start in range(0, len(factors), _BESIDE):
        some = slice(start, start + _BESIDE)
        rows = tuple((names[0][0], *(value for _, value in names)) for names in zip(*facts[some], strict=True))
        beside.append(Table("Side by side", rows, ("", *(one.label for one in factors[some])), wide=True))
    return beside, [Table("Paths", tuple(paths)), Table("Data and software of the first", tuple(data))]


def factor_notices(factors: Sequence[FactorCurves]) -> list[str]:
    """Sentences about facts that look wrong, or that make the lines incomparable."""
    found = []
    different = differences([one.factor for one in factors])
    if different:
        of = " and ".join(different)
        found.append(
            f"These factors differ in {of}: the lines are shares of the traces of different matrices, and a "
            "PCA optimum is that of the first."
        )
    for one in factors:
        requested = one.factor.record.requested_basis
        who = one.label if len(factors) > 1 else "The selection"
        if one.factor.record.ended == "rank" and one.rank < requested:
            found.append(f"{who} stopped at rank {count(one.rank)} of {count(requested)}: no independent row was left.")
        if isinstance(one.memory, Memory) and one.memory.measured > one.memory.promised:
            over = f"{format_bytes(one.memory.measured)} against {format_bytes(one.memory.promised)}"
            found.append(f"{who} used more memory than promised: {over}.")
    return found
