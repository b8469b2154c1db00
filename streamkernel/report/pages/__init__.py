"""Pages of HTML about models and factors: headline, cards, figures and tables of each kind."""

from streamkernel.report.pages.factors import factors_page, factors_picture
from streamkernel.report.pages.kinds import has_page, page_of, picture_of

__all__ = ["factors_page", "factors_picture", "has_page", "page_of", "picture_of"]
