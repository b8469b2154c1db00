"""Large margins: reduced machines, one sweep per iteration, and machines on the full kernel matrix."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
