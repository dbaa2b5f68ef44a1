"""The client among processes: forked children, threads, and Spark started after it."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.client.shared import shared_client


def run(script, *arguments):
    """Run a script in its own process; its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forked_children_write_and_read_by_their_own_clients(config, stream_name):
    """As Spark's workers do: the daemon imports everything and forks, the children connect."""
    output = run(
        """
        import os, sys
        from pravega_connector.client.shared import shared_client
        from pravega_connector.config import PravegaConfig

        uri, stream = sys.argv[1:]
        config = PravegaConfig(controller=uri)
        parent = shared_client(config)  # made, but not used
        children = []
        for number in range(3):
            child = os.fork()
            if not child:
                try:
                    client = shared_client(config)
                    assert client is not parent
                    client.create_stream(stream)
                    with client.writer(stream) as writer:
                        for i in range(100):
                            writer.write(b"%d:%d" % (number, i))
                    assert len(list(client.read(stream))) >= 100
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
        found = [event.split(b":") for event in parent.read(stream)]
        for number in range(3):
            assert [int(i) for n, i in found if int(n) == number] == list(range(100))
        print("OK", len(found))
        """,
        config.controller,
        str(stream_name),
    )
    assert output == "OK 300\n"


@pytest.mark.long
def test_spark_starts_after_a_client_was_used(config, stream_name):
    """gRPC and forking do not go together, and PySpark forks to start its JVM."""
    output = run(
        """
        import sys
        from pravega_connector.client import PravegaClient
        from pyspark.sql import SparkSession

        uri, stream = sys.argv[1:]
        with PravegaClient(uri) as client:
            client.create_stream(stream)
            with client.writer(stream) as writer:
                writer.write(b"before")
                spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
                try:
                    assert spark.range(10).count() == 10
                finally:
                    spark.stop()
                writer.write(b"after")
            print(*map(bytes.decode, client.read(stream)))
        """,
        config.controller,
        str(stream_name),
    )
    assert output == "before after\n"


def test_threads_share_one_client(config, stream_name):
    client = shared_client(config)
    client.create_stream(stream_name, 2)

    def use(number):
        with client.writer(stream_name) as writer:
            for i in range(200):
                writer.write(b"%d:%d" % (number, i), str(number))
        found = [event for event in client.read(stream_name) if event.startswith(b"%d:" % number)]
        return [int(event.split(b":")[1]) for event in found]

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(use, range(6))) == [list(range(200))] * 6
    assert len(list(client.read(stream_name))) == 1200


@pytest.mark.real_servers("counts the threads and sockets of this process, where in-process servers have theirs")
def test_a_client_leaves_no_threads_and_no_sockets(config, stream_name):
    with PravegaClient(config) as client:  # what gRPC keeps for the process
        client.create_stream(stream_name)
    before = threading.active_count(), sockets()
    for _ in range(5):
        with PravegaClient(config) as client:
            with client.writer(stream_name) as writer, client.follow(stream_name) as reader:
                writer.write(b"x")
                writer.flush()
                assert reader.poll(10) is not None
            assert list(client.read(stream_name))
    assert threading.active_count() <= before[0]
    end = time.monotonic() + 10
    while sockets() > before[1] and time.monotonic() < end:  # gRPC closes its own a little later
        time.sleep(0.05)
    assert sockets() <= before[1]


def sockets():
    """How many connections to segment stores and socket pairs this process has open."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count
