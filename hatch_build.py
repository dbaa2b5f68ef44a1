"""Metadata that name the project's home: the links of README.md made absolute, and the project's URLs.

An index shows README.md where none of the files beside it is, so its links go to these files at the home, in the
state of the version's tag. The home is said once, in ``pyproject.toml``: ``tool.hatch.metadata.hooks.custom.home``.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


class HomeMetadataHook(MetadataHookInterface):
    """Hook of the build: sets ``readme`` and ``urls``, which ``pyproject.toml`` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both in the metadata."""
        home = self.config["home"].rstrip("/")
        files = f"{home}/blob/v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text()
        text = _RELATIVE_LINK.sub(rf"]({files}/\1)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {
            "Homepage": home,
            "Documentation": f"{files}/README.md",
            "Changes": f"{files}/CHANGELOG.md",
            "Issues": f"{home}/issues",
            "Source": home,
        }
