"""`scripts/docs`: every page is in the site, every link leads to a file of it, and nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from pages import NOTEBOOKS, TEXTS, written

import streamkernel as package

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "_site"
PAGES = [
    *TEXTS,
    *NOTEBOOKS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "deploy" / "README.md",
]


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    entries = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    assert set(package.__all__) - {"__version__"} <= entries


def test_the_reference_has_what_the_pages_import() -> None:
    reference = ROOT / "docs" / "reference.md"
    entries = {name.rpartition(".")[2] for name in re.findall(r"^   ([\w.]+)$", reference.read_text(), re.MULTILINE)}
    for page in PAGES:
        for names in re.findall(r"^from streamkernel[\w.]* import (\([^)]*\)|.*)$", page.read_text(), re.MULTILINE):
            assert set(re.findall(r"\w+", names.partition("#")[0])) <= entries, (page, names)


def test_every_page_is_in_the_list_of_pages() -> None:
    """The build says so too, and it is slow."""
    home = ROOT / "docs"
    lists = re.findall(r"^```\{toctree\}\n(.*?)^```$", (home / "index.md").read_text(), re.MULTILINE | re.DOTALL)
    listed: set[Path] = set()
    for entry in (line for each in lists for line in each.splitlines() if line and line[0] != ":"):
        found = [path.resolve() for suffix in ("md", "ipynb") for path in home.glob(f"{entry}.{suffix}")]
        assert found or "*" in entry, entry
        listed |= set(found)
    assert set(PAGES) - {home / "index.md"} <= listed


def test_what_was_built_is_no_page(tmp_path: Path) -> None:
    """After `scripts/docs` the site has copies of the notebooks, whose links lead nowhere."""
    for name in ("one.md", "two.ipynb", "notebooks/three.ipynb", "_site/_downloads/1f/three.ipynb", "_api/four.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert written(tmp_path, ".md") == [tmp_path / "one.md"]
    assert written(tmp_path, ".ipynb") == [tmp_path / "notebooks" / "three.ipynb", tmp_path / "two.ipynb"]


@pytest.fixture(scope="module")
def site() -> Path:
    if not (ROOT / ".venv-docs" / "bin" / "python").exists():
        pytest.skip("scripts/docs was not run here: its environment is not installed")
    done = subprocess.run(
        [ROOT / "scripts" / "docs"],
        env={**os.environ, "STREAMKERNEL_NO_INSTALL": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_site_is_whole(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file(), page
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            path = unquote(target.partition("#")[0])
            if re.match(r"[a-z]+:", target) or not path:
                continue
            assert (page.parent / path.partition("?")[0]).exists(), (page, target)
        # Links lead to other sites; scripts, styles and pictures do not come from them.
        assert not re.search(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="(?:https?:)?//', text), page
