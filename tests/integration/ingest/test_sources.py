"""Sources that change, are damaged or forbidden, come late, are many, or are not files."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import BadRecordError, SourceChangedError, SourceUnreadableError, StreamNotFoundError
from pravega_connector.operations.ingest import Chunk, Counts, FileOptions, FileSource, Settings, Sizes, ingest, plan

Write = Callable[..., Path]
Events = Callable[[], list[tuple[int, int]]]
VARIANTS = {"file": Sizes(), "count": Sizes(variant="count", records=7), "length": Sizes(variant="length", bytes=50)}
variants = pytest.mark.parametrize("sizes", VARIANTS.values(), ids=VARIANTS)


def expected(files: int, samples: int = 30) -> list[tuple[int, int]]:
    return [(file, sample) for file in range(files) for sample in range(samples)]


@variants
def test_each_record_once_however_often_it_is_ingested(client, target, folder, write, events, sizes):
    for file in (0, 2):
        write(file)
    (folder / "empty.csv").write_text("file,sample\n")
    (folder / "nothing.csv").write_text("")
    first = ingest(folder, target, client=client, sizes=sizes)
    assert (first.counts.events, first.counts.sources) == (60, 4)
    write(1)  # its name comes before those that are done
    assert plan(folder, target, client=client).pending == [str(folder / "001.csv")]
    assert ingest(folder, target, client=client, sizes=sizes).counts.events == 30
    assert ingest(folder, target, client=client).counts.transactions == 0
    assert events() == expected(3)


def test_variants_continue_after_each_other(client, target, folder, write, events):
    write(0, 100)
    stopped = {"count": 21, "length": 35, "file": 100}
    for variant, most in stopped.items():
        sizes = VARIANTS[variant]

        def tell(_what: str, counts: object, most: int = most) -> None:
            if len(events()) >= most:
                raise KeyboardInterrupt

        try:
            ingest(folder, target, client=client, sizes=sizes, on_progress=tell)
        except KeyboardInterrupt:
            assert variant != "file"
    assert events() == expected(1, 100)


@variants
def test_a_file_that_changes_while_it_is_read(client, target, folder, write, events, sizes):
    path = write(0)

    def tell(_what: str, counts: object) -> None:
        with path.open("a") as file:
            file.write("0,999\n")

    with pytest.raises(SourceChangedError, match=r"000.csv changed while it was read: it has \d+ bytes and had \d+"):
        ingest(folder, target, client=client, sizes=sizes, on_progress=tell)
    assert events() == []
    write(0)
    ingest(folder, target, client=client, sizes=sizes)
    assert events() == expected(1)


def test_a_file_that_shrinks_after_its_first_transaction(client, target, folder, write, events):
    path = write(0)

    def tell(_what: str, counts: Counts) -> None:
        if counts.events > 7:  # these are in the second one
            write(0, 5)

    with pytest.raises(SourceChangedError, match=r"000.csv changed while it was read"):
        ingest(folder, target, client=client, sizes=VARIANTS["count"], on_progress=tell)
    with pytest.raises(SourceChangedError, match=r"000.csv has changed since its first 7 records are in the stream"):
        ingest(folder, target, client=client, sizes=VARIANTS["count"])
    assert len(events()) == 7
    assert path.exists()
    write(0)
    ingest(folder, target, client=client, sizes=VARIANTS["count"])
    assert events() == expected(1)


def test_a_file_that_changes_afterwards(client, target, folder, write, events):
    write(0)
    ingest(folder, target, client=client)
    os.utime(folder / "000.csv", ns=(5, 5))
    assert ingest(folder, target, client=client).counts.transactions == 0
    write(0, 31)
    write(1)
    with pytest.raises(SourceChangedError, match=r"000.csv has changed since it is in the stream"):
        ingest(folder, target, client=client)
    summary = ingest(folder, target, client=client, skip_changed=True)
    assert list(summary.changed) == [str(folder / "000.csv")]
    assert events() == expected(2)


def test_bad_files_can_be_left_out(client, target, folder, write, events):
    for file in range(6):
        write(file)
    rows = pa.table({"file": [7] * 1000, "sample": list(range(1000))})
    pq.write_table(rows, folder / "007.parquet")
    whole = (folder / "007.parquet").read_bytes()
    (folder / "007.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "003.csv").write_text("file,sample\n3,0\n3\n3,2\n")
    packed = gzip.compress(b"file,sample\n" + b"8,0\n" * 100)
    (folder / "008.csv.gz").write_bytes(packed[:-12])
    with pytest.raises(BadRecordError, match=r"003.csv, line 3: Expected 2 columns, got 1"):
        ingest(folder, target, client=client)
    for sizes in (Sizes(), Sizes(files=4)):
        summary = ingest(folder, target, client=client, sizes=sizes, settings=Settings(keep_going=True))
        assert {os.path.basename(id_) for id_ in summary.failed} == {"003.csv", "007.parquet", "008.csv.gz"}
    assert events() == [pair for pair in expected(6) if pair[0] != 3]
    write(3)
    (folder / "007.parquet").write_bytes(whole)
    (folder / "008.csv.gz").unlink()
    ingest(folder, target, client=client)
    assert events() == expected(6) + [(7, sample) for sample in range(1000)]


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user with limited permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read(client, target, write, events):
    paths = [write(0), write(1)]
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        public = Path(name)
        public.chmod(0o755)
        _, forbidden = (Path(shutil.copy(path, public)) for path in paths)
        forbidden.chmod(0)
        with unprivileged(), pytest.raises(SourceUnreadableError, match=r"001.csv cannot be read: permission denied"):
            ingest(public, target, client=client)
        assert events() == expected(1)
        forbidden.chmod(0o644)
        told: list[str] = []
        ingest(public, target, client=client, on_progress=lambda what, _: told.append(what))
    assert events() == expected(2)
    assert not [what for what in told if what.startswith("waiting")], "for a run of this process that has failed"


@variants
def test_bad_records_go_to_dead_letters_once(client, target, folder, tmp_path, events, sizes):
    lines = [f"0,{sample}" if sample % 10 else f"0,{sample},bad" for sample in range(40)]
    (folder / "000.csv").write_text("file,sample\n" + "\n".join(lines) + "\n")
    source = FileSource([folder], FileOptions(reject=True))
    letters = tmp_path / "bad"
    interrupted: list[int] = []

    def tell(_what: str, counts: object) -> None:
        if len(interrupted) < 3:
            interrupted.append(1)
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            ingest(source, target, client=client, sizes=sizes, dead_letters=letters, on_progress=tell)
    summary = ingest(source, target, client=client, sizes=sizes, dead_letters=letters, on_progress=tell)
    assert summary.counts.rejected == 4
    told = [json.loads(line) for path in sorted(letters.iterdir()) for line in path.read_text().splitlines()]
    told.sort(key=lambda letter: letter["record"])
    assert [(letter["record"], letter["line"], letter["text"]) for letter in told] == [
        (record, record + 2, f"0,{record},bad") for record in (0, 10, 20, 30)
    ]
    assert events() == [(0, sample) for sample in range(40) if sample % 10]


def test_many_small_files(client, target, folder, write, events):
    for file in range(600):
        write(file, 2)
    summary = ingest(folder, target, client=client, sizes=Sizes(files=250))
    assert (summary.counts.transactions, summary.counts.sources, summary.counts.events) == (3, 600, 1200)
    assert events() == expected(600, 2)


def test_new_files_are_followed(client, target, folder, write, events):
    class Enough(Exception):
        pass

    write(0)
    later = iter([1, 2])

    def tell(what: str, _counts: object) -> None:
        if what == "waiting for new sources":
            file = next(later, None)
            if file is None:
                raise Enough
            write(file)

    with pytest.raises(Enough):
        ingest(folder, target, client=client, settings=Settings(follow=True), on_progress=tell)
    assert events() == expected(3)


def test_files_still_being_written_are_left_alone(target, folder, write):
    old, new = write(0), write(1)
    os.utime(old, (0, 0))
    assert FileSource([folder], FileOptions(settle=60.0)).ids() == [str(old)]
    assert FileSource([folder]).ids() == [str(old), str(new)]


class Numbers:
    """A source that is not a file: numbered records of numbered tables."""

    def __init__(self) -> None:
        self.schema = pa.schema([("file", pa.int64()), ("sample", pa.int64())])

    def fix(self, schema: pa.Schema) -> None:
        assert schema == self.schema

    def ids(self) -> list[str]:
        return ["table/0", "table/1"]

    def mark(self, id_: str) -> str:
        return "always the same"

    def change(self, id_: str, mark: str) -> None:
        assert mark == "always the same"

    def size(self, id_: str) -> int:
        return 100

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        for first in range(offset, 30, 10):
            count = min(10, 30 - first)
            columns = [pa.array([int(id_[-1])] * count), pa.array(range(first, first + count))]
            yield Chunk(pa.RecordBatch.from_arrays(columns, schema=self.schema), first, count)


@variants
def test_any_source_that_can_be_read_again(client, target, events, sizes):
    ingest(Numbers(), target, client=client, sizes=sizes)
    assert events() == expected(2)


def test_the_stream_must_exist(client, scope, folder, write):
    write(0)
    with pytest.raises(StreamNotFoundError):
        ingest(folder, f"{scope}/nowhere", client=client)
    options = {"allow_create_stream": "true", "default_num_segments": "3", "format": "avro"}
    ingest(folder, f"{scope}/nowhere", client=client, options=options)
    assert len(client.controller.current_segments(client.name(f"{scope}/nowhere"))) == 3
