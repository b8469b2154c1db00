"""Links and names of files in the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import NOTEBOOKS, TEXTS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *TEXTS,
        *NOTEBOOKS,
        *ROOT.glob("deploy/**/*.md"),
    ]
)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_file_names(page: str) -> None:
    path = ROOT / page
    text = path.read_text()
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link and ":" not in link]
    lost = [link for link in links if not (path.parent / link).exists()]
    if page != "CHANGELOG.md":  # of what was there then
        named = re.findall(
            r"\b(?:docs|scripts|deploy|tests|streamkernel)/[\w./-]*\w\.(?:md|json|csv|png|py|yaml|sbatch)\b", text
        )
        lost += [name for name in named if not (ROOT / name).exists()]
    assert not lost


def test_pages_are_found() -> None:
    assert {"README.md", "docs/guide.md", "docs/results/README.md"} <= set(PAGES)
