"""Generalised Gaussian process regression: classes and counts, by Newton's method or a quasi-Newton method."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
