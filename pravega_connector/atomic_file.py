"""Output files of the connector that appear whole or not at all."""

from __future__ import annotations

from pravega_connector.errors import OutputFileError
from pravega_serde import atomic_file


class WholeFile(atomic_file.WholeFile):
    """A file under construction, whose errors are OutputFileError."""

    refusal = OutputFileError
