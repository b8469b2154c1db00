"""Small pictures of a model or of factors, as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike

from streamkernel.factors import Factor
from streamkernel.models.predicting import PredictingModel
from streamkernel.report.facts.factors import PcaCurve
from streamkernel.report.facts.fit import Absent
from streamkernel.report.matplotlib_renderer import png_of
from streamkernel.report.pages.factors import factors_picture
from streamkernel.report.pages.kinds import picture_of
from streamkernel.report.publish import PICTURE, checked_output, publish_file


def write_model_picture(model: PredictingModel, path: str | PathLike[str]) -> None:
    """See `streamkernel.report.draw_png`."""

    def draw() -> bytes:
        lead, figures = picture_of(model)
        return png_of(figures, (10.0, 3.6), lead)

    _write(path, draw)


def write_factors_picture(
    factors: Sequence[Factor], path: str | PathLike[str], optimum: PcaCurve | Absent | None
) -> None:
    """See `streamkernel.report.draw_factor_png`."""
    _write(path, lambda: png_of([factors_picture(factors, optimum)], (7.2, 4.4)))


def _write(path: str | PathLike[str], draw: Callable[[], bytes]) -> None:
    target = checked_output(path, overwrite=True, mark=PICTURE)
    publish_file(target, draw(), overwrite=True, mark=PICTURE)
