"""Kinds of models: what can be fitted, saved, loaded and served, each one record of the registry."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
