"""The pages of sparse subspaces: kernel principal components, and canonical correlations of two views."""

from __future__ import annotations

from os import PathLike

import numpy as np

from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.transformers import KernelPCAModel
from streamkernel.records import ViewRecord
from streamkernel.report.facts.factors import BoundCurve, FactorCurve, bound_curve, rows_fitted
from streamkernel.report.facts.fit import ROUNDING, Absent, memory_use, sweep_times, trace_curve
from streamkernel.report.facts.pursuit import PursuitBound, variates_bound
from streamkernel.report.figures.costs import memory_panel, time_panel
from streamkernel.report.figures.factors import bound_panel, residual_panel
from streamkernel.report.figures.fit import trace_panel
from streamkernel.report.figures.pursuit import pursuit_bound_panel
from streamkernel.report.figures.subspace import correlations_panel, eigenvalues_panel, quotients_panel
from streamkernel.report.pages.notices import memory_notice
from streamkernel.report.pages.tables import (
    Card,
    Table,
    lengthscale_words,
    listed,
    memory_card,
    place_words,
    provenance,
    scaling_words,
    seconds_of,
)
from streamkernel.report.publish import checked_output, publish_file
from streamkernel.report.text import count, duration, kernel_words, percent, plain, plural, significant
from streamkernel.report.whole import Group, whole_page

__all__ = ["render_subspace", "write_subspace_html"]

_THEOREM = "Hussain & Shawe-Taylor, Theorem 4"


def write_subspace_html(
    model: KernelPCAModel | KernelCCAModel,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """See `streamkernel.report.write_report`."""
    target = checked_output(path, overwrite=overwrite)
    publish_file(target, render_subspace(model, title).encode(), overwrite=overwrite)


def render_subspace(model: KernelPCAModel | KernelCCAModel, title: str | None = None) -> str:
    """The page as text."""
    pca = isinstance(model, KernelPCAModel)
    kind = "Kernel principal components" if pca else "Kernel canonical correlations"
    groups, cards, settings = _pca(model) if isinstance(model, KernelPCAModel) else _cca(model)
    record, kernel = model.record, kernel_words(model.record.kernel)
    lead = (
        f"{kernel[:1].upper()}{kernel[1:]} kernel on {plural(record.basis_size, 'basis function')}"
        f"{'' if pca else ' of both views'}, from {plural(record.rows.count, 'row')} of "
        f"{plural(len(record.columns), 'feature')} in {plural(record.sweep_count, 'sweep')} over the data."
    )
    costs = Group("Cost", [time_panel(sweep_times(model), "picking and algebra"), memory_panel(memory_use(model))])
    return whole_page(
        plain(title, 200) if title is not None else kind,
        lead,
        cards,
        memory_notice(memory_use(model)),
        [*groups, costs],
        [Table("Settings", tuple(settings)), Table("Data and software", tuple(_data(model)))],
        record,
    )


def _data(model: KernelPCAModel | KernelCCAModel) -> list[tuple[str, str]]:
    rows, views = model.record.rows, model.record.views if isinstance(model, KernelCCAModel) else ()
    names = [[plain(name, 40) for name in view.names] for view in views]
    columns = [("Columns", listed([plain(name, 40) for name in model.record.columns]))]
    if views:
        columns = [("First view", listed(names[0])), ("Second view", listed(names[1]))]
    return [
        ("Rows", f"{count(rows.start)} to {count(rows.stop)}, the last excluded"),
        *columns,
        *provenance(model),
    ]


def _asked(model: KernelPCAModel | KernelCCAModel) -> list[tuple[str, str]]:
    record = model.record
    settings = record.settings
    lengthscale, how = lengthscale_words(model)
    return [
        ("Kernel", kernel_words(record.kernel)),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Basis functions asked for", count(record.requested_basis)),
        ("Rule", plain(record.rule)),
        *((f"Rule's {plain(name)}", plain(value)) for name, value in settings.rule_options.items()),
        ("Features", scaling_words(model)),
        ("Seed", plain(settings.seed)),
    ]


def _common_cards(model: KernelPCAModel | KernelCCAModel) -> tuple[list[Card], list[Card]]:
    """The first three and the last three cards of every page."""
    record, n = model.record, model.record.basis_size
    asked = record.requested_basis
    note = f"of {count(asked)} asked for" if n < asked else f"chosen in {plural(len(record.rounds), 'round')}"
    first = [
        Card("Rows", count(record.rows.count), "of the fit"),
        Card("Basis functions", count(n), note),
        Card("Sweeps", count(record.sweep_count), "over the data"),
    ]
    last = [
        Card("Lengthscale", *lengthscale_words(model)),
        Card("Time", duration(seconds_of(record)), place_words(model)),
        memory_card(model),
    ]
    return first, last


_Parts = tuple[list[Group], list[Card], list[tuple[str, str]]]


def _pca(model: KernelPCAModel) -> _Parts:
    record, eigen = model.record, model.record.eigen
    bound = bound_curve(model, plain(record.rule, 40))
    panels = [trace_panel(trace_curve(model)), bound_panel([bound], rows_fitted(model))]
    values = np.asarray(model.arrays["eigenvalues"], dtype=np.float64)
    total = float(values.sum()) + eigen.residual_trace
    first, last = _common_cards(model)
    cards = [
        *first,
        Card("Features", count(len(record.columns)), scaling_words(model)),
        Card("Components", count(eigen.count), f"of {count(eigen.requested or eigen.count)} asked for"),
        Card("First component", percent(float(values[0]) / total if len(values) and total else 0.0), "of the variance"),
        Card("Residual trace", percent(record.certificate.relative_residual_trace), "of the basis, exact"),
        Card("Left by components", percent(eigen.relative_residual_trace), "of the trace, at most"),
        _compression_card(bound),
        *last,
    ]
    stop = record.stop
    settings = [*_asked(model), ("Components asked for", count(eigen.requested) if eigen.requested else "all")]
    if stop is not None:
        settings.append(("Cut where", f"the bound is least, of {count(stop.looked or 0)} functions"))
    components = eigenvalues_panel(values, eigen.residual_trace)
    return [Group("Subspace", panels), Group("Components", [components])], cards, settings


def _compression_card(bound: BoundCurve | Absent) -> Card:
    if isinstance(bound, Absent):
        return Card("Compression bound", "–", "none for this kernel or basis")
    if bound.vacuous:
        return Card("Compression bound", "vacuous", "at every size: too few rows")
    return Card("Compression bound", significant(bound.best), f"of k(x, x), with {count(bound.best_size)} functions")


def _cca(model: KernelCCAModel) -> _Parts:
    record, arrays = model.record, model.arrays
    bound, correlations = variates_bound(model), np.asarray(arrays["correlations"], dtype=np.float64)
    views = record.views
    names = ("first view", "second view")
    paths = [
        _residual_path(label, np.asarray(arrays[name], dtype=np.float64))
        for label, name in zip(names, ("residual_path", "residual_path_y"), strict=True)
    ]
    rows = plural(record.rows.count, "row")
    path = [
        residual_panel(paths, None, f"the {rows}, of either view,"),
        quotients_panel(np.asarray(arrays["gains"], dtype=np.float64)),
        pursuit_bound_panel(bound, _THEOREM, "functions"),
    ]
    first, last = _common_cards(model)
    second = views[1].lengthscale
    cards = [
        *first,
        Card("Features", f"{count(len(views[0].names))} and {count(len(views[1].names))}", scaling_words(model)),
        Card("Pairs of variates", count(len(correlations)), f"of {count(record.cca.requested)} asked for"),
        Card("Correlation", significant(float(correlations[0]) if len(correlations) else None), "of the first pair"),
        *(
            Card(f"Residual, {name}", percent(view.certificate.relative_residual_trace), "of its trace, exact")
            for name, view in zip(names, views, strict=True)
        ),
        _disagreement_card(bound),
        _lengthscales_card(views, last[0]),
        *last[1:],
    ]
    settings = record.settings
    asked = [
        *_asked(model),
        ("Second view's kernel", kernel_words(views[1].kernel)),
        ("Second view's lengthscale", "several" if isinstance(second, tuple) else significant(second)),
        ("Regularisation", f"{settings.regularization:g}"),
        ("Gamma of the bound", "none" if record.bound is None else f"{record.bound.gamma:g}"),
    ]
    singular = np.asarray(arrays["singular_values"], dtype=np.float64)
    return [Group("Variates", [correlations_panel(correlations, singular)]), Group("Path", path)], cards, asked


def _lengthscales_card(views: tuple[ViewRecord, ...], first: Card) -> Card:
    """The lengthscales of both views, if each has one number; otherwise the card `first`."""
    values = [view.lengthscale for view in views if isinstance(view.lengthscale, int | float)]
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
