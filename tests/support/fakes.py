"""Fake servers that fail, answer slowly, or answer nonsense, which a real server does not do on request."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import grpc
from pravega_connector.tcp_ports import listen_on_free_port

SERVICE = pb.DESCRIPTOR.services_by_name["ControllerService"]
Step = Message | grpc.StatusCode | Callable[[Any], Message]


@dataclass(frozen=True)
class Call:
    name: str
    request: Any
    metadata: dict[str, str]


class FakeController(grpc.GenericRpcHandler):
    """gRPC server that answers each method with its steps. The last step is repeated.

    A step is an answer, a status code to fail with, or a function from the request to an answer.
    """

    def __init__(
        self,
        credentials: grpc.ServerCredentials | None = None,
        *,
        host: str = "127.0.0.1",
        details: str = "said the fake",
    ) -> None:
        self.calls: list[Call] = []
        self.details = details
        self._steps: dict[str, deque[Step]] = {}
        self._server = grpc.server(
            ThreadPoolExecutor(max_workers=8), handlers=[self], options=[("grpc.so_reuseport", 0)]
        )

        def listen(port: int) -> int:
            address = f"{host}:{port}"
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)

        self.port = listen_on_free_port(listen)
        self._server.start()

    @property
    def uri(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def on(self, name: str, *steps: Step) -> Self:
        assert name in SERVICE.methods_by_name, f"the interface has no {name}"
        self._steps[name] = deque(steps)
        return self

    def count(self, name: str) -> int:
        return sum(call.name == name for call in self.calls)

    def close(self) -> None:
        self._server.stop(None).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        name = handler_call_details.method.rpartition("/")[2]
        metadata = dict(handler_call_details.invocation_metadata)

        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            self.calls.append(Call(name, request, metadata))
            steps = self._steps.get(name)
            if not steps:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "the fake has no step for this")
            step = steps.popleft() if len(steps) > 1 else steps[0]
            if isinstance(step, grpc.StatusCode):
                context.abort(step, self.details)
            return step if isinstance(step, Message) else step(request)

        method = SERVICE.methods_by_name[name]
        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )


class SilentServer:
    """Server that accepts TCP connections and never answers, like a firewall or a hung process."""

    def __init__(self) -> None:
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    @property
    def uri(self) -> str:
        return f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which close() does not
        self._listener.close()
        self._thread.join()
        for connection in self._open:
            connection.close()
