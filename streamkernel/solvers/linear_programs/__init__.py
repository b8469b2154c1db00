"""Linear programming machines, whose columns and rows are generated between sweeps."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
