"""Kernel matching pursuit: few functions of a large dictionary, picked one by one by their gain on the targets."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
