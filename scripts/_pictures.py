"""Draw the pictures of the pages anew: each is made by the Python that stands on its page.

A page shows `pictures/NAME.png`, and one of its blocks writes NAME.png. A palette of 64 colours makes the files small.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("gallery.md", "tutorial.md")
COLOURS = 64


def main() -> None:
    (DOCS / "pictures").mkdir(exist_ok=True)
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            namespace = {"__name__": "__main__"}
            for source in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                exec(compile(source, page, "exec"), namespace)
            for name in sorted(set(re.findall(r"\(pictures/([\w-]+\.png)\)", text))):
                with Image.open(name) as drawn:
                    small = drawn.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
                small.save(DOCS / "pictures" / name, optimize=True)
                print(f"docs/pictures/{name}: {(DOCS / 'pictures' / name).stat().st_size:,} bytes")
            os.chdir(DOCS)


if __name__ == "__main__":
    sys.exit(main())
