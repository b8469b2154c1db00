"""The page of one or several factors, in the style of a model's page."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from streamkernel.errors import ParameterError
from streamkernel.factors import Factor
from streamkernel.report.facts.factors import (
    PcaCurve,
    bound_curve,
    differences,
    factor_curve,
    factor_labels,
    rows_fitted,
)
from streamkernel.report.facts.fit import Absent
from streamkernel.report.figures.costs import memory_panel, time_panel
from streamkernel.report.figures.factors import bound_panel, residual_panel, sweeps_panel
from streamkernel.report.figures.palette import MOST_LINES
from streamkernel.report.pages.factor_cards import factor_cards
from streamkernel.report.pages.factor_tables import Drawn, factor_headline, factor_notices, factor_tables
from streamkernel.report.publish import checked_output, publish_file
from streamkernel.report.text import plain, plural
from streamkernel.report.whole import Group, whole_page

__all__ = ["render_factors", "write_factor_html"]


def write_factor_html(
    factors: Sequence[Factor],
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
    optimum: PcaCurve | Absent | None = None,
) -> None:
    """See `streamkernel.report.write_factor_report`."""
    target = checked_output(path, overwrite=overwrite)
    publish_file(target, render_factors(factors, title=title, optimum=optimum).encode(), overwrite=overwrite)


def render_factors(
    factors: Sequence[Factor], *, title: str | None = None, optimum: PcaCurve | Absent | None = None
) -> str:
    """The page as text."""
    if not 1 <= len(factors) <= MOST_LINES:
        raise ParameterError(f"{len(factors)} factors: give from 1 to {MOST_LINES}, so that their lines differ")
    labels = factor_labels(factors)
    drawn = [
        Drawn(factor, label, factor_curve(factor, label), bound_curve(factor, label))
        for factor, label in zip(factors, labels, strict=True)
    ]
    rows = f"the {plural(factors[0].shape[0], 'row')}" if "rows" not in differences(factors) else "each factor's rows"
    fitted = list(dict.fromkeys(name for factor in factors for name in rows_fitted(factor)))
    approximation = [residual_panel([one.curve for one in drawn], optimum, rows)]
    approximation.append(bound_panel([one.bound for one in drawn], fitted))
    if len(drawn) == 1:
        costs = [time_panel(drawn[0].times, "picking and algebra"), memory_panel(drawn[0].memory)]
    else:
        costs = [sweeps_panel(labels, [one.times for one in drawn])]
    beside, settings = factor_tables(drawn, optimum)
    groups = [Group("Approximation", approximation), Group("Cost", costs)]
    if beside:
        groups.append(Group("Facts", [], beside))
    kind, lead = factor_headline(drawn)
    return whole_page(
        plain(title, 200) if title is not None else kind,
        lead,
        factor_cards(drawn, optimum),
        factor_notices(drawn),
        groups,
        settings,
        factors[0].record,
    )
