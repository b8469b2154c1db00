"""Fits: the steps from a table and settings to a model.

Each family of kinds has a room, with its plans; `steps` has what all of them do.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
