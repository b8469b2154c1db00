"""Pages of HTML about models, factors and comparisons: headline, cards, figures and tables of each kind."""

from streamkernel.report.pages.comparison import comparison_page
from streamkernel.report.pages.factors import factors_page, factors_picture
from streamkernel.report.pages.kinds import has_page, page_of, picture_of
from streamkernel.report.pages.side_by_side import models_page

__all__ = ["comparison_page", "factors_page", "factors_picture", "has_page", "models_page", "page_of", "picture_of"]
