"""Java compiles the generated classes, reads the events as their objects, and writes the same bytes."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pravega_serde import JavaObject, JavaSerializer, generate, typed
from tests.interop._java_values import JavaValues

VECTORS = Path(__file__).parents[1] / "vectors" / "java_serializer.jsonl"
#: Classes whose interfaces have methods, which events do not show.
INTERFACES = (b"Model$Echo", b"Model$Longest")


def golden() -> dict[str, tuple[bytes, bool]]:
    """The golden vectors: case -> event, and whether Java itself writes the same bytes again."""
    rows = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    return {row["case"]: (bytes.fromhex(row["hex"]), row["java_reencode_identical"]) for row in rows if "hex" in row}


def of_the_model(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Events of the classes in java_serde/Model.java: nested, inherited, records, enums, with their own writeObject."""
    rows = [(row["case"], bytes.fromhex(row["hex"]), row["stable"]) for row in JavaValues(folder).generate()]
    return {case: (event, stable) for case, event, stable in rows if not any(name in event for name in INTERFACES)}


@pytest.mark.parametrize("source", ["golden", pytest.param("model", marks=pytest.mark.long)])
def test_java_reads_and_writes_the_same_bytes(source: str, tmp_path: Path) -> None:
    events = golden() if source == "golden" else of_the_model(tmp_path / "model")
    code = generate([event for event, _ in events.values()], to="java")
    sources = code.write(tmp_path / "source")
    assert len(sources) == (14 if source == "golden" else 1)
    java = JavaValues(tmp_path / "classes", with_sources=sources)
    answers = java.verify([event for event, _ in events.values()])
    stable = {case for case, (_, stable) in events.items() if stable}
    same = {case for case, answer in zip(events, answers, strict=True) if answer.get("identical")}
    assert len(stable) > 150
    assert same >= stable


def test_java_reads_what_the_dataclasses_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event for event, _ in golden().values()]
    (path,) = generate(events, to="dataclass").write(tmp_path / "gold.py")
    spec = importlib.util.spec_from_file_location("generated_gold", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "generated_gold", module)
    spec.loader.exec_module(module)
    kinds = {descriptor.name: kind for kind, descriptor in module.JAVA_CLASSES.items()}
    written = []
    for event in events:
        value = JavaSerializer().deserialize(event)
        if isinstance(value, JavaObject) and value.class_name in kinds:
            serializer = typed(JavaSerializer(), kinds[value.class_name], java_classes=module.JAVA_CLASSES)
            written.append(serializer.serialize(serializer.deserialize(event)))
    java = JavaValues(tmp_path / "classes", with_sources=generate(events, to="java").write(tmp_path / "source"))
    assert len(written) == 17
    assert all(answer.get("identical") for answer in java.verify(written))
