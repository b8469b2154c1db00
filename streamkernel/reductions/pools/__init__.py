"""Pools of candidates and samples of rows: the sums by which selection rules pick a basis."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
