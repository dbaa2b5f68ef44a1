"""The examples, run as the programs that they are."""

import json
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from examples import event_counter, kill_and_restart
from examples.alerts import orders, raise_alerts, show_alerts
from examples.invoices import write_invoices
from examples.word_count import count_words, text_writer
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.operations.cli.root import command_line
from pravega_connector.wire import StreamName
from pravega_serde import JavaSerializer
from pravega_serde.registry import deserializer
from tests.interop._javac import compile_java

LOGBACK = Path(__file__).parents[2] / "interop" / "java" / "logback.xml"
START = datetime(2026, 11, 21, 12, 0, 3, tzinfo=UTC)
LINES = ["To be, or not to be", "that is the question:", "", "Whether 'tis nobler", "ЖИТЬ, жить — be"] * 8


def clock(step: float) -> Iterator[datetime]:
    return (START + timedelta(seconds=step * i) for i in range(1_000_000))


def expected(step: float) -> Counter[tuple[str, str]]:
    """(start of the window, word) -> count, worked out without any stream."""
    counts: Counter[tuple[str, str]] = Counter()
    for at, line in zip(clock(step), LINES, strict=False):
        window = at - timedelta(seconds=at.second % 10, microseconds=at.microsecond)
        words = line.lower().replace(",", "").replace(":", "").replace("—", "").split()
        counts.update((window.isoformat(timespec="seconds"), word) for word in words)
    return counts


def counted(client: PravegaClient, stream: StreamName) -> list[tuple[str, str, int]]:
    rows = [json.loads(event) for event in client.read(stream)]
    return [(datetime.fromisoformat(r["start"]).isoformat(timespec="seconds"), r["word"], r["count"]) for r in rows]


@pytest.mark.long
@pytest.mark.usefixtures("restored")
def test_words_are_counted_once_for_each_window(spark, config, client, stream_name, checkpoint):
    target = StreamName(stream_name.scope, "counts")
    client.create_stream(stream_name, 3)
    arguments = ["--controller", config.controller, "--source", str(stream_name), "--target", str(target),
                 "--checkpoint", checkpoint, "--once"]  # fmt: skip
    half = len(LINES) // 2
    times = clock(1.7)
    # Run, stopped and run again: the windows that were open continue.
    for lines in (LINES[:half], LINES[half:]):
        text_writer.write_lines(client, str(stream_name), [line + "\n" for line in lines], lambda: next(times))
        count_words.main(arguments)
    # A line of later lets go of the last windows.
    text_writer.write_lines(client, str(stream_name), [""], lambda: START + timedelta(hours=1))
    count_words.main(arguments)
    found = counted(client, target)
    assert {(start, word): count for start, word, count in found} == expected(1.7)
    assert len(found) == len(expected(1.7))


@pytest.mark.long
@pytest.mark.usefixtures("restored")
def test_counts_are_shown(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName,
    capfd: pytest.CaptureFixture[str], tmp_path: Path,
):  # fmt: skip
    client.create_stream(stream_name)
    text_writer.write_lines(client, str(stream_name), LINES, lambda: START)
    count_words.main(["--controller", config.controller, "--source", str(stream_name), "--once"])
    shown = capfd.readouterr().out
    assert "|2026-11-21 12:00:00|2026-11-21 12:00:10|be      |24   |" in shown
    with pytest.raises(SystemExit):
        count_words.main(["--controller", config.controller, "--source", str(stream_name), "--target", "a/b"])


def test_lines_of_a_socket_become_events(config, client, stream_name, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("\n".join([*LINES, "no line end"]).encode() + b" \xff")

        serving = threading.Thread(target=serve)
        serving.start()
        port = str(server.getsockname()[1])
        before = datetime.now(UTC)
        text_writer.main(["--controller", config.controller, "--stream", str(stream_name), "--host", "127.0.0.1",
                          "--port", port])  # fmt: skip
        serving.join()
    assert f"{len(LINES) + 1} lines written to {stream_name}" in capsys.readouterr().out
    events = [json.loads(event) for event in client.read(stream_name)]
    assert Counter(event["line"] for event in events) == Counter([*LINES, "no line end \ufffd"])
    assert all(before <= datetime.fromisoformat(event["at"]) <= datetime.now(UTC) for event in events)


@pytest.mark.usefixtures("restored")
def test_counts_of_java_strings_continue_after_a_restart(spark, config, client, stream_name, checkpoint, capsys):
    arguments = ["--controller", config.controller, "--stream", str(stream_name), "--checkpoint", checkpoint, "--once"]
    client.create_stream(stream_name, 2)
    for texts in (["left", "right", "left"], ["left", "жест", "right"]):
        with client.writer(stream_name, JavaSerializer()) as writer:
            for text in texts:
                writer.write(text, routing_key=text)
        event_counter.main(arguments)
    counts = [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("batch ")]
    assert counts == ["left 2", "right 1", "left 3", "right 2", "жест 1"]


@pytest.mark.long
def test_a_killed_query_resumes(config, stream_name, checkpoint):
    target = f"{stream_name}-served"
    assert kill_and_restart.kill_and_restart(config.controller, str(stream_name), target, checkpoint)


@pytest.mark.long  # tests/interop has Java and Spark
@pytest.mark.usefixtures("restored")
def test_a_java_service_reads_invoices_of_its_orders(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName, checkpoint: str,
    tmp_path: Path,
):  # fmt: skip
    target = StreamName(stream_name.scope, f"{stream_name.stream}-invoices")
    sources = Path(write_invoices.__file__).parent.glob("src/main/java/**/*.java")
    compile_java(find_java(), sources, tmp_path, pravega_jars())

    def service(do: str, stream: StreamName, count: int) -> list[str]:
        # The controller's jar is among the server's: its logging would write a file below the current folder.
        logging = f"-Dlogback.configurationFile={LOGBACK}"
        command = [find_java().path, logging, "-cp", f"{tmp_path}:{pravega_jars()}/*"]
        arguments = ["com.example.orders.OrderService", do, config.controller, stream.scope, stream.stream, str(count)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.splitlines()

    query = ["--controller", config.controller, "--source", str(stream_name), "--target", str(target),
             "--checkpoint", checkpoint, "--once"]  # fmt: skip
    assert service("orders", stream_name, 40)[-1].startswith("40 orders written")
    write_invoices.main(query)
    write_invoices.main(query)  # nothing is left to do
    found = [json.loads(line) for line in service("invoices", target, 30) if line.startswith("{")]
    assert sorted(found, key=lambda invoice: invoice["id"]) == [
        {"id": i, "customer": f"customer {i % 5}", "amount": sum(n * (2.5 + i) for n in range(1, i % 3 + 2))}
        for i in range(40)
        if i % 4 != 3
    ]
    assert len(list(client.read(target))) == 30


@pytest.mark.long
@pytest.mark.usefixtures("restored")
def test_each_alert_comes_once(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, registry: str, stream_name: StreamName,
    checkpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    target = StreamName(stream_name.scope, f"{stream_name.stream}-alerts")
    customers = str(tmp_path / "customers.parquet")
    place = ["--controller", config.controller, "--registry", registry]
    query = [*place, "--source", str(stream_name), "--target", str(target), "--customers", customers,
             "--checkpoint", checkpoint, "--once"]  # fmt: skip

    def lag() -> int:
        """Exit code of the alarm."""
        arguments = ["lag", checkpoint, "--controller", config.controller, "--max-bytes", "1000"]
        return CliRunner().invoke(command_line, arguments).exit_code

    orders.main([*place, "--stream", str(stream_name), "--count", "1500", "--customers", customers])
    raise_alerts.main(query)
    assert lag() == 0
    # As if the query had been killed before Spark took down that the last batch is done: it is repeated.
    last = max((Path(checkpoint) / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()
    orders.main([*place, "--stream", str(stream_name), "--first", "1500", "--count", "500"])
    assert lag() == 5
    raise_alerts.main(query)
    assert lag() == 0

    credit = dict(zip(*(orders.customers()[name].to_pylist() for name in ("customer_id", "credit")), strict=True))
    too_much = [order for order in islice(orders.orders(), 2000) if order.amount > credit[order.customer_id]]
    assert len(too_much) > 100
    alerts = client.read_columns(target, deserializer(registry, group=target.stream))  # noqa: F841 - named in the SQL
    ((count, total),) = duckdb.sql("SELECT count(DISTINCT order_id), sum(amount) FROM alerts").fetchall()
    assert (count, total) == (len(too_much), sum(order.amount for order in too_much))

    capsys.readouterr()
    show = [*place, "--stream", str(target), "--start", "earliest", "--limit", str(len(too_much))]
    for mode in ([], ["--asyncio"]):
        show_alerts.main([*show, *mode])
        shown = capsys.readouterr().out.splitlines()
        assert sorted(line.split()[1] for line in shown) == sorted(order.order_id for order in too_much)
