"""The documentation site; `scripts/docs` builds it.

The source is the repository as a whole, so that a link which leads somewhere on a code host leads to the same place in
the site: to another page, or to a file, of which the site has a copy. Pages of `docs/` are below `docs/` here, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import streamkernel

ROOT = Path(__file__).resolve().parents[1]

project = "streamkernel"
author = "The streamkernel developers"
project_copyright = author
version = release = streamkernel.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**", "deploy/README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = ["docs/_site", "docs/_root", "docs/_templates"]

# Anchors of headings as code hosts make them.
myst_heading_anchors = 6
suppress_warnings = [
    # The headings of some pages begin below the first level or leave one out, where the page is a part of another.
    "myst.header",
]

# A name between single backticks is code in our docstrings.
default_role = "literal"
napoleon_google_docstring = False
# Types are said in words ("rows, of any kind"): no word of them is a link. Attributes are often properties, which have
# a description of their own: the list of them is text.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
templates_path = [str(ROOT / "docs" / "_templates")]
html_theme = "furo"
html_title = f"streamkernel {release}"
html_extra_path = ["_root"]
html_copy_source = False
html_show_sphinx = False


def describe_fields(app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Say of each field what stands behind its colon as its description, where that is no type.

    NumPy's style has ``name : type`` and a description below it. Ours also has ``name : description``, which may go on
    in the next lines: a type is shorter than a line.
    """
    fields = False
    found: list[str] = []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below.startswith("---"):
            fields = line in ("Parameters", "Attributes")
        field, colon, text = line.partition(" : ")
        if fields and colon and not line.startswith(" ") and (len(line) > 80 or not below.startswith(" ")):
            # A second name in the text: RST would take the underscore at its end for a link.
            found += [field, "    " + re.sub(r"\b(\w+_)(?= :)", r"``\1``", text)]
        else:
            found.append(line)
    lines[:] = found


def not_ours(app: Sphinx, what: str, name: str, member: object, skip: bool, options: Any) -> bool | None:
    """Leave out what a class has from another library: scikit-learn's methods are described on its site."""
    home = getattr(member, "__module__", None) or getattr(getattr(member, "fget", None), "__module__", None)
    return True if home is not None and not str(home).startswith("streamkernel") else None


class NotebookParser(MystParser):
    """The page of a notebook: its text as it is, its code as blocks, and a link to the notebook itself."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        parts = []
        for cell in json.loads(inputstring)["cells"]:
            source = "".join(cell["source"])
            parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        name = Path(document["source"]).name
        # Below the heading, which is the first cell.
        parts.insert(1, f"{{download}}`This page as a notebook <{name}>`.")
        super().parse("\n\n".join(parts), document)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    # A code host draws these diagrams; here their text, which is readable, is shown.
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-skip-member", not_ours)
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", describe_fields, priority=400)
    return {"parallel_read_safe": True}
