"""Likelihoods of classes and counts, and the sums of Newton's method for them."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
