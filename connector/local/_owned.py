"""What the servers of one's own share: started, asked for and ended as context managers."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from connector.errors import LocalServerError
from connector.local._process import SupervisedProcess

__all__ = ["OwnedServer"]


class _Launched(Protocol):
    """A running server."""

    @property
    def process(self) -> SupervisedProcess: ...

    @property
    def folder(self) -> Path: ...

    @property
    def uri(self) -> str: ...

    @property
    def log(self) -> Path: ...


S = TypeVar("S", bound=_Launched)


class OwnedServer(Generic[S]):
    """A server that lives as long as a ``with`` block, or from :meth:`start` to :meth:`close`."""

    _what: ClassVar[str]
    _server: S | None = None

    @abstractmethod
    def _launch(self) -> S:
        """Start the server and wait until it answers."""

    def start(self) -> None:
        """Start the server and wait until it is ready.

        Raises JavaNotFoundError, JarDownloadError (the jars are fetched on first use), LocalServerError.
        """
        if self._server is not None:
            raise LocalServerError(f"this {self._what} is running already, at {self._server.uri}")
        self._server = self._launch()

    def close(self) -> None:
        """End the server and forget all that it kept itself."""
        if self._server is not None:
            self._server.process.close()
            self._server = None

    @property
    def log(self) -> Path:
        """The server's log: warnings and errors. It goes when the server is closed."""
        return self._running().log

    @property
    def pid(self) -> int:
        """Process id of the server's JVM."""
        return int((self._running().folder / "pid").read_text())

    def _running(self) -> S:
        if self._server is None:
            raise LocalServerError(f"this {self._what} is not running; call start() or use it in a with statement")
        return self._server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
