"""Reports on a fitted model, on models or factors side by side, or on compared estimators: an HTML page or a picture.

`write_report` draws with Bokeh (``pip install streamkernel[report]``), `draw_png` with matplotlib
(``pip install streamkernel[png]``). Both draw what `streamkernel.report.facts` reads out of the model; neither reads
a table, and neither sends a network request. `write_factor_report` and `draw_factor_png` do the same for factors,
`write_models_report` for several models, and `write_comparison_report` for what `cross_validate` has found.
`pca_optimum` reads the rows of a small table, for the curve that no factor can be below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any

from lazy_loader import attach

from streamkernel.errors import ParameterError
from streamkernel.report.publish import PICTURE, checked_output, publish_file
from streamkernel.type_aliases import FieldsView

if TYPE_CHECKING:
    from streamkernel.comparison import Comparison
    from streamkernel.factors import Factor
    from streamkernel.models.predicting import PredictingModel
    from streamkernel.models.saved import SavedModel
    from streamkernel.models.transformers import TransformerModel
    from streamkernel.report.facts.factors import PcaCurve, pca_optimum
    from streamkernel.report.facts.fit import Absent
else:
    # Commands that draw nothing take words of `report.text`.
    __getattr__, *_ = attach(__name__, submod_attrs={"facts.factors": ["pca_optimum"]})

__all__ = [
    "check_report",
    "draw_factor_png",
    "draw_png",
    "pca_optimum",
    "write_comparison_report",
    "write_factor_report",
    "write_models_report",
    "write_report",
]


def write_report(
    model: PredictingModel | TransformerModel,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
    pairs: FieldsView | None = None,
) -> None:
    """Write one self-contained HTML page about a fitted model.

    Parameters
    ----------
    path : path or URL of the page; the page is written whole or not at all.
    title : plain text; default: the kind of the model.
    overwrite : whether an existing file may be replaced.
    pairs : ``{"kind", "true", "predicted"}``, used instead of the check rows that the model stores. `kind` is
        "held-out", "training", or a description of the rows. The values are (rows, d) in the form that the model
        predicts, for classes indicators and scores; class labels, (rows,), are accepted too. Models that predict
        distributions also take "std" beside "predicted", or "probability" instead of it. "weight" (rows,) are row
        weights. Of a kernel PCA ``{"kind", "scores"}``, of a kernel CCA ``{"kind", "variates", "variates_y"}``,
        (rows, r) each: rows to draw, in the colours of "label" (rows,), or of "target" (rows,) with "target_name".

    Raises
    ------
    ParameterError
        Bokeh is not installed; `path` has the suffix of another kind of file; there is no page about this kind of
        model; `pairs` lacks a part.
    ShapeMismatchError
        True and predicted values differ in shape, or do not fit the model.
    StoreExistsError, StoreNotFoundError
        The file exists, or its folder does not; raised before any work.
    """
    _write_page(lambda pages: pages.page_of(model, pairs), path, title, overwrite)


def draw_png(model: PredictingModel, path: str | PathLike[str]) -> None:
    """Draw residual trace, GCV (calibration of predicted distributions, errors along C) and predictions in one picture.

    The figures stand one below the other, 720 pixels wide; an existing picture is replaced.

    Raises
    ------
    ParameterError
        matplotlib is not installed, or `path` has the suffix of another kind of file.
    StoreNotFoundError
        The folder of `path` does not exist; raised before any work.
    """
    _write_picture(lambda pages: pages.picture_of(model), path, 2.9)


def write_factor_report(
    factors: Sequence[Factor],
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
    optimum: PcaCurve | Absent | None = None,
) -> None:
    """Write one self-contained HTML page about one or several factors.

    Parameters
    ----------
    factors : factors, in the order of their colours.
    path, title, overwrite : as in `write_report`.
    optimum : result of `pca_optimum`.

    Raises
    ------
    ParameterError
        Bokeh is not installed; `path` has the suffix of another kind of file; there are no factors, or too many.
    StoreExistsError, StoreNotFoundError
        The file exists, or its folder does not; raised before any work.
    """
    _write_page(lambda pages: pages.factors_page(factors, optimum), path, title, overwrite)


def write_comparison_report(
    comparison: Comparison, path: str | PathLike[str], *, title: str | None = None, overwrite: bool = False
) -> None:
    """Write one self-contained HTML page about estimators that were compared by cross-validation.

    Parameters
    ----------
    path, title, overwrite : as in `write_report`.

    Raises
    ------
    ParameterError
        Bokeh is not installed; `path` has the suffix of another kind of file.
    StoreExistsError, StoreNotFoundError
        The file exists, or its folder does not; raised before any work.
    """
    _write_page(lambda pages: pages.comparison_page(comparison), path, title, overwrite)


def write_models_report(
    models: Mapping[str, SavedModel],
    path: str | PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write one self-contained HTML page about several models of any kind, side by side.

    Scores are those of the held-out rows that each model keeps, with their standard errors. Models are ranked among
    those with the same held-out rows of one table, and never across tables.

    Parameters
    ----------
    models : fitted models or transformers, by the names that the page gives them.
    path, title, overwrite : as in `write_report`.

    Raises
    ------
    ParameterError
        Bokeh is not installed; `path` has the suffix of another kind of file; there are fewer than two models, or too
        many.
    StoreExistsError, StoreNotFoundError
        The file exists, or its folder does not; raised before any work.
    """
    _write_page(lambda pages: pages.models_page(models), path, title, overwrite)


def check_report(path: str | PathLike[str], *, overwrite: bool) -> None:
    """Raise the errors of `write_comparison_report` now, before the work whose result it will draw."""
    _modules("bokeh", "report", "streamkernel.report.pages.document")
    checked_output(path, overwrite=overwrite)


def draw_factor_png(
    factors: Sequence[Factor], path: str | PathLike[str], *, optimum: PcaCurve | Absent | None = None
) -> None:
    """Draw residual traces against rank, 720 pixels wide; an existing picture is replaced.

    Raises
    ------
    ParameterError
        matplotlib is not installed; `path` has the suffix of another kind of file; no factor has a residual trace to
        draw.
    StoreNotFoundError
        The folder of `path` does not exist; raised before any work.
    """
    _write_picture(lambda pages: ("", [pages.factors_picture(factors, optimum)]), path, 3.0)


def _write_page(page: Callable[[Any], Any], path: str | PathLike[str], title: str | None, overwrite: bool) -> None:
    document, pages = _modules("bokeh", "report", "streamkernel.report.pages.document")
    target = checked_output(path, overwrite=overwrite)
    publish_file(target, document.html_of(page(pages), title).encode(), overwrite=overwrite)


def _write_picture(picture: Callable[[Any], Any], path: str | PathLike[str], height: float) -> None:
    renderer, pages = _modules("matplotlib", "png", "streamkernel.report.matplotlib_renderer")
    target = checked_output(path, overwrite=True, mark=PICTURE)
    lead, figures = picture(pages)
    publish_file(target, renderer.png_of(figures, height, lead), overwrite=True, mark=PICTURE)


def _modules(library: str, extra: str, module: str) -> tuple[Any, Any]:
    """The module that draws with a library, and that of the pages."""
    # Imported on call: each library is an extra, and users who only fit need neither.
    if find_spec(library) is None:
        raise ParameterError(f"{library} is not installed, and draws this; pip install streamkernel[{extra}]")
    return import_module(module), import_module("streamkernel.report.pages")
