"""The client's connection: made late, shared by threads, closed, pickled, and in a forked child."""

import os
import pickle
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.config import PravegaConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import ConfigError, ConnectorError, OutcomeUnknownError
from pravega_connector.wire import StreamName
from tests.support.fakes import FakeController, SilentServer
from tests.unit.client.controller._answers import YES

STREAM = StreamName("scope", "stream")


class TestLifeCycle:
    def test_nothing_is_connected_before_the_first_call(self) -> None:
        with SilentServer() as silent:
            ControllerClient(PravegaConfig(controller=silent.uri)).close()
            assert not silent.accepted

    def test_closed(self, client: ControllerClient) -> None:
        client.close()
        client.close()
        with pytest.raises(ConfigError, match="this client is closed: create a new one"):
            client.scope_exists("scope")

    @pytest.mark.parametrize("action", ["commit_transaction", "abort_transaction"])
    def test_a_closed_client_ends_a_decision_at_once(self, client: ControllerClient, action: str) -> None:
        client.health.answered()  # failover_timeout counts from now on: a retry would last for minutes
        client.close()
        with pytest.raises(ConfigError, match="this client is closed: create a new one"):
            getattr(client, action)(STREAM, uuid.uuid4())

    def test_closing_during_a_commit_leaves_its_outcome_unknown(
        self, fake: FakeController, client: ControllerClient
    ) -> None:
        arrived, released = threading.Event(), threading.Event()

        def slow(_: object) -> pb.TxnStatus:
            arrived.set()
            released.wait(10)
            return pb.TxnStatus(status=pb.TxnStatus.SUCCESS)

        fake.on("commitTransaction", slow)
        client.health.answered()
        with ThreadPoolExecutor(1) as pool:
            commit = pool.submit(client.commit_transaction, STREAM, uuid.uuid4())
            assert arrived.wait(120)
            client.close()
            with pytest.raises(
                OutcomeUnknownError, match=r"this client is closed.*query its status, or commit it again"
            ):
                commit.result(120)
            released.set()

    def test_closing_ends_a_call_of_another_thread(self, fake: FakeController, client: ControllerClient) -> None:
        arrived, released = threading.Event(), threading.Event()

        def slow(_: object) -> pb.ExistsResponse:
            arrived.set()
            released.wait(10)
            return YES

        errors: list[ConnectorError] = []

        def call() -> None:
            try:
                client.scope_exists("scope")
            except ConnectorError as error:
                errors.append(error)

        fake.on("checkScopeExists", slow)
        thread = threading.Thread(target=call)
        thread.start()
        assert arrived.wait(120)
        client.close()
        thread.join(10)
        released.set()
        assert [str(error) for error in errors] == ["[PRAVEGA-CONFIG] this client is closed: create a new one"]

    def test_threads_share_one_connection(self, fake: FakeController, client: ControllerClient) -> None:
        together = threading.Barrier(6)  # a call from each must be under way at once

        def answer(_: object) -> pb.ExistsResponse:
            together.wait(10)
            return YES

        fake.on("checkScopeExists", answer)
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(client.scope_exists("scope"))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert found == [True] * 6
        assert len(client._channel._connections) == 1

    def test_pickle(self, fake: FakeController) -> None:
        fake.on("checkScopeExists", YES)
        config = PravegaConfig(controller=fake.uri).with_credentials("admin", "hunter2")
        with ControllerClient(config, timeout=7) as client:
            assert client.scope_exists("scope")  # so that there is a channel, which cannot be pickled
            copy = pickle.loads(pickle.dumps(client))
        with copy:
            assert copy.scope_exists("scope")
        assert repr(copy) == f"ControllerClient('{fake.uri}', timeout=7)"
        assert fake.calls[1].metadata["authorization"].startswith("Basic ")

    START = """
import os, subprocess, sys
from pravega_connector.controller.service import ControllerClient
from pravega_connector.config import PravegaConfig
from pravega_serde import ForkedError

client = ControllerClient(PravegaConfig(controller=sys.argv[1]), timeout=10)
"""
    FORK = """
child = os.fork()
if not child:
    try:
        client.scope_exists("child")
    except ForkedError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.scope_exists("parent")
"""

    def run(self, fake: FakeController, program: str) -> tuple[str, list[str]]:
        fake.on("checkScopeExists", YES)
        command = [sys.executable, "-W", "ignore", "-c", self.START + program, fake.uri]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
        done = subprocess.run(command, check=True, timeout=60, env=environment, stdout=subprocess.PIPE, text=True)
        return done.stdout, [call.request.scope for call in fake.calls]

    def test_works_in_a_forked_child(self, fake: FakeController) -> None:
        assert self.run(fake, self.FORK) == ("", ["child", "parent"])

    def test_is_refused_in_a_forked_child_where_grpc_would_hang(self, fake: FakeController) -> None:
        output, scopes = self.run(fake, "client.scope_exists('first')" + self.FORK)
        assert output.startswith("[PRAVEGA-FORKED] gRPC cannot be used in a process forked from one that has used it")
        assert scopes == ["first", "parent"]

    def test_others_may_fork_to_exec(self, fake: FakeController) -> None:
        # PySpark starts its JVM with a preexec_fn, hence by a real fork, while the driver has an open client.
        program = """
for _ in range(180):
    client.scope_exists("scope")
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)
assert not [name for name in os.environ if name.startswith("GRPC_")]
"""
        assert self.run(fake, program)[1] == ["scope"] * 180
