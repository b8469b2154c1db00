"""Members of boosting: the classes that they give, their votes, and the rows that the next one is fitted to."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
