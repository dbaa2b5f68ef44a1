"""Write all generated pages: ``python -m tools.pages``."""

from tools.pages import DOCS, PAGES

for name, page in PAGES.items():
    written = (DOCS / name).read_text() if (DOCS / name).exists() else ""
    generated = page(written)
    if generated != written:
        (DOCS / name).write_text(generated)
        print(f"written: docs/{name}")
