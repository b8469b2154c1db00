"""Selection of the rows of a basis: draws, scores, takes, and the rules that combine them."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
