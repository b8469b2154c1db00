"""Tables that are made when they are read: their URLs, their functions, and their rows."""

from streamkernel.table.synthetic._location import is_synthetic, normal_form, parse

__all__ = ["is_synthetic", "normal_form", "parse"]
