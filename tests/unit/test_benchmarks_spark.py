"""The rows of the Spark benchmark: their events, the file that keeps what was measured, and what is made of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from benchmarks import _spark_results
from benchmarks._spark import SparkPlan, run_spark
from benchmarks._spark_data import KINDS, Place
from benchmarks._spark_nothing import feed, prepare, unfeed
from benchmarks._spark_results import Measured, Results, document
from benchmarks._spark_rows import FAR, JVM, NEAR, NOTHING, PLAIN, ROWS, Row, Work
from benchmarks._stats import Result, Runs
from benchmarks.peers.nothing import NothingDataSource
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.testing import InProcessPravega
from pravega_serde.format_table import FORMATS

BEGIN = "<!-- generated spark: by ./run bench spark --document -->"
END = "<!-- end of generated -->"
BOTH = {"Scala connector", "ours"}
SVG = "{http://www.w3.org/2000/svg}"
EVENTS = 30_000


def measured(
    row: Row, theirs: Sequence[float], ours: Sequence[float], nothing: Sequence[float] | None = None
) -> Measured:
    """A result; without the side that does nothing it is one of an earlier run."""
    theirs_cpu = {} if nothing is None else {"cpu": (0.3,), "server_cpu": (0.2,)}
    runs = {
        "Scala connector": Runs(theirs, 100, **theirs_cpu),
        "ours": Runs(ours, 100, cpu=(0.4,), server_cpu=(0.1,)),
    }
    if nothing is not None:
        runs |= {NOTHING: Runs(nothing, 100, cpu=(0.15,))}
    result = Result(row.name, "Scala connector", runs, {"ours": 1.5}, ("a remark",))
    return Measured.now(row, result, len(ours), {"ours": "spark 4"}, {"rows": row.events, "hash": "1"}, 3.0, 0.5)


def row(name: str) -> Row:
    return next(each for each in ROWS if each.name == name)


def test_each_row_has_a_name_of_its_own_and_events_that_there_are() -> None:
    assert len({each.name for each in ROWS}) == len(ROWS)
    assert {each.kind for each in ROWS} == set(KINDS)
    assert {each.work for each in ROWS} == set(Work)


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("registry")])
def test_events_of_a_kind_are_as_hard_as_they_are_said_to_be(name: str, tmp_path: Path) -> None:
    kind = KINDS[name](Place(tmp_path, "", ""))
    assert len(set(kind.events)) > 1000
    assert kind.events == KINDS[name](Place(tmp_path, "", "")).events
    assert kind.size == round(sum(map(len, kind.events)) / len(kind.events))
    assert kind.ours.get("format", "bytes") in FORMATS
    if "JSON" in name:
        assert 0.6 < sum(b'"note"' in event for event in kind.events) / len(kind.events) < 1
        assert 0.03 < sum(not event.startswith(b'{"id"') for event in kind.events) / len(kind.events) < 0.2
    if "nested" in name:
        sizes = sorted(map(len, kind.events))
        assert sizes[-1] > 20 * sizes[len(sizes) // 2]


def test_a_row_is_kept_with_every_rate(tmp_path: Path) -> None:
    file = tmp_path / "new" / "spark.json"
    first = row("decode flat Avro")
    known = measured(first, [1.0, 2.0], [3.0, 5.0])
    Results(file).keep(first, known)
    again = Results(file)
    again.keep(row(NEAR), measured(row(NEAR), [1.0], [1.0]))
    for results in (again, Results(file)):
        found = results.get(first, 2, BOTH)
        assert found is not None
        assert json.dumps(found.as_json()) == json.dumps(known.as_json())
        assert found.result.ratio("ours") == (2.75, 2.5, 3.0)


def test_a_row_with_fewer_events_or_rounds_or_sides_does_not_count(tmp_path: Path) -> None:
    results, first = Results(tmp_path / "spark.json"), row("decode flat Avro")
    results.keep(first, measured(first, [1.0, 2.0], [3.0, 5.0]))
    assert results.get(first, 1, {"ours"})
    assert results.get(first, 3, BOTH) is None
    assert results.get(replace(first, events=10), 2, BOTH) is None
    assert results.get(first, 2, {*BOTH, NOTHING}) is None
    results.keep(first, measured(first, [1.0, 2.0], [3.0, 5.0], [6.0, 10.0]))
    assert results.get(first, 2, {*BOTH, NOTHING})
    own = row("own batch write, exactly once")
    results.keep(own, measured(own, [1.0], [1.0]))
    assert results.get(own, 1, {*BOTH, NOTHING})


def test_what_is_kept_is_not_measured_again(tmp_path: Path) -> None:
    plan = SparkPlan(results=tmp_path / "spark.json", rounds=2, only="decode flat")
    results, notes = Results(plan.results), list[str]()
    for each in plan.rows():
        results.keep(each, measured(each, [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]))
    found = [result.case for result in run_spark(None, plan, notes.append)]  # would take minutes, and servers
    assert found == ["decode flat Avro", "decode flat Protobuf", "decode flat JSON"]
    assert sum("measured already" in note for note in notes) == 3


def test_small_rows_are_small() -> None:
    rows = SparkPlan(results=Path("none"), rounds=1, most_events=1000).rows()
    assert len(rows) == len(ROWS)
    assert max(each.events for each in rows) == 1000
    assert max(each.events for each in rows if each.work is Work.LATENCY) < 10


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the pages and plots that are written: page, plot, guide, guide-plot."""
    for name in ("page", "guide"):
        (tmp_path / name).write_text(f"before\n{BEGIN}\nold\n{END}\nx")
    for constant in ("_PAGE", "_PLOT", "_GUIDE", "_GUIDE_PLOT"):
        monkeypatch.setattr(_spark_results, constant, tmp_path / constant[1:].lower().replace("_", "-"))
    return tmp_path


def test_the_page_gets_a_table_and_a_plot(tmp_path: Path, docs: Path) -> None:
    results = Results(tmp_path / "spark.json")
    with pytest.raises(ValueError, match="nothing is measured"):
        document(results)
    # 4 M in 4 s and in 2 s, 16 M in 10 s and in 5 s.
    results.keep(row(NEAR), measured(row(NEAR), [1e6, 1e6], [2e6, 2e6]))
    results.keep(row(FAR), measured(row(FAR), [1.6e6, 1.6e6], [3.2e6, 3.2e6]))
    batches = row("micro-batch, 1 segment, exactly once")
    results.keep(batches, measured(batches, [4.0, 4.0], [4.0, 8.0]))
    document(results)
    text = (docs / "page").read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nx")
    assert "old" not in text
    assert f"| {NEAR} | 1.00 M/s | 2.00 M/s | 2.00 (2.00–2.00) | ≥ 1.2 |  |  | 500000.00 µs |" in text
    assert "| AvailableNow, 16 M less 4 M | 2.00 M/s | 4.00 M/s | 2.00 (2.00–2.00) | ≥ 1.4 |  |  |  |" in text
    assert (
        "| micro-batch, 1 segment, exactly once | 250 ms | 167 ms | 1.50 (1.00–2.00) | ≥ 1.7, missed |  |  | 500 ms |"
        in text
    )
    drawn = ElementTree.parse(docs / "plot").getroot()
    assert len(drawn.findall(f"{SVG}circle")) == 4
    assert not drawn.findall(f"{SVG}path[@class='bound']")


def test_what_does_nothing_stands_beside_the_aim(tmp_path: Path, docs: Path) -> None:
    results = Results(tmp_path / "spark.json")
    # 4 M in 4, 4 and 2 s, 16 M in 10, 10 and 4 s.
    results.keep(row(NEAR), measured(row(NEAR), [1e6, 1e6], [1e6, 1e6], [2e6, 2e6]))
    results.keep(row(FAR), measured(row(FAR), [1.6e6, 1.6e6], [1.6e6, 1.6e6], [4e6, 4e6]))
    in_reach, beyond, served = row("read 100 B, event alone"), row("decode nested Avro"), row("decode flat Protobuf")
    results.keep(in_reach, measured(in_reach, [1.0, 1.0], [1.0, 1.0], [4.0, 2.0]))
    results.keep(beyond, measured(beyond, [1.0, 1.0], [1.0, 1.0], [1.9, 1.8]))
    results.keep(served, measured(served, [1.0, 1.0], [1.0, 1.0], [9.0, 9.0]))
    document(Results(tmp_path / "spark.json"))
    text = (docs / "page").read_text()
    cpu = "500000.00 µs, 500000.00 µs, 150000.00 µs"
    assert f"| 1.00 (1.00–1.00) | ≥ 1.3, missed | 3.00 | 2.00 | {cpu} |" in text
    assert f"| 1.00 (1.00–1.00) | ≥ 2, missed, out of reach | 1.85 | 2.00 | {cpu} |" in text
    assert f"| 1.00 (1.00–1.00) | ≥ 2.4, missed, out of reach | 9.00 | 2.00 | {cpu} |" in text
    assert (
        "| AvailableNow, 16 M less 4 M | 2.00 M/s | 2.00 M/s | 1.00 (1.00–1.00) | ≥ 1.4, missed | 3.00 |  |  |" in text
    )
    assert len(ElementTree.parse(docs / "plot").getroot().findall(f"{SVG}path[@class='bound']")) == 6


def test_the_reader_in_the_jvm_and_a_plain_session_have_lines_and_the_guide_columns(tmp_path: Path, docs: Path) -> None:
    results, both, decoded = Results(tmp_path / "spark.json"), row("read 1 KiB, event alone"), row("decode flat Avro")
    known = measured(both, [1e6, 1e6], [8e5, 8e5], [3e6, 3e6])
    runs = known.result.runs | {
        JVM: Runs([2e6, 3e6], 100, cpu=(0.2,)),
        PLAIN: Runs([7e5, 7e5], 100, cpu=(0.6,)),
    }
    results.keep(both, replace(known, result=replace(known.result, runs=runs)))
    results.keep(decoded, measured(decoded, [1e6], [2e6]))
    document(results)
    lines = (docs / "page").read_text().splitlines()
    (line,) = [line for line in lines if "in the JVM" in line]
    assert line == (
        "| read 1 KiB, event alone, in the JVM | 1.00 M/s | 2.50 M/s | 2.50 (2.00–3.00) | ≥ 1.6 |  |  "
        "| 500000.00 µs, 200000.00 µs |"
    )
    (line,) = [line for line in lines if "event alone, plain" in line]
    assert line == (
        "| read 1 KiB, event alone, plain | 1.00 M/s | 700 k/s | 0.70 (0.70–0.70) |  |  |  "
        "| 500000.00 µs, 600000.00 µs |"
    )
    guide = (docs / "guide").read_text()
    assert "| read 1 KiB, event alone | 0.70 | 0.80 | 2.50 |\n| decode flat Avro |  | 2.00 |  |" in guide
    assert len(ElementTree.parse(docs / "guide-plot").getroot().findall(f"{SVG}circle")) == 4


def test_a_difference_that_noise_hides_is_said_to_be_hidden(tmp_path: Path, docs: Path) -> None:
    results = Results(tmp_path / "spark.json")
    results.keep(row(NEAR), measured(row(NEAR), [1e6, 1e6], [2e6, 1e5]))
    results.keep(row(FAR), measured(row(FAR), [1.6e6, 1.6e6], [3.2e6, 3.2e6]))
    document(results)
    assert "16 M less 4 M: in some round the larger query took no longer" in (docs / "page").read_text()


# ---- the side that does nothing --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Options of the source that does nothing, for twice the events of a stream of two segments."""
    folder = tmp_path_factory.mktemp("nothing") / "rows"
    schema = StructType([StructField("event", BinaryType(), False)]).jsonValue()
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        stream = StreamName("bench", "nothing")
        client.create_stream(stream, 2)
        with client.writer(stream) as writer:
            events = pa.array([b"%0100d" % number for number in range(EVENTS)])
            writer.write_column(events, pa.array([str(number) for number in range(EVENTS)]))
            writer.flush()
        options = {"controller": pravega.uri, "scope": "bench", "stream": "nothing", "columns": "event"}
        return prepare(folder, options, schema, 2 * EVENTS + 1)


def test_as_many_rows_as_are_wanted_come_in_batches_and_tasks_as_ours(prepared: dict[str, str]) -> None:
    source = NothingDataSource(prepared)
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    assert len(partitions) == int(prepared["tasks"]) == 2
    batches = [list(reader.read(partition)) for partition in partitions]
    counts = [sum(batch.num_rows for batch in of_task) for of_task in batches]
    assert sum(counts) == 2 * EVENTS + 1
    assert max(counts) - min(counts) == 1
    assert {batch.schema.names[0] for batch in itertools.chain(*batches)} == {"event"}
    # The first task of ours has one segment, so a part of the events, in mebibytes.
    assert batches[0][0].num_rows > 4_000
    assert set(batches[0][0].column(0).to_pylist()) <= {b"%0100d" % number for number in range(EVENTS)}


def test_a_query_has_the_rows_whenever_it_is_fed(prepared: dict[str, str]) -> None:
    folder = Path(prepared["folder"])
    source = NothingDataSource(prepared)
    unfeed(folder)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    assert reader.latestOffset(start, None) == start
    assert not reader.partitions(start, start)
    feed(folder)
    feed(folder)
    end = reader.latestOffset(start, None)
    rows = [sum(batch.num_rows for batch in reader.read(part)) for part in reader.partitions(start, end)]
    assert sum(rows) == 2 * (2 * EVENTS + 1)
    reader.prepareForTriggerAvailableNow()
    feed(folder)
    assert reader.latestOffset(end, None) == end


@pytest.mark.parametrize("streaming", [False, True])
def test_a_sink_that_lost_rows_says_so(streaming: bool) -> None:
    source, schema = NothingDataSource({"rows": "5"}), StructType()
    writer = source.streamWriter(schema, False) if streaming else source.writer(schema, False)
    batch = pa.record_batch({"event": [b"a", b"b"]})
    messages = [writer.write(iter([batch, batch])), None, writer.write(iter([batch.slice(1)]))]
    more = (7,) if streaming else ()
    writer.commit(messages, *more)
    with pytest.raises(ValueError, match="4 rows of 5"):
        writer.commit(messages[:2], *more)
