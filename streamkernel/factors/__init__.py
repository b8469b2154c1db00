"""Low-rank factors G with ``G G^T = K~``: products, solves, eigenvectors, neighbours, from a stored G or a basis."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
