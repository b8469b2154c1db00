"""Solvers: coefficients from the sums of a sweep. A system is decomposed once and then solved many times."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
