"""``python -m tools.pages``: see the package."""

from tools.pages import DOCS, PAGES

for name, page in PAGES.items():
    written = (DOCS / name).read_text() if (DOCS / name).exists() else ""
    made = page(written)
    if made != written:
        (DOCS / name).write_text(made)
        print(f"written anew: docs/{name}")
