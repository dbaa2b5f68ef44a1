"""Mutated events and bombs against every reader; see ``python -m tests.fuzz --help``."""

from __future__ import annotations

import dataclasses
import importlib

from pravega_serde import formats
from tests.fuzz._target import Format

__all__ = ["FORMATS", "load"]

#: Bytes are taken as they are; every other format needs targets, in a module of its name. So do envelopes.
FORMATS = (*(name for name in formats() if name != "bytes"), "envelopes")


def load(name: str, only: str = "") -> Format:
    """A format with its targets, or only the targets whose name contains a text."""
    form: Format = importlib.import_module(f"tests.fuzz.{name}").FORMAT
    return dataclasses.replace(form, targets=[target for target in form.targets if only in target.name])
