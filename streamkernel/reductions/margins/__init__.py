"""Losses of large margin methods, and the sums of the methods that minimise them."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
