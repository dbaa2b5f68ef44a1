"""Counts and their ways out: snapshot, OpenTelemetry, Prometheus; no server."""

import gc
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pravega_connector import metrics
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import ConfigError, ConnectionLostError
from pravega_connector.metrics import INSTRUMENTS, PrometheusCollector, export_to_opentelemetry, serve_metrics, snapshot
from pravega_serde.errors import MissingExtraError
from tests.support.measured import fetched, value
from tools.pages import DOCS

LOADED = "import sys\nprint([n for n in ('opentelemetry', 'prometheus_client', 'http.server') if n in sys.modules])"


#: Values of all kinds of instruments.
COUNTING = [
    (metrics.Counter, "add"),
    (metrics.UpDownCounter, "add"),
    (metrics.Outages, "watch"),
    (metrics.Gauge, "set"),
    (metrics.Histogram, "record"),
]


def in_this_thread(count: Callable[..., None]) -> Callable[..., None]:
    here = threading.get_ident()

    def count_here(*given: Any) -> None:
        if threading.get_ident() == here:
            count(*given)

    return count_here


@pytest.fixture(autouse=True)
def _nothing_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start from 0, and count only in the test's thread: the client of another test may still be at work."""
    for kind, name in COUNTING:
        monkeypatch.setattr(kind, name, in_this_thread(getattr(kind, name)))
    for each in INSTRUMENTS.values():
        each.reset()
    yield
    for each in INSTRUMENTS.values():
        each.reset()


class Trouble:
    """An outage that never ends."""

    goes_on = True


TROUBLES = [Trouble() for _ in range(len(INSTRUMENTS))]


def count_everything() -> None:
    """One number for each instrument and set of attributes."""
    for number, each in enumerate(INSTRUMENTS.values(), 1):
        values = [f"{name} of {number}" for name in each.attributes]
        if isinstance(each, metrics.Gauge):
            each.set(number, *values)
        elif isinstance(each, metrics.Histogram):
            each.record(number, *values)
        elif isinstance(each, metrics.Outages):
            for trouble in TROUBLES[:number]:
                each.watch(trouble)
        else:
            each.add(number, *values)


def samples(text: str, skip: str = "") -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The samples of Prometheus's text: (name, labels) -> value."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = frozenset((k, v) for k, v in sample.labels.items() if not re.match(skip or "$.", k))
            found[sample.name, labels] = sample.value
    return found


def test_a_snapshot_has_every_number_and_is_json():
    count_everything()
    found = json.loads(json.dumps(snapshot()))
    assert list(found) == list(INSTRUMENTS)
    for number, (name, points) in enumerate(found.items(), 1):
        (point,) = points
        assert point.get("value", point.get("sum")) == number, name
        assert set(INSTRUMENTS[name].attributes) <= set(point["attributes"])


def test_durations_are_in_the_buckets_of_their_bounds():
    for seconds in (0.005, 0.006, 299.0, 301.0):
        metrics.OPERATION_SECONDS.record(seconds, "flush", "s/x")
    (point,) = snapshot()["messaging.client.operation.duration"]
    buckets = point["buckets"]
    assert [buckets[bound] for bound in ("0.005", "0.01", "60.0", "300.0", "inf")] == [1, 2, 2, 3, 4]
    assert point["count"] == 4
    assert point["sum"] == pytest.approx(600.011)


def test_what_has_no_attributes_exists_before_it_is_counted():
    assert value("pravega.client.retries") == 0
    assert snapshot()["messaging.client.sent.messages"] == []


def test_streams_beyond_the_bound_are_counted_together(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_SERIES", 2)
    for stream in ("s/a", "s/b", "s/c", "s/d", "s/a"):
        metrics.SENT_EVENTS.add(1, stream)
    sent = snapshot()["messaging.client.sent.messages"]
    found = {point["attributes"]["messaging.destination.name"]: point["value"] for point in sent}
    assert found == {"s/a": 2, "s/b": 1, metrics.OTHERS: 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_begins_with_nothing():
    code = (
        "import os; from pravega_connector import metrics\n"
        "metrics.RETRIES.add(5); pid = os.fork()\n"
        "if not pid: os._exit(next(v for _, v in metrics.RETRIES.series()))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), metrics.RETRIES.series())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "0 [((), 5)]\n"


def test_an_outage_is_active_until_it_is_over(monkeypatch):
    monkeypatch.setattr("pravega_connector.core.retry.OUTAGE_AFTER", 0.0)
    attempts = ClusterHealth().attempts(logging.getLogger("pravega_connector.test"), "a call")
    attempts.failed(ConnectionLostError("lost"))
    assert (value("pravega.client.outages"), value("pravega.client.outage.active")) == (1, 1)
    attempts.done()
    assert (value("pravega.client.outages"), value("pravega.client.outage.active")) == (1, 0)
    assert 0 < value("pravega.client.outage.time") < 60
    assert value("pravega.client.retries") == 1


def test_an_outage_ends_with_the_reader_that_was_dropped_in_it(monkeypatch):
    monkeypatch.setattr("pravega_connector.core.retry.OUTAGE_AFTER", 0.0)
    health = ClusterHealth()
    logger = logging.getLogger("pravega_connector.test")
    attempts = health.attempts(logger, "a reader that is not closed")
    attempts.failed(ConnectionLostError("lost"))
    assert value("pravega.client.outage.active") == 1
    reader = {"attempts": attempts}
    reader["itself"] = reader  # as readers refer to themselves
    del attempts, reader
    gc.collect()
    assert value("pravega.client.outage.active") == 0
    again = health.attempts(logger, "another one")
    again.failed(ConnectionLostError("lost"))
    assert (value("pravega.client.outages"), value("pravega.client.outage.active")) == (2, 1)
    del health, again  # the client, too
    assert value("pravega.client.outage.active") == 0


# ---- OpenTelemetry ----


def test_opentelemetry_reads_the_same_numbers():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    export_to_opentelemetry(provider)
    export_to_opentelemetry(provider)  # nothing is counted twice
    count_everything()
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    found = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert set(found) == set(INSTRUMENTS)
    for number, (name, each) in enumerate(INSTRUMENTS.items(), 1):
        (point,) = found[name].data.data_points
        assert (point.sum if each.kind == "histogram" else point.value) == number, name
        assert found[name].unit == each.unit
        ((values, _),) = each.series()
        assert dict(point.attributes) == each.named(values)
        if each.kind == "histogram":
            assert tuple(point.explicit_bounds) == metrics.BOUNDS


def test_the_endpoint_and_the_exporter_of_opentelemetry_name_everything_alike():
    theirs = PrometheusMetricReader(disable_target_info=True)
    provider = MeterProvider([theirs])
    export_to_opentelemetry(provider)
    count_everything()
    registry = CollectorRegistry()
    registry.register(PrometheusCollector())
    ours = samples(generate_latest(registry).decode())
    exported = CollectorRegistry()
    exported.register(theirs._collector)
    # The scope of the meter is a label only of the exporter; so is when a number began.
    expected = samples(generate_latest(exported).decode(), skip="otel_scope_")
    provider.shutdown()
    assert len(ours) > len(INSTRUMENTS)
    assert ours == expected


@pytest.mark.parametrize("imported", ["opentelemetry.metrics", "opentelemetry.trace"])
def test_a_client_exports_where_the_program_has_imported_the_metrics_of_opentelemetry(imported):
    code = (
        f"import {imported}\nfrom pravega_connector import PravegaClient\nPravegaClient('tcp://localhost:1')\n"
        "from pravega_connector import metrics\nprint(len(metrics._exports))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == ("1\n" if imported.endswith("metrics") else "0\n")


def test_a_provider_that_is_set_after_the_client_gets_the_numbers():
    code = (
        "from opentelemetry import metrics as api\nfrom pravega_connector import PravegaClient, metrics\n"
        "PravegaClient('tcp://localhost:1')\nmetrics.RETRIES.add(3)\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "from opentelemetry.sdk.metrics.export import InMemoryMetricReader\n"
        "reader = InMemoryMetricReader()\napi.set_meter_provider(MeterProvider([reader]))\n"
        "metrics.OPERATION_SECONDS.record(0.5, 'flush', 's/x')\n"
        "found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics\n"
        "points = {each.name: each.data.data_points[0] for each in found}\n"
        "print(points['pravega.client.retries'].value, points['messaging.client.operation.duration'].sum)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "3 0.5\n"


def test_a_client_loads_nothing_for_metrics():
    code = f"from pravega_connector import PravegaClient\nPravegaClient('tcp://localhost:1')\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n"


# ---- Prometheus ----


def test_the_endpoint_serves_what_was_counted():
    count_everything()
    with serve_metrics(0) as server:
        assert server.url.startswith("http://127.0.0.1:")
        found = samples(fetched(server.url))
    for number, each in enumerate(INSTRUMENTS.values(), 1):
        name = metrics.prometheus_name(each)
        suffix = {"counter": "_total", "histogram": "_sum"}.get(each.kind, "")
        (got,) = [v for (n, _), v in found.items() if n == name + suffix]
        assert got == number


def test_the_port_is_free_again_when_the_endpoint_is_closed():
    with serve_metrics(0) as server:
        port = server.port
    with serve_metrics(port) as again:
        assert again.port == port


def test_a_port_that_is_taken_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            serve_metrics(port)
    text = f"the metrics cannot be served at 127.0.0.1:{port}: Address already in use; choose another port"
    assert str(caught.value) == f"[PRAVEGA-CONFIG] {text}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((70000,), "invalid port 70000; a port must be a whole number from 0 to 65535"),
        (("9464",), "invalid port '9464'; a port must be a whole number from 0 to 65535"),
        ((0, None), "the host of the metrics must be a name or an address, not None"),
        ((0, "192.0.2.1"), "the metrics cannot be served at 192.0.2.1:0: Cannot assign requested address"),
    ],
)
def test_where_nothing_can_be_served_is_said(arguments, text):
    with pytest.raises(ConfigError, match=re.escape(text)):
        serve_metrics(*arguments)


@pytest.mark.parametrize(
    ("call", "package"), [(serve_metrics, "prometheus_client"), (export_to_opentelemetry, "opentelemetry.metrics")]
)
def test_a_missing_package_is_one_line(call, package, monkeypatch):
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    if package.startswith("opentelemetry"):
        monkeypatch.delattr("opentelemetry.metrics", raising=False)
    with pytest.raises(MissingExtraError, match=r"install it with: pip install 'pravega-serde\[metrics\]'$"):
        call()


def test_nothing_is_declared_that_nobody_counts():
    package = Path(metrics.__file__).parent
    sources = "".join(file.read_text() for file in package.rglob("*.py") if file.name != "metrics.py")
    names = [name for name, each in vars(metrics).items() if isinstance(each, metrics.Instrument)]
    assert len(names) == len(INSTRUMENTS)
    assert [name for name in names if not re.search(rf"\bmetrics\.{name}\b", sources)] == []


# ---- the page and the dashboard ----

DASHBOARD = json.loads((Path(__file__).parents[2] / "dashboards" / "pravega.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
# Labels that Prometheus adds to every sample.
SCRAPED = {"job", "instance"}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_dashboard_asks_for_what_there_is(expression):
    count_everything()
    with serve_metrics(0) as server:
        found = samples(fetched(server.url))
    (name,) = set(re.findall(r"\b(?:messaging|pravega)_\w+(?=\{)", expression))
    labels = [{key for key, _ in of} for (sample, of) in found if sample == name]
    assert labels, f"nothing is called {name}"
    asked = set(re.findall(r"[{,] *(\w+)=", expression))
    for group in re.findall(r"by \(([^)]*)\)", expression):
        asked |= set(group.split(", "))
    assert asked - SCRAPED <= labels[0]


def test_the_dashboard_has_a_panel_for_every_metric_but_what_others_tell():
    shown = " ".join(EXPRESSIONS)
    left = {name for name, each in INSTRUMENTS.items() if metrics.prometheus_name(each) not in shown}
    assert left == {"pravega.client.outage.time"}, "give it a panel, or a line in one, in dashboards/pravega.json"


def test_the_legends_of_the_dashboard_name_labels_that_are_kept():
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, target


ALERTS = Path(__file__).parents[2] / "dashboards" / "alerts.yml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_rule_names_existing_metrics_labels_and_sections(rule):
    count_everything()
    with serve_metrics(0) as server:
        found = samples(fetched(server.url))
    names = set(re.findall(r"\b(?:messaging|pravega)_\w+", rule["expr"]))
    labels = [{key for key, _ in of} for (sample, of) in found if sample in names]
    assert names <= {sample for sample, _ in found}
    shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert shown - SCRAPED <= set().union(*labels)
    page, _, section = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (DOCS.parent / page).read_text(), re.MULTILINE)
    assert not section or section in [re.sub(r"[^\w-]", "", each.lower().replace(" ", "-")) for each in headings]


def test_the_page_lists_every_alert_rule():
    page = (DOCS / "operate/monitoring.md").read_text()
    written = re.findall(r"^\| `(Pravega\w+)` \| `(.+)` \| (\w+) \|", page, re.MULTILINE)
    assert written == [(rule["alert"], rule["expr"], rule.get("for", "0")) for rule in RULES]
