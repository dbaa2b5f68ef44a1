"""The harness of the benchmarks: who runs when, what the ratios are of, and peers that do not behave."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks._alternate import Case, run_case
from benchmarks._cpu import cpu_seconds, tree_cpu_seconds
from benchmarks._drive import Peer, PeerError
from benchmarks._exactly_once import AT_LEAST_ONCE, EXACTLY_ONCE, micro_batch_case
from benchmarks._stats import Result, Runs, as_json, as_table

PROGRAM = """
import sys, time
from benchmarks.peers._serve import Stopwatch, serve

def stop():
    raise SystemExit(3)

serve("1.0", {
    "add": lambda a, b: {"sum": a + b},
    "chat": lambda: print("not an answer") or {},
    "fail": lambda: 1 / 0,
    "hang": lambda: time.sleep(60) or {},
    "stop": stop,
    "time": lambda: Stopwatch().answer(3, 5),
})
"""


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    program = tmp_path / "peer.py"
    program.write_text(PROGRAM)
    with Peer("peer", [sys.executable, str(program)], env={"PYTHONPATH": str(Path(__file__).parents[2])}) as peer:
        yield peer


def test_a_peer_answers_and_its_prints_do_not_mix_in(peer: Peer) -> None:
    assert peer.version == "1.0"
    assert peer.ask("add", a=1, b=2) == {"sum": 3}
    assert peer.ask("chat") == {}
    answer = peer.ask("time")
    assert (answer["events"], answer["bytes"]) == (3, 5)
    assert answer["seconds"] >= 0 <= answer["cpu"]


def test_an_error_of_a_peer_is_told_and_survived(peer: Peer) -> None:
    with pytest.raises(PeerError, match="peer: ZeroDivisionError: division by zero"):
        peer.ask("fail")
    assert peer.ask("add", a=2, b=2) == {"sum": 4}


def test_a_peer_that_hangs_is_left(peer: Peer) -> None:
    with pytest.raises(PeerError, match="did not answer within 0 s"):
        peer.ask("hang", timeout=0.2)


def test_a_peer_that_ends_is_told(peer: Peer) -> None:
    with pytest.raises(PeerError, match="peer has ended"):
        peer.ask("stop")


def test_runs_alternate_and_warm_ups_do_not_count() -> None:
    order = []

    def once(name: str, seconds: float) -> Mapping[str, Any]:
        order.append(name)
        return {"seconds": seconds, "events": 100, "cpu": 0.5}

    peers = {"a": lambda: once("a", 2.0), "b": lambda: once("b", 1.0)}
    result = run_case(Case(name="case", event_size=10, baseline="a", peers=peers), rounds=2, warm_ups=1)
    assert order == ["a", "b"] * 3
    assert result.runs["a"] == Runs([50.0, 50.0], 10, cpu=[0.005, 0.005], server_cpu=[])
    assert result.ratio("b") == (2.0, 2.0, 2.0)


def test_ratios_are_of_the_same_round() -> None:
    runs = {"theirs": Runs([1.0, 10.0, 100.0], 1), "ours": Runs([3.0, 20.0, 100.0], 1)}
    result = Result("case", "theirs", runs, {"ours": 2.0})
    assert result.ratio("ours") == (2.0, 1.0, 3.0)
    assert result.ratio("theirs") is None
    (case,) = as_json([result])
    assert case["peers"]["ours"]["rates"] == [3.0, 20.0, 100.0]


@pytest.mark.parametrize(("rate", "verdict"), [(2e6, "≥ 1.5 yes"), (1e6, "≥ 1.5 NO")])
def test_the_table_says_whether_the_aim_is_met(rate: float, verdict: str) -> None:
    runs = {"theirs": Runs([1e6], 100), "ours": Runs([rate], 100)}
    text = StringIO()
    Console(file=text, width=160).print(as_table([Result("case", "theirs", runs, {"ours": 1.5})], "Title"))
    assert verdict in text.getvalue()
    assert "baseline" in text.getvalue()


def test_micro_batches_are_told_by_their_median_and_what_is_added() -> None:
    taken = {AT_LEAST_ONCE: iter([[900], [100, 120], [110]]), EXACTLY_ONCE: iter([[900], [150, 190], [170]])}

    def once(mode: str) -> Mapping[str, Any]:
        found = next(taken[mode])
        return {"seconds": sum(found) / 1000, "events": 10 * len(found), "batch_ms": found}

    result = micro_batch_case("small", once, rounds=2, warm_ups=1, note=lambda _: None)
    assert result.runs[EXACTLY_ONCE].rates == pytest.approx([20 / 0.34, 10 / 0.17])
    assert result.remarks == (
        "at_least_once: median 110.0 ms (100.0 to 120.0, 3 times) a batch",
        "exactly_once: median 170.0 ms (150.0 to 190.0, 3 times) a batch",
        "exactly once adds 60 ms to the median batch",
    )
    assert as_json([result])[0]["remarks"] == list(result.remarks)


def test_a_missing_baseline_leaves_rates_without_ratios() -> None:
    result = Result("case", "theirs", {"ours": Runs([5.0], 1)}, {"ours": 1.5})
    assert result.ratio("ours") is None


def test_cpu_time_counts_descendants(peer: Peer, eventually: Callable[..., None]) -> None:
    # It is counted in ticks, of which a process that has just begun may have none.
    eventually(lambda: peer.ask("add", a=1, b=2) and peer.cpu_seconds() > 0)
    parts = cpu_seconds(os.getpid()) + peer.cpu_seconds()  # before the whole, which only grows
    assert tree_cpu_seconds(os.getpid()) >= parts
