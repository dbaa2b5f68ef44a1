"""Files of Java, by Avro, Jackson and Univocity: every value is ingested as itself, as its text, or is an error."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Final

import pyspark

from pravega_connector.local.jvm import find_java
from tests.fuzz._tables import COLUMNS
from tests.fuzz.files import FORMATS, Totals, avro_file, check_file
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

_SOURCE: Final = Path(__file__).parent / "java_export" / "FileWriters.java"
_JARS: Final = Path(pyspark.__file__).parent / "jars"
_SECONDS: Final = 120
_ROWS: Final = 40


def test_every_value_is_ingested(tmp_path: Path) -> None:
    rng = random.Random(7)
    written = {}
    for number, (name, column) in enumerate(COLUMNS.items()):
        values = column.values(rng, _ROWS)
        if (data := avro_file(column, values)) is not None:
            (tmp_path / f"{number}.in").write_bytes(data)
            written[number] = name, values
    java = find_java()
    classes = tmp_path / "classes"
    classes.mkdir()
    compile_java(java, [_SOURCE], classes, _JARS)
    command = [str(java.path), "-Xmx256m", *SOON_READY, "-cp", f"{classes}:{_JARS}/*", "FileWriters", str(tmp_path)]
    subprocess.run(command, check=True, timeout=_SECONDS)

    totals = Totals()
    for number, (name, values) in written.items():
        for kind in ("avro", "jsonl", "csv"):
            for form in FORMATS:
                check_file(totals, kind, f"{name} as {form}", tmp_path / f"{number}.{kind}", name, values, form)
    assert not totals.findings
    assert min(totals.equal.values()) > 100 * _ROWS, totals.line()
    assert max(totals.refused.values()) < 20 * _ROWS, totals.line()
