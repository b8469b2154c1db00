"""Models: the saved result of a fit. One class for each kind: its fields and arrays, saving, loading, predicting."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
