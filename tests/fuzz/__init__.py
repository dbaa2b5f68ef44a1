"""Mutated events and bombs against every reader; see ``python -m tests.fuzz --help``."""

from __future__ import annotations

import dataclasses
import importlib

from tests.fuzz._target import Format

__all__ = ["FORMATS", "load"]

FORMATS = ("avro", "cbor", "java", "json", "protobuf", "string")


def load(name: str, only: str = "") -> Format:
    """A format with its targets, or those of them whose name contains a text."""
    form: Format = importlib.import_module(f"tests.fuzz.{name}").FORMAT
    return dataclasses.replace(form, targets=[target for target in form.targets if only in target.name])
