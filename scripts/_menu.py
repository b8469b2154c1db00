"""Run one program of a folder by its name: `scripts/bench`, `scripts/reproduce`. Files with _ are parts of programs."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

FOLDERS = {"bench": ("benchmarks", "benchmark"), "reproduce": ("reproductions", "experiment")}


def summary(path: Path) -> str:
    """The first line of the file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def main(command: str, name: str = "", *arguments: str) -> int:
    """Run the program `name` with the arguments; without a name, list all."""
    folder, noun = FOLDERS[command]
    here = Path(__file__).with_name(folder)
    known = {path.stem: path for path in sorted(here.glob("*.py")) if not path.stem.startswith("_")}
    if name in known:
        sys.argv = [f"scripts/{command} {name}", *arguments]
        sys.path[0] = str(here)
        runpy.run_path(str(known[name]), run_name="__main__")
        return 0
    for stem, path in known.items():
        print(f"{stem:10} {summary(path)}")
    if name in ("", "-h", "--help"):
        return 0
    print(f"no {noun} {name!r}; choose one of the above", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
