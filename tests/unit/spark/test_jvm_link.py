"""Connections of Spark's JVM to segment stores."""

import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pyspark
import pytest

from pravega_connector.local.certificates import tls_settings
from pravega_connector.spark.jvm.session import JAR
from tools import jvm

HARNESS = Path(__file__).with_name("java") / "StalledStore.java"


def test_a_write_over_tls_ends_if_the_store_reads_nothing(tmp_path: Path) -> None:
    if (javac := jvm.compiler()) is None:
        pytest.skip("no JDK")
    jvm.main()
    jars = f"{JAR}:{Path(pyspark.__file__).with_name('jars')}/*"
    subprocess.run([javac, "--release", "17", "-cp", jars, "-d", tmp_path, HARNESS], check=True)
    tls_settings(tmp_path, "127.0.0.1", "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.pem", tmp_path / "server-key.pem")
    ended = threading.Event()

    def serve() -> None:
        accepted, _ = server.accept()
        with context.wrap_socket(accepted, server_side=True):
            ended.wait()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        java = str(Path(javac).with_name("java"))
        command = [java, "-cp", f"{tmp_path}:{jars}", "pravegaserde.spark.StalledStore"]
        try:
            done = subprocess.run(
                [*command, str(server.getsockname()[1]), str(tmp_path / "ca.pem")],
                capture_output=True, text=True, timeout=120, check=True,
            )  # fmt: skip
        finally:
            ended.set()
            thread.join()
    assert done.stdout == "a write made no progress for 2 s\n"
