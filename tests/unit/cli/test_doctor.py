"""``pravega-serde doctor``: what it finds, what to do about it, and what it does not touch."""

import base64
import json
import shutil
import socket
import ssl
import sys
import threading
import time
from collections import namedtuple
from contextlib import closing
from importlib import metadata

import pytest
import trustme
from click.testing import CliRunner

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.operations.cli import doctor_spark
from pravega_connector.operations.cli.root import command_line
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_connector.testing.controller_service import Controller


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Only the profile and the server of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("PRAVEGA_PROFILE", "PRAVEGA_SCOPE", "PRAVEGA_CONTROLLER_URI", "PRAVEGA_REGISTRY_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster():
    with InProcessPravega() as pravega:
        with pravega.client() as client:
            client.create_scope("shop")
            client.create_stream("shop/orders", 3)
        yield pravega


@pytest.fixture
def advertised(monkeypatch):
    """Set the addresses that the controller returns, by the number of the segment."""
    usual = Controller._getURI

    def advertise(*endpoints):
        def uri(controller, request):
            endpoint = endpoints[request.segmentId % len(endpoints)]
            return (
                usual(controller, request) if endpoint is None else pb.NodeUri(endpoint=endpoint[0], port=endpoint[1])
            )

        monkeypatch.setattr(Controller, "_getURI", uri)

    return advertise


def examine(*args):
    result = CliRunner().invoke(command_line, ["doctor", "--json", "--timeout", "6", *args])
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["ok"] is (result.exit_code == 0)
    assert all(bool(each["remedy"]) is (each["status"] != "ok") for each in found["checks"])
    return result.exit_code, found["checks"]


def of(checks, check):
    return [(each["subject"], each["status"]) for each in checks if each["check"] == check]


def only(checks, status):
    (found,) = [each for each in checks if each["status"] == status]
    return found


def free_port():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def test_a_healthy_cluster(cluster):
    with InProcessRegistry() as registry:
        code, checks = examine("--controller", cluster.uri, "--registry", registry.uri)
        assert code == 0
        assert {each["check"] for each in checks} == {
            *("python", "packages", "java", "free space", "controller", "segment store", "registry", "clock")
        }
        assert of(checks, "segment store") == [("{}:{}".format(*cluster.store.endpoint), "ok")]
        assert of(checks, "registry") == [(registry.uri, "ok")]
        packages = next(each for each in checks if each["check"] == "packages")
        assert packages["values"]["grpcio"] == metadata.version("grpcio")


def test_lines_without_json(cluster):
    result = CliRunner().invoke(command_line, ["doctor", "--controller", cluster.uri])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"ok       python: Python {sys.version.split()[0]}")
    assert lines[-1] == "          remedy: pass --registry URI to check a registry"
    assert lines[-2].startswith("skipped  registry: ")


def test_each_store_that_the_controller_returns_is_connected_to(advertised, cluster):
    closed = ("127.0.0.2", free_port())
    unknown = ("pravega-segment-store-1.invalid", 12345)
    advertised(None, closed, None, unknown)
    code, checks = examine("--controller", cluster.uri)
    assert code == 8
    found = of(checks, "segment store")
    assert sorted(found) == sorted(
        [
            ("{}:{}".format(*cluster.store.endpoint), "ok"),
            (f"127.0.0.2:{closed[1]}", "failed"),
            ("pravega-segment-store-1.invalid:12345", "failed"),
        ]
    )
    for each in checks:
        if each["status"] == "failed":
            assert each["detail"].startswith("[PRAVEGA-CONNECTION-LOST] no connection to the segment store")
            assert "pravegaservice.service.published.host.nameOrIp" in each["remedy"]
            assert each["subject"] in each["remedy"]


def test_a_store_without_current_segments_is_found_too(advertised, cluster):
    advertised(*[None] * 20, ("127.0.0.2", free_port()))  # the stream has segments 0 to 2
    _, checks = examine("--controller", cluster.uri)
    assert [status for _, status in of(checks, "segment store")] == ["ok", "failed"]


def test_a_store_that_accepts_and_says_nothing(advertised, cluster):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        advertised(silent.getsockname())
        code, checks = examine("--controller", cluster.uri, "--timeout", "4")  # on a busy machine, calls take seconds
    assert code == 8
    assert only(checks, "failed")["check"] == "segment store"


def test_nothing_is_created(cluster):
    with cluster.client() as client:
        before = client.scopes(), list(client.streams("shop"))
    earlier = dict(cluster.controller.calls)
    examine("--controller", cluster.uri)
    with cluster.client() as client:
        assert (client.scopes(), list(client.streams("shop"))) == before
    made = {name for name, count in cluster.controller.calls.items() if count != earlier.get(name, 0)}
    assert made <= {
        *("listScopes", "listStreamsInScope", "getCurrentSegments", "getURI", "getDelegationToken"),
        "listStreamsInScopeForTag",
    }


def test_no_controller():
    code, checks = examine("--controller", f"tcp://127.0.0.1:{free_port()}")
    assert code == 8
    assert "nothing listens at this port" in only(checks, "failed")["remedy"]
    assert ("", "skipped") in of(checks, "segment store")


def test_each_controller_is_checked(cluster):
    code, checks = examine("--controller", f"{cluster.uri},127.0.0.1:{free_port()}")
    assert code == 8
    assert [status for _, status in of(checks, "controller")] == ["ok", "failed"]
    assert [status for _, status in of(checks, "segment store")] == ["ok"]


def test_a_stream_that_does_not_exist(cluster):
    code, checks = examine("--controller", cluster.uri, "--stream", "shop/order")
    assert code == 4
    assert "[PRAVEGA-STREAM-NOT-FOUND]" in only(checks, "failed")["detail"]


def test_refused_credentials_are_not_printed(monkeypatch):
    monkeypatch.setenv("pravega_client_auth_method", "Basic")
    secret = base64.b64encode(b"ann:s3cr3t-word").decode()
    monkeypatch.setenv("pravega_client_auth_token", secret)
    with InProcessPravega(accepts=lambda header: header == "Basic other") as pravega:
        result = CliRunner().invoke(command_line, ["doctor", "--controller", pravega.uri])
    assert result.exit_code == 1
    assert "[PRAVEGA-AUTHENTICATION]" in result.stdout
    assert "remedy: check the user, the password or the token" in result.stdout
    assert secret not in result.output
    assert "s3cr3t" not in result.output


def test_tls_to_a_controller_without_it(cluster):
    code, checks = examine("--controller", cluster.uri.replace("tcp", "tls"))
    assert code == 1
    where = cluster.uri.partition("://")[2]
    assert only(checks, "failed")["remedy"] == f"the server does not use TLS: use tcp://{where}"


def test_a_store_that_requires_tls(advertised, cluster):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            try:
                context.wrap_socket(peer, server_side=True).close()
            except OSError:
                peer.close()

    server = threading.Thread(target=serve)
    server.start()
    try:
        advertised(listener.getsockname())
        _, checks = examine("--controller", cluster.uri)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.join()
    assert only(checks, "failed")["remedy"] == "the server requires TLS: set tls_to_stores to true"


def test_a_clock_that_differs(cluster, monkeypatch):
    claims = base64.urlsafe_b64encode(json.dumps({"iat": time.time() + 3600, "exp": time.time() + 9999}).encode())
    token = f"header.{claims.decode()}.signature"
    monkeypatch.setattr(Controller, "_getDelegationToken", lambda *_: pb.DelegationToken(delegationToken=token))
    code, checks = examine("--controller", cluster.uri)
    assert code == 0
    found = only(checks, "warning")
    assert (found["check"], found["subject"]) == ("clock", "controller")
    assert 3590 < found["values"]["seconds_ahead"] < 3610


def test_a_registry_that_is_down(cluster):
    uri = f"http://127.0.0.1:{free_port()}"
    code, checks = examine("--controller", cluster.uri, "--registry", uri)
    assert code == 8
    assert only(checks, "failed")["subject"] == uri


def test_a_registry_that_answers_byte_by_byte_has_a_deadline(cluster):
    ended = threading.Event()

    def drip(listener):
        with listener.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not ended.wait(0.1):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        try:
            uri = f"confluent+http://127.0.0.1:{listener.getsockname()[1]}"
            code, checks = examine("--controller", cluster.uri, "--registry", uri, "--timeout", "2")
            assert thread.is_alive()
        finally:
            ended.set()
            thread.join()
    assert code == 1
    failed = {each["check"]: each["detail"] for each in checks if each["status"] == "failed"}  # others, under load
    assert failed["registry"] == "did not answer completely within 6 s"


def test_a_package_outside_its_bounds(cluster, monkeypatch):
    usual = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "3.5.9" if name == "pyspark" else usual(name))
    code, checks = examine("--controller", cluster.uri)
    assert code == 1
    found = only(checks, "failed")
    assert found["detail"].startswith("pyspark 3.5.9 is installed, pravega-serde requires ")
    assert found["remedy"] == "run pip install --upgrade 'pravega-serde[spark]'"


@pytest.mark.parametrize(("free", "code", "status"), [(1 << 20, 8, "failed"), (500 << 20, 0, "warning")])
def test_free_space(cluster, monkeypatch, free, code, status):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(free))
    found_code, checks = examine("--controller", cluster.uri)
    assert found_code == code
    assert only(checks, status)["check"] == "free space"
    assert "TMPDIR" in only(checks, status)["remedy"]


def test_a_spark_that_does_not_start_in_time(cluster, monkeypatch, tmp_path):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(doctor_spark.sys, "executable", str(slow))
    code, checks = examine("--controller", cluster.uri, "--spark", "--spark-timeout", "0.2")
    assert code == 8
    assert "did not complete within 0.2 s" in only(checks, "failed")["detail"]


def report(**changes):
    """Data of a Spark session with one executor, changed by its fields."""
    now = time.time()
    versions = {"pravega-serde": "0.1.0", "pyarrow": "26.0.1", "click": "8.5.1"}
    executor = {
        "host": "worker",
        "python": "/usr/bin/python3",
        "python_version": "3.11.7",
        "versions": versions,
        "time": now,
        "folder": "/tmp",
        "free": 1 << 40,
        "unreachable": [],
        "missing": [],
    }
    return {
        "version": "4.3.0",
        "master": "spark://a:7077",
        "java": "17.0.15",
        "driver": "/venv/python",
        "found": True,
        "versions": versions,
        "began": now - 1,
        "ended": now + 1,
        "executors": [executor | changes],
    }


@pytest.mark.parametrize(
    ("changes", "check", "status", "words"),
    [
        ({"versions": {"pyarrow": "26.0.1"}}, "executor", "failed", "pravega-serde missing (driver 0.1.0)"),
        ({"versions": {"pravega-serde": "0.1.0", "pyarrow": "20"}}, "executor", "warning", "pyarrow 20"),
        (
            {"unreachable": [["store-0", 12345, "refused"]]},
            "executor",
            "failed",
            "no connection to store-0:12345: refused",
        ),
        ({"missing": ["/ca.pem"]}, "executor", "failed", "cannot read /ca.pem"),
        ({"time": time.time() + 3600}, "clock", "warning", "ahead of this machine's"),
        ({"free": 1 << 20}, "free space", "failed", "/tmp has 0.0 GB free"),
        ({"free": None, "folder": "read-only"}, "free space", "failed", "no temporary folder: read-only"),
    ],
)
def test_executors(changes, check, status, words):
    (found,) = [each for each in doctor_spark._judged(report(**changes), 2) if each.status != "ok"]
    assert (found.check, found.status) == (check, status)
    assert words in found.detail
    assert "worker" in found.subject
    assert found.remedy


def test_a_healthy_spark():
    found = list(doctor_spark._judged(report(), 2))
    assert {each.status for each in found} == {"ok"}
    assert [each.detail for each in found if each.check == "executor"][
        -1
    ] == "reaches all 2 controllers and segment stores"


def test_a_session_that_does_not_find_the_data_source(monkeypatch):
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/other")
    missing = report() | {"found": False, "lookup": "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: pravega."}
    (found,) = [each for each in doctor_spark._judged(missing, 0) if each.status == "failed"]
    assert found.check == "data source"
    assert "searches with /opt/other, and your program runs /venv/python ([DATA_SOURCE_NOT_FOUND]" in found.detail
    assert "PYSPARK_PYTHON=/venv/python" in found.remedy
