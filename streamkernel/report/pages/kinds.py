"""The page and the picture of each kind of model, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamkernel.errors import ParameterError
from streamkernel.factors import SavedBasis
from streamkernel.kinds import title_of
from streamkernel.models import GaussianModel, GeneralisedModel, PursuitModel, RidgeModel
from streamkernel.models.boosting import BoostingModel
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.margins import MarginModel, OneClassModel
from streamkernel.models.transformers import KernelPCAModel
from streamkernel.report.pages.boosting import boosting_page, boosting_picture
from streamkernel.report.pages.gaussian import gaussian_page, gaussian_picture
from streamkernel.report.pages.margins import margin_page, margin_picture
from streamkernel.report.pages.one_class import one_class_page, one_class_picture
from streamkernel.report.pages.parts import Page, Picture
from streamkernel.report.pages.pursuit import pursuit_page, pursuit_picture
from streamkernel.report.pages.ridge import ridge_page, ridge_picture
from streamkernel.report.pages.subspace import cca_page, pca_page
from streamkernel.type_aliases import FieldsView

Pairs = FieldsView | None


@dataclass(frozen=True)
class Report:
    """``page(model, pairs)``, and ``picture(model)`` for models that predict."""

    page: Callable[[Any, Pairs], Page]
    picture: Callable[[Any], Picture] | None = None


_REPORTS: dict[type[Any], Report] = {
    RidgeModel: Report(ridge_page, ridge_picture),
    PursuitModel: Report(pursuit_page, pursuit_picture),
    GaussianModel: Report(gaussian_page, gaussian_picture),
    GeneralisedModel: Report(gaussian_page, gaussian_picture),
    MarginModel: Report(margin_page, margin_picture),
    BoostingModel: Report(boosting_page, boosting_picture),
    OneClassModel: Report(one_class_page, one_class_picture),
    KernelPCAModel: Report(pca_page),
    KernelCCAModel: Report(cca_page),
}


def page_of(model: Any, pairs: Pairs = None) -> Page:
    """The page of a model.

    Raises
    ------
    ParameterError
        There are no pages about this kind of model, or `pairs` lacks a part.
    """
    return _report_of(model).page(model, pairs)


def picture_of(model: Any) -> Picture:
    """The text above a model's small picture, and its figures.

    Raises
    ------
    ParameterError
        The model does not predict.
    """
    report = _report_of(model)
    if report.picture is None:
        raise ParameterError(f"a picture is of a model that predicts; {title_of(model)} does not")
    return report.picture(model)


def has_page(kind: type[SavedBasis]) -> bool:
    """Whether there are pages about models of this class."""
    return any(base in _REPORTS for base in kind.__mro__)


def _report_of(model: Any) -> Report:
    if not has_page(type(model)):
        raise ParameterError(f"there is no report about a {title_of(model)}")
    return next(_REPORTS[base] for base in type(model).__mro__ if base in _REPORTS)
