"""``python -m tools.pages``: see the package."""

from tools.pages import PAGES, ROOT

for name, page in PAGES.items():
    written = (ROOT / name).read_text() if (ROOT / name).exists() else ""
    made = page(written)
    if made != written:
        (ROOT / name).write_text(made)
        print(f"written anew: {name}")
