"""The pages of kernel principal components and of canonical correlations of two views."""

from __future__ import annotations

import numpy as np

from streamkernel.errors import ShapeMismatchError
from streamkernel.models.kernel_cca import KernelCCAModel, KernelCCARecord, ViewRecord
from streamkernel.models.transformers import KernelPCAModel
from streamkernel.report.facts.factors import FactorCurve, bound_curve
from streamkernel.report.facts.fit import ROUNDING, Absent, fitted_to_rows, memory_use, trace_curve
from streamkernel.report.facts.pursuit import PursuitBound, variates_bound
from streamkernel.report.facts.subspace import HeldCorrelations, Projected, held_correlations, projected
from streamkernel.report.figures.factors import bound_figure, residual_figure
from streamkernel.report.figures.fit import trace_figure
from streamkernel.report.figures.pursuit import error_bound_figure
from streamkernel.report.figures.subspace import (
    components_figure,
    correlations_figure,
    eigenvalues_figure,
    quotients_figure,
    variates_figure,
)
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Rows,
    Section,
    Table,
    bound_card,
    common_settings,
    cost_cards,
    cost_section,
    digest_row,
    lengthscale_text,
    listed,
    memory_notice,
    metric_section,
    provenance,
    scaling_text,
)
from streamkernel.report.text import (
    capitalised,
    count,
    kernel_of,
    kernel_text,
    percent,
    plain,
    plural,
    significant,
    with_error,
)
from streamkernel.type_aliases import FieldsView, Float

Subspace = KernelPCAModel | KernelCCAModel

_THEOREM = "Hussain & Shawe-Taylor, Theorem 4"


def pca_page(model: KernelPCAModel, pairs: FieldsView | None = None) -> Page:
    """The whole page of a kernel principal component analysis."""
    sections, cards, settings = _pca(model, None if pairs is None else projected(pairs, ("scores",)))
    return _page(model, "Kernel principal components", "", sections, cards, settings)


def cca_page(model: KernelCCAModel, pairs: FieldsView | None = None) -> Page:
    """The whole page of a kernel canonical correlation analysis."""
    sections, cards, settings = _cca(model, None if pairs is None else projected(pairs, ("variates", "variates_y")))
    return _page(model, "Kernel canonical correlations", " of both views", sections, cards, settings)


def _features(model: Subspace) -> str:
    """The number of features; of two views that of each."""
    record = model.record
    if isinstance(record, KernelCCARecord):
        return " and ".join(count(len(view.names)) for view in record.views) + " features"
    return plural(len(record.columns), "feature")


def _page(model: Subspace, kind: str, of: str, sections: list[Section], cards: list[Card], settings: Rows) -> Page:
    record, kernel = model.record, kernel_of(model)
    lead = (
        f"{capitalised(kernel)} kernel on {plural(record.basis_size, 'basis function')}{of}, "
        f"from {plural(record.rows.count, 'row')} of {_features(model)} "
        f"in {plural(record.sweep_count, 'sweep')} over the data."
    )
    return Page(
        kind, lead, cards, memory_notice(memory_use(model)), [*sections, cost_section(model, "picking and algebra")],
        [Table("Settings", tuple(settings)), Table("Data and software", tuple(_data(model)))], record,
    )  # fmt: skip


def _data(model: Subspace) -> Rows:
    record = model.record
    if isinstance(record, KernelCCARecord):
        named = [("First view", record.views[0].names), ("Second view", record.views[1].names)]
    else:
        named = [("Columns", record.columns)]
    return [
        ("Rows", f"{count(record.rows.start)} to {count(record.rows.stop)}, the last excluded"),
        *((title, listed([plain(name, 40) for name in names])) for title, names in named),
        *provenance(record, digest_row(model)),
    ]


def _requested(model: Subspace) -> Rows:
    first, last = common_settings(model, lengthscale_text(model))
    requested = ("Basis functions requested", count(model.record.requested_basis))
    return [*first, requested, *last]


def _common_cards(model: Subspace) -> tuple[list[Card], list[Card]]:
    """The first three and the last three cards of every page."""
    record, n, requested = model.record, model.record.basis_size, model.record.requested_basis
    note = f"of {count(requested)} requested" if n < requested else f"chosen in {plural(len(record.rounds), 'round')}"
    first = [
        Card("Rows", count(record.rows.count), "of the fit"),
        Card("Basis functions", count(n), note),
        Card("Sweeps", count(record.sweep_count), "over the data"),
    ]
    last = [Card("Lengthscale", *lengthscale_text(model)), *cost_cards(model)]
    return first, last


_Parts = tuple[list[Section], list[Card], Rows]


def _pca(model: KernelPCAModel, rows: Projected | None) -> _Parts:
    record, eigen = model.record, model.record.eigen
    bound = bound_curve(model, plain(record.rule, 40))
    panels = [trace_figure(trace_curve(model)), bound_figure([bound], fitted_to_rows(model.record))]
    values = np.asarray(model.arrays["eigenvalues"], dtype=np.float64)
    total = float(values.sum()) + eigen.residual_trace
    first, last = _common_cards(model)
    cards = [
        *first,
        Card("Features", count(len(record.columns)), scaling_text(model)),
        Card("Components", count(eigen.count), f"of {count(eigen.requested or eigen.count)} requested"),
        Card("First component", percent(float(values[0]) / total if len(values) and total else 0.0), "of the variance"),
        Card("Residual trace", percent(record.certificate.relative_residual_trace), "of the basis, exact"),
        Card("Left by components", percent(eigen.relative_residual_trace), "of the trace, at most"),
        bound_card([("", bound)]),
        *last,
    ]
    settings = [*_requested(model), ("Components requested", count(eigen.requested) if eigen.requested else "all")]
    if record.stop is not None:
        settings.append(("Cut where", f"the bound is least, of {count(record.stop.looked or 0)} functions"))
    components = [eigenvalues_figure(values, eigen.residual_trace), components_figure(rows)]
    return [Section("Subspace", panels), metric_section(model), Section("Components", components)], cards, settings


def _cca(model: KernelCCAModel, rows: Projected | None) -> _Parts:
    record, arrays = model.record, model.arrays
    bound, correlations = variates_bound(model), np.asarray(arrays["correlations"], dtype=np.float64)
    views, held = record.views, None if rows is None else held_correlations(_first_pairs(rows, len(correlations)))
    names = ("first view", "second view")
    paths = [
        _residual_path(label, np.asarray(arrays[name], dtype=np.float64))
        for label, name in zip(names, ("residual_path", "residual_path_y"), strict=True)
    ]
    path = [
        residual_figure(paths, None, f"the {plural(record.rows.count, 'row')}, of either view,"),
        quotients_figure(np.asarray(arrays["gains"], dtype=np.float64)),
        error_bound_figure(bound, _THEOREM, "functions"),
    ]
    first, last = _common_cards(model)
    second = views[1].lengthscale
    cards = [
        *first,
        Card("Features", f"{count(len(views[0].names))} and {count(len(views[1].names))}", scaling_text(model)),
        Card("Pairs of variates", count(len(correlations)), f"of {count(record.cca.requested)} requested"),
        _correlation_card(correlations, held),
        *(
            Card(f"Residual, {name}", percent(view.certificate.relative_residual_trace), "of its trace, exact")
            for name, view in zip(names, views, strict=True)
        ),
        _disagreement_card(bound),
        _lengthscales_card(views, last[0]),
        *last[1:],
    ]
    requested = [
        *_requested(model),
        ("Second view's kernel", kernel_text(views[1].kernel)),
        ("Second view's lengthscale", "several" if isinstance(second, tuple) else significant(second)),
        ("Regularisation", f"{record.settings.regularization:g}"),
        ("Gamma of the bound", "none" if record.bound is None else f"{record.bound.gamma:g}"),
    ]
    singular = np.asarray(arrays["singular_values"], dtype=np.float64)
    drawn = None if rows is None else _first_pairs(rows, len(correlations))
    figures = [correlations_figure(correlations, singular, held), variates_figure(drawn)]
    return [Section("Variates", figures), Section("Path", path)], cards, requested


def _first_pairs(rows: Projected, pairs: int) -> Projected:
    """The same rows, whose variates must be those of the model.

    Raises
    ------
    ShapeMismatchError
        They are more or fewer.
    """
    if rows.first.shape[1] != pairs:
        raise ShapeMismatchError(
            f"pairs have {rows.first.shape[1]} variates of a view, the model {pairs}; give as many"
        )
    return rows


def _correlation_card(correlations: Float, held: HeldCorrelations | None) -> Card:
    """Of the first pair, on other rows than those of the fit where there are some."""
    fitted = significant(float(correlations[0]) if len(correlations) else None)
    if held is None or not len(held.correlation):
        return Card("Correlation", fitted, "of the first pair, over the rows of the fit")
    text = with_error(float(held.correlation[0]), float(held.standard_error[0]))
    return Card("Correlation", text, f"of the first pair on {held.rows}; {fitted} over the rows of the fit")


def _lengthscales_card(views: tuple[ViewRecord, ViewRecord], first: Card) -> Card:
    """The lengthscales of both views, if each has one number; otherwise the card `first`."""
    values = [view.lengthscale for view in views if isinstance(view.lengthscale, (int, float))]
    if len(values) < len(views):
        return first
    return Card("Lengthscales", " and ".join(significant(value) for value in values), first.note)


def _residual_path(label: str, path: np.ndarray) -> FactorCurve | Absent:
    if not path[0] > 0.0:
        return Absent("the trace of a view's kernel matrix is 0")
    return FactorCurve(label, np.maximum(path / path[0], ROUNDING), (), ROUNDING)


def _disagreement_card(bound: PursuitBound | Absent) -> Card:
    if isinstance(bound, Absent):
        return Card("Bound", "–", "no gamma was named")
    if bound.bound.says_nothing:
        return Card("Bound", "vacuous", "at every size: too few rows")
    return Card("Bound", significant(bound.bound.minimum), f"with {count(bound.bound.best_size)} functions")
