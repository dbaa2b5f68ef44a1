"""Metadata that name the project's home: the links of README.md made absolute, and the project's URLs.

An index shows README.md without the files next to it, so its links lead to these files at the home, in the state of the
version's tag. The address of a picture asks for the file itself, not for the forge's page about it. Only
``pyproject.toml`` names the home: ``tool.hatch.metadata.hooks.custom.home``.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_PICTURE = re.compile(r"(!\[[^\]]*\])\((?!https?://)([^)\s]+)\)")
_RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


class HomeMetadataHook(MetadataHookInterface):
    """Hook of the build: sets ``readme`` and ``urls``, which ``pyproject.toml`` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both in the metadata."""
        home = self.config["home"].rstrip("/")
        files = f"{home}/blob/v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text()
        text = _RELATIVE_PICTURE.sub(rf"\1({files}/\2?raw=true)", text)
        text = _RELATIVE_LINK.sub(rf"]({files}/\1)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {
            "Homepage": home,
            "Documentation": f"{files}/README.md",
            "Changes": f"{files}/CHANGELOG.md",
            "Issues": f"{home}/issues",
            "Source": home,
        }
