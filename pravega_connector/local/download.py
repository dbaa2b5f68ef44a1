"""Downloads from a Maven repository over HTTP: several jars at a time, resumed, compared with their digests.

A jar arrives as ``NAME.part`` and gets its name when its bytes are right. Proxies are those of the environment.
Progress is one line that changes on a terminal, a line now and then elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import math
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from io import BufferedRandom, BytesIO
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, NamedTuple, Self, TextIO
from urllib.request import url2pathname

from pravega_connector.errors import ConfigError, JarDownloadError

__all__ = ["MAVEN_CENTRAL", "REPOSITORY_VARIABLE", "Jar", "JarProgress", "Repository", "decimal", "download"]

REPOSITORY_VARIABLE: Final = "PRAVEGA_SERDE_MAVEN_REPOSITORY"
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2/"
_NONE: Final = "-"
_WORKERS: Final = 6
_PIECE: Final = 1 << 16
_TICK_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 1.0
# Failures in a row that brought nothing new; the pauses between them double from the first one.
_FAILURES: Final = 5
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_REDIRECTED: Final = frozenset({301, 302, 303, 307, 308})
_REDIRECTIONS: Final = 8
_PASSING_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_OTHER_WAYS: Final = (
    f"check the network, set https_proxy to a proxy, or name a mirror of Maven Central in {REPOSITORY_VARIABLE}"
)
_LINE_SECONDS: Final = 3.0
_REDRAW_SECONDS: Final = 0.1
_CLEAR: Final = "\r\x1b[K"  # back to the beginning of the line, which is erased


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """Published archive: coordinates, SHA-256 and size in bytes; ``classifier`` is empty for a module's main one."""

    organisation: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Name in the server's folder, and the last part of :attr:`path`."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def path(self) -> str:
        """Path below the root of a Maven repository."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"

    @property
    def identity(self) -> str:
        """Coordinates and digest: the line of the lock file without the size."""
        return " ".join(
            (self.organisation, self.name, self.version, self.classifier or _NONE, self.extension, self.sha256)
        )

    def is_at(self, path: Path) -> bool:
        """Whether the file is this jar, byte for byte."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False

    def to_line(self) -> str:
        """Line of the lock file."""
        return f"{self.identity} {self.size}"

    @classmethod
    def from_line(cls, line: str) -> Jar:
        """Inverse of :meth:`to_line`."""
        organisation, name, version, classifier, extension, sha256, size = line.split()
        return cls(organisation, name, version, "" if classifier == _NONE else classifier, extension, sha256, int(size))


class _TransferError(Exception):
    """Failure of one request. ``passing``: another attempt may succeed, after ``pause`` seconds at least."""

    def __init__(self, reason: str, advice: str = _OTHER_WAYS, *, passing: bool = False, pause: float = 0.0) -> None:
        self.reason, self.advice, self.passing, self.pause = reason, advice, passing, pause
        super().__init__(reason)


class _StoppedError(Exception):
    """The fetch is over: another jar failed, its time has passed, or its caller was interrupted."""


@dataclass(frozen=True, slots=True)
class _Proxy:
    """HTTP proxy; ``shown`` is its address without credentials."""

    host: str
    port: int
    headers: dict[str, str]
    shown: str


class Repository:
    """Maven repository at a root URL, which may have credentials; ``root`` is the URL without them.

    ``read_seconds`` bounds the wait for a connection and for the next bytes of an answer. Raises ConfigError.
    """

    def __init__(self, url: str, read_seconds: float) -> None:
        parts = _split(url)
        self.place = parts.scheme, parts.netloc.rpartition("@")[2]
        self.root = f"{'://'.join(self.place)}{parts.path.rstrip('/')}/"
        self.read_seconds = read_seconds
        self.authorization = _basic(parts)
        # One for all connections: to read the trusted certificates takes longer than to fetch a small jar.
        self.trust = ssl.create_default_context()
        self.proxy = _proxy(*self.place)


def _split(url: str) -> urllib.parse.SplitResult:
    """Parts of the root URL of a repository; raises ConfigError."""
    try:
        parts = urllib.parse.urlsplit(url)
        on_disk = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
        if on_disk or (parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0):
            return parts
    except ValueError:
        pass
    raise ConfigError(
        f"invalid Maven repository {re.sub('//.*@', '//', url)!r} ({REPOSITORY_VARIABLE}); expected its root URL, "
        f"such as {MAVEN_CENTRAL} or file:///srv/maven"
    )


def _basic(parts: urllib.parse.SplitResult) -> str | None:
    """Value of the header that carries the credentials of a URL."""
    if parts.username is None:
        return None
    words = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
    return "Basic " + base64.b64encode(":".join(words).encode()).decode("ascii")


def _proxy(scheme: str, netloc: str) -> _Proxy | None:
    """Proxy for a host: SCHEME_proxy or all_proxy, unless no_proxy excepts it; the system's on macOS and Windows."""
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if scheme == "file" or not url or urllib.request.proxy_bypass(netloc):
        return None
    try:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or http.client.HTTP_PORT
    except ValueError:
        host = None
    if not host or not parts.scheme.startswith("http"):
        raise ConfigError(
            f"invalid proxy {re.sub('//.*@', '//', url)!r} ({scheme}_proxy); expected an HTTP proxy, http://host:port, "
            f"or {netloc} in no_proxy"
        )
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    credentials = _basic(parts)
    return _Proxy(host, port, {} if credentials is None else {"Proxy-Authorization": credentials}, shown)


class _Answer(NamedTuple):
    """Answer to a request for a file: ``resumed`` if ``body`` begins where it was asked to, ``size`` of it if known."""

    resumed: bool
    size: int | None
    body: http.client.HTTPResponse | BytesIO


class _Session:
    """Requests of one thread to a repository, over connections that are kept for the next one.

    Not by urllib.request: it looks up the host and connects for each of some hundred small files.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def close(self) -> None:
        """Close the connections; another request makes new ones."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def open(self, path: str, start: int) -> _Answer:
        """Answer with a file from byte ``start`` on, or from its beginning.

        It has to be read to its end before the next request. Raises _TransferError.
        """
        url = self.repository.root + urllib.parse.quote(path)
        try:
            if url.startswith("file:"):
                content = Path(url2pathname(url[7:])).read_bytes()
                return _Answer(False, len(content), BytesIO(content))
            answer = self._follow(url, {"Range": f"bytes={start}-"} if start else {})
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self.broken(error) from error
        if answer.status not in {http.HTTPStatus.OK, http.HTTPStatus.PARTIAL_CONTENT}:
            answer.close()
            self.close()
            if start and answer.status == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return self.open(path, 0)
            raise self._refused(answer)
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        return _Answer(resumed and answer.status == http.HTTPStatus.PARTIAL_CONTENT, answer.length, answer)

    def _follow(self, url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Answer after redirections."""
        for _ in range(_REDIRECTIONS):
            parts = urllib.parse.urlsplit(url)
            if parts.scheme not in {"http", "https"}:
                raise ValueError(f"redirected to {url}")
            answer = self._ask(parts, headers)
            if answer.status not in _REDIRECTED:
                return answer
            answer.read()
            url = urllib.parse.urljoin(url, answer.headers.get("Location", ""))
        raise ValueError(f"redirected more than {_REDIRECTIONS} times")

    def _ask(self, parts: urllib.parse.SplitResult, headers: dict[str, str]) -> http.client.HTTPResponse:
        place = parts.scheme, parts.netloc
        proxy = _proxy(*place)
        target = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        headers = {"User-Agent": "pravega-serde", "Accept-Encoding": "identity", **headers}
        if self.repository.authorization is not None and place == self.repository.place:
            headers["Authorization"] = self.repository.authorization
        if proxy is not None and parts.scheme == "http":
            target = urllib.parse.urlunsplit((*place, parts.path, parts.query, ""))
            headers |= proxy.headers
        kept = self._connections.pop(place, None)
        while True:
            connection = kept or self._connect(parts, proxy)
            try:
                connection.request("GET", target, headers=headers)
                answer = connection.getresponse()
            except BaseException as error:
                connection.close()
                # A server may close a connection that waits for the next request.
                if kept is None or not isinstance(error, ConnectionError):
                    raise
                kept = None
            else:
                self._connections[place] = connection
                return answer

    def _connect(self, parts: urllib.parse.SplitResult, proxy: _Proxy | None) -> http.client.HTTPConnection:
        usual = http.client.HTTP_PORT if parts.scheme == "http" else http.client.HTTPS_PORT
        host, port = parts.hostname or "", parts.port or usual
        at = (host, port) if proxy is None else (proxy.host, proxy.port)
        if parts.scheme == "http":
            return http.client.HTTPConnection(*at, timeout=self.repository.read_seconds)
        connection = http.client.HTTPSConnection(
            *at, timeout=self.repository.read_seconds, context=self.repository.trust
        )
        if proxy is not None:
            connection.set_tunnel(host, port, proxy.headers)
        return connection

    def _refused(self, answer: http.client.HTTPResponse) -> _TransferError:
        reason = f"HTTP {answer.status} {answer.reason}"
        if answer.status in _PASSING_STATUS:
            after = answer.headers.get("Retry-After", "")
            return _TransferError(reason, passing=True, pause=float(after) if after.isdecimal() else 0.0)
        if answer.status == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            return self._proxy_refused(reason)
        if answer.status in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}:
            return _TransferError(
                reason,
                f"name a mirror with its credentials in {REPOSITORY_VARIABLE}, as https://user:password@host/path",
            )
        return _TransferError(reason, f"name a complete mirror of Maven Central in {REPOSITORY_VARIABLE}")

    def _proxy_refused(self, reason: str) -> _TransferError:
        shown = self.repository.proxy.shown if self.repository.proxy else ""
        return _TransferError(
            f"{reason}, says the proxy {shown}",
            "put its credentials into https_proxy, as http://user:password@host:port",
        )

    def broken(self, error: Exception) -> _TransferError:
        """Meaning of a failure below HTTP, before an answer or in the middle of one."""
        self.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            return _TransferError(
                f"certificate not trusted ({error.verify_message})",
                "name a file with the certificates of its authority in SSL_CERT_FILE",
            )
        # http.client has no other sign of a proxy's answer to CONNECT.
        tunnel = re.search(r"Tunnel connection failed: (4.*)", str(error))
        if tunnel is not None:
            return self._proxy_refused(f"HTTP {tunnel[1]}")
        reason = f"{getattr(error, 'strerror', None) or error or type(error).__name__}"
        if self.repository.proxy is not None:
            reason += f" (through the proxy {self.repository.proxy.shown})"
        unknown_host = isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN
        permanent = FileNotFoundError | ValueError | http.client.InvalidURL
        return _TransferError(reason, passing=not (unknown_host or isinstance(error, permanent)))


class _Transfer:
    """Download of one jar into a folder; an attempt goes on where the last one ended.

    ``tell`` is called with the number of bytes that arrived, negative for bytes that were dropped, and with the reason
    of each further attempt.
    """

    def __init__(
        self, jar: Jar, folder: Path, session: _Session, stop: threading.Event, tell: Callable[[int | str], None]
    ) -> None:
        self._jar, self._folder, self._session, self._stop, self._tell = jar, folder, session, stop, tell
        self._have = self._most = self._failures = 0

    def run(self) -> None:
        """Fetch the jar. Raises JarDownloadError, OSError of the file system, _StoppedError."""
        while True:
            try:
                return self._attempt()
            except _TransferError as error:
                if not error.passing or self._failures >= _FAILURES:
                    raise JarDownloadError(
                        f"cannot fetch {self._jar.path} from {self._session.repository.root}: "
                        f"{error.reason}; {error.advice}"
                    ) from error
                self._tell(error.reason)
                pause: float = max(_FIRST_PAUSE * 2 ** (self._failures - 1), error.pause)
            self._stop.wait(min(pause, _LONGEST_PAUSE))

    def _attempt(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        part = self._folder / f"{self._jar.file_name}.part"
        try:
            with part.open("a+b") as file:
                self._receive(file)
        except _TransferError:
            self._session.close()
            # A server that cannot resume sends the same beginning again and again: nothing new.
            self._failures = 1 if self._have > self._most else self._failures + 1
            self._most = max(self._most, self._have)
            raise
        part.rename(self._folder / self._jar.file_name)

    def _receive(self, file: BufferedRandom) -> None:
        """Complete the file, and compare all of it with the digest."""
        begun = self._have = os.fstat(file.fileno()).st_size
        if begun < self._jar.size:
            answer = self._session.open(self._jar.path, begun)
            if begun and not answer.resumed:
                self._drop(file)
            with answer.body:
                if answer.size is not None and self._have + answer.size != self._jar.size:
                    raise self._wrong(file, f"{self._have + answer.size} bytes, expected {self._jar.size}", begun)
                for piece in self._pieces(answer.body):
                    file.write(piece)
            if self._have < self._jar.size:
                raise _TransferError(f"the answer ended after {self._have} of {self._jar.size} bytes", passing=True)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != self._jar.sha256:
            raise self._wrong(file, f"SHA-256 {sha256}, expected {self._jar.sha256}", begun)

    def _pieces(self, body: http.client.HTTPResponse | BytesIO) -> Iterator[bytes]:
        while self._have <= self._jar.size:
            try:
                # Unlike read, it returns what one wait has brought: each wait has its own limit.
                piece = body.read1(_PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise self._session.broken(error) from error
            if self._stop.is_set():
                raise _StoppedError
            if not piece:
                return
            self._have += len(piece)
            self._tell(len(piece))
            yield piece

    def _wrong(self, file: BufferedRandom, how: str, begun: int) -> _TransferError:
        """Error of a file that is not the jar, which is dropped; its beginning may have come from elsewhere."""
        self._drop(file)
        return _TransferError(
            f"not the jar that was published ({how})",
            f"name another mirror of Maven Central in {REPOSITORY_VARIABLE}, or none",
            passing=begun > 0,
        )

    def _drop(self, file: BufferedRandom) -> None:
        file.truncate(0)
        self._tell(-self._have)
        self._have = 0


def download(jars: list[Jar], folder: Path, source: Repository, progress: JarProgress, seconds: float) -> None:
    """Fetch the jars into the folder, several at a time; the first that cannot be had ends it all.

    Raises JarDownloadError, also when ``seconds`` have passed; OSError of the file system.
    """
    # Small jars take latency and large ones bandwidth: one of each in turn.
    by_size = sorted(jars, key=lambda jar: jar.size)
    order = (by_size[place // 2 if place % 2 else -1 - place // 2] for place in range(len(jars)))
    todo: SimpleQueue[Jar | None] = SimpleQueue()
    for jar in (*order, *[None] * _WORKERS):
        todo.put(jar)
    # Bytes that arrived, the reason of another attempt, the end of everything; None for a jar that is there.
    events: SimpleQueue[int | str | Exception | None] = SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        session = _Session(source)
        try:
            while (jar := todo.get()) is not None and not stop.is_set():
                _Transfer(jar, folder, session, stop, events.put).run()
                events.put(None)
        except _StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 - raised again in _follow
            events.put(error)
        finally:
            session.close()

    # An executor would wait for its threads at the end of the process, and they may wait for a silent server.
    threads = [threading.Thread(target=work, name="jars", daemon=True) for _ in range(_WORKERS)]
    for thread in threads:
        thread.start()
    try:
        _follow(events, len(jars), progress, seconds)
    finally:
        stop.set()
        end = time.monotonic() + _JOIN_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))


def _follow(
    events: SimpleQueue[int | str | Exception | None], count: int, progress: JarProgress, seconds: float
) -> None:
    """Show what happens until that many jars are there."""
    deadline = time.monotonic() + seconds
    told = set()
    while count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise JarDownloadError(
                f"the server's jars did not arrive within {seconds:g} s ({progress.state}); calling again goes on there"
            )
        try:
            event = events.get(timeout=min(left, _TICK_SECONDS))
        except Empty:
            event = 0
        match event:
            case None:
                count -= 1
            case int():
                progress.advance(event)
            case str() if event not in told:
                told.add(event)
                progress.say(f"{event}; trying again")
            case Exception():
                raise event


class JarProgress:
    """Bytes, rate and time left of a download, as a context manager; nothing is shown before :meth:`begin`.

    On a terminal, one line is rewritten; elsewhere, a line is written every few seconds. ``file`` is standard error if
    None; ``clock`` returns seconds.
    """

    def __init__(self, title: str, *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock = title, clock
        self._file = sys.stderr if file is None else file
        self._terminal = self._file.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}
        self._done = self._total = self._received = 0
        self._began = self._shown = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._terminal:
            self._write(_CLEAR)

    @property
    def state(self) -> str:
        """The bytes that have arrived, and all bytes."""
        return f"{decimal(self._done)} of {decimal(self._total)}"

    def begin(self, total: int, arrived: int, source: str) -> None:
        """Start with ``total`` bytes to come from ``source``; ``arrived`` bytes are present from an earlier fetch."""
        self._total, self._done, self._received = total, arrived, 0
        self._began = self._shown = self._clock()
        self.say(f"{self._title}: {self.state} here, the rest from {source}")

    def advance(self, count: int) -> None:
        """Add bytes that have arrived; a negative number removes bytes that were dropped."""
        self._done += count
        self._received += max(count, 0)
        now = self._clock()
        if now - self._shown >= (_REDRAW_SECONDS if self._terminal else _LINE_SECONDS):
            self._shown = now
            self._write(f"{_CLEAR}{self._line(now)}" if self._terminal else f"{self._line(now)}\n")

    def _line(self, now: float) -> str:
        """The bytes so far, the mean rate of the bytes received, and the time left at that rate."""
        rate = self._received / (now - self._began) if now > self._began else 0.0
        if not rate:
            return f"{self._title}: {self.state}"
        left = timedelta(seconds=math.ceil((self._total - self._done) / rate))
        return f"{self._title}: {self.state}, {decimal(int(rate))}/s, {left} left"

    def end(self) -> None:
        """Report that everything has arrived."""
        self.say(f"{self._title}: complete after {self._clock() - self._began:.1f} s")

    def say(self, text: str) -> None:
        """Write a separate line."""
        self._write(f"{_CLEAR if self._terminal else ''}{text}\n")

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


def decimal(size: int) -> str:
    """Return a number of bytes as a person reads it: ``107.4 MB``."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    value, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:,.1f} {unit}"
