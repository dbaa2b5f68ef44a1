"""Mutated events and bombs against every reader; see ``python -m tools.fuzz --help``."""

from __future__ import annotations

import dataclasses
import importlib

from tools.fuzz._target import Format

__all__ = ["FORMATS", "load"]

FORMATS = ("avro", "java", "json", "protobuf", "string")


def load(name: str, only: str = "") -> Format:
    """A format with its targets, or those of them whose name contains a text."""
    form: Format = importlib.import_module(f"tools.fuzz.{name}").FORMAT
    return dataclasses.replace(form, targets=[target for target in form.targets if only in target.name])
