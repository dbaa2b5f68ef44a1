"""Run Pravega, the producer and the Spark job, and check every row of the result.

The expected sums are aggregated without a stream. If all are equal, the program prints "OK" and exits with code 0. If
not, it prints the differences and exits with code 1.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.table import Table

from examples.flights_demo.collect import Sums, last_sums
from examples.flights_demo.flights import expected_delays, load_flights
from pravega_connector import LocalPravega, PravegaClient
from pravega_serde import PravegaError

SOURCE, TARGET = "demo/flights", "demo/delays"
PATIENCE = 300.0  # seconds for each program on a slow machine

console = Console(highlight=False)


@contextmanager
def program(label: str, module: str, *arguments: str, ready: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run one of the programs in the background during the block, and print its lines under a label.

    The block begins when the program has printed a line that contains ``ready``.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::FutureWarning", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    errors: list[str] = []
    begun = threading.Event()

    def show() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            console.print(f"[cyan]{label:>9}[/] {line.rstrip()}")
            if ready in line:
                begun.set()
        begun.set()

    def keep() -> None:
        assert process.stderr is not None
        errors.extend(process.stderr)

    threads = [threading.Thread(target=show), threading.Thread(target=keep)]
    for thread in threads:
        thread.start()
    try:
        begun.wait(PATIENCE)
        yield process
        code = process.wait(PATIENCE)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)
        for thread in threads:
            thread.join()
    if code:
        console.print("".join(errors[-20:]), markup=False)
        raise SystemExit(f"{module} ended with code {code}")


def run(uri: str) -> None:
    """Run the producer and the Spark job in parallel. After the producer has ended, request the end of the job."""
    streams = ("--source", SOURCE, "--target", TARGET)
    with program(
        "spark", "examples.flights_demo.aggregate", "--controller", uri, *streams, ready="query started"
    ) as job:
        with program("producer", "examples.flights_demo.produce", "--controller", uri, "--stream", SOURCE):
            pass
        assert job.stdin is not None
        with suppress(BrokenPipeError):  # the program has ended; its exit code shows the cause
            job.stdin.write("finish\n")
            job.stdin.flush()


def differences(expected: Sums, found: Sums) -> list[str]:
    """Describe each row that is missing, unexpected or different."""
    words = [f"missing: {key} {value}" for key, value in expected.items() if key not in found]
    words += [f"unexpected: {key} {value}" for key, value in found.items() if key not in expected]
    both = expected.keys() & found.keys()
    words += [f"different: {k} is {found[k]} and not {expected[k]}" for k in both if expected[k] != found[k]]
    return words


def chart(sums: Sums) -> Table:
    """Print the average departure delay by hour of the day (approximately New York time) for each airport."""
    table = Table(title="Average departure delay in minutes by scheduled hour (UTC-5)", box=None)
    airports = sorted({origin for origin, _ in sums})
    for heading in ("hour", *airports):
        table.add_column(heading, justify="right" if heading == "hour" else "left")
    by_hour: dict[tuple[str, int], list[int]] = {}
    for (origin, hour), (flights, delay, _) in sums.items():
        cell = by_hour.setdefault((origin, (hour // 3_600_000 - 5) % 24), [0, 0])
        cell[0] += flights
        cell[1] += delay or 0
    for hour in sorted({h for _, h in by_hour}):
        averages = [
            round(total / flights) if flights else None
            for flights, total in (by_hour.get((origin, hour), (0, 0)) for origin in airports)
        ]
        table.add_row(f"{hour:02}", *("" if a is None else f"{'█' * max(0, a // 2)} {a}" for a in averages))
    return table


def main() -> int:
    begin = time.monotonic()
    console.print("starting a Pravega for this demo (the first time, its jars are downloaded)")
    with LocalPravega() as pravega, PravegaClient(pravega.controller_uri) as client:
        console.print(f"Pravega is at {pravega.controller_uri} after {time.monotonic() - begin:.0f} s")
        client.create_stream(SOURCE)
        client.create_stream(TARGET, 2)
        run(pravega.controller_uri)
        started = time.monotonic()
        found, events = last_sums(client, TARGET)
        seconds = time.monotonic() - started
    console.print(f"[cyan]   reader[/] read {events:,} events back; {events / seconds:,.0f} events/s")
    wrong = differences(expected_delays(load_flights()), found)
    console.print(chart(found))
    if wrong:
        console.print(f"[red]DIFFERENT[/] in {len(wrong)} of {len(found)} rows, for example:")
        console.print("\n".join(wrong[:5]), markup=False)
        return 1
    console.print(f"[green]OK[/] all {len(found):,} sums are right; {time.monotonic() - begin:.0f} s in all")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("stopped")
        sys.exit(130)
    except PravegaError as error:
        console.print(str(error), markup=False, style="red")
        sys.exit(1)
