"""The page of one or several factors, and their picture."""

from __future__ import annotations

from collections.abc import Sequence

from streamkernel.errors import ParameterError
from streamkernel.factors import Factor
from streamkernel.report.facts.factors import (
    PcaCurve,
    bound_curve,
    differences,
    factor_curve,
    factor_labels,
)
from streamkernel.report.facts.fit import Absent, fitted_to_rows
from streamkernel.report.figures import plot
from streamkernel.report.figures.costs import sweeps_figure
from streamkernel.report.figures.factors import bound_figure, residual_figure
from streamkernel.report.figures.palette import MOST_LINES
from streamkernel.report.pages.factor_cards import factor_cards
from streamkernel.report.pages.factor_tables import FactorCurves, factor_headline, factor_notices, factor_tables
from streamkernel.report.pages.parts import Page, Section, cost_section
from streamkernel.report.text import plural


def factors_page(factors: Sequence[Factor], optimum: PcaCurve | Absent | None = None) -> Page:
    """The whole page."""
    if not 1 <= len(factors) <= MOST_LINES:
        raise ParameterError(f"{len(factors)} factors: give from 1 to {MOST_LINES}, so that their lines differ")
    labels = factor_labels(factors)
    curves = [
        FactorCurves(factor, label, factor_curve(factor, label), bound_curve(factor, label))
        for factor, label in zip(factors, labels, strict=True)
    ]
    rows = f"the {plural(factors[0].shape[0], 'row')}" if "rows" not in differences(factors) else "each factor's rows"
    fitted = list(dict.fromkeys(name for factor in factors for name in fitted_to_rows(factor.record)))
    approximation = [
        residual_figure([one.curve for one in curves], optimum, rows),
        bound_figure([one.bound for one in curves], fitted),
    ]
    costs = Section("Cost", [sweeps_figure([one.times for one in curves], labels)])
    beside, settings = factor_tables(curves, optimum)
    kind, lead = factor_headline(curves)
    return Page(
        kind, lead, factor_cards(curves, optimum), factor_notices(curves),
        [
            Section("Approximation", approximation),
            costs if len(curves) > 1 else cost_section(factors[0], "picking and algebra"),
            Section("Facts", [], beside),
        ],
        settings, factors[0].record,
    )  # fmt: skip


def factors_picture(factors: Sequence[Factor], optimum: PcaCurve | Absent | None) -> plot.Figure:
    """The one figure of the small picture.

    Raises
    ------
    ParameterError
        No factor has a residual trace.
    """
    curves = [factor_curve(*one) for one in zip(factors, factor_labels(factors), strict=True)]
    figure = residual_figure(curves, optimum, "")
    if not isinstance(figure, plot.Figure):
        raise ParameterError("no factor has a residual trace to draw: the kernel matrix is 0, or there are no columns")
    return figure
