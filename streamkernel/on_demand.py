"""Names of a folder that are imported when somebody asks for them: a program loads the code that it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(folder: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a folder's ``__init__``.

    Parameters
    ----------
    folder : name of the package.
    homes : by module of the package, the names that are imported from it, with blanks between. No name is that of a
        module: once that is loaded, it is what Python finds.
    """
    modules = {name: f"{folder}.{module}" for module, names in homes.items() for name in names.split()}

    def imported(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {folder!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return imported
