"""The benchmark of the serializers runs, with Java among its peers."""

import pytest

from benchmarks.serde import _run, _subject
from benchmarks.serde._subject import OURS


@pytest.mark.long
def test_a_quick_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run, "QUICK_COUNT", 40)
    monkeypatch.setattr(_subject, "SHORTEST", 0.001)
    notes: list[str] = []
    results = {result.case: result for result in _run.run_serde(rounds=1, quick=True, only="flat", note=notes.append)}
    assert len(results) == 20
    assert any("fastavro 1" in note and "Java " in note for note in notes)
    columns = results["Avro flat, decode columns"]
    assert columns.baseline in ("pyruhvro", "fastavro, pyarrow")
    assert columns.aims == {OURS: 0.8}
    assert {"Java", "fastavro", OURS, "ours, no extras"} <= results["Avro flat, decode rows"].runs.keys()
    assert results["Java flat objects, decode rows"].baseline == "javaobj-py3"
    assert results["Java flat objects, decode columns"].baseline == "Java"
