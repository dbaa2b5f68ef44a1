"""The command ``pravega-serde``."""

from connector.cli._app import main

__all__ = ["main"]
