"""Run one experiment of this folder: ``scripts/reproduce NAME [arguments]``, one file each."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def experiments() -> dict[str, Path]:
    """Every file here that is not private, by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.py")) if not path.stem.startswith("_")}


def summary(path: Path) -> str:
    """The first line of the file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def main(arguments: list[str]) -> int:
    known = experiments()
    name = arguments[0] if arguments else ""
    if name in known:
        sys.argv = [f"scripts/reproduce {name}", *arguments[1:]]
        runpy.run_path(str(known[name]), run_name="__main__")
        return 0
    for stem, path in known.items():
        print(f"{stem:10} {summary(path)}")
    if not name or name in ("-h", "--help"):
        return 0
    print(f"no experiment {name!r}; choose one of the above", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
