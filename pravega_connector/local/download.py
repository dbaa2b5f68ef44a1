"""Downloads from a Maven repository: several jars at a time, resumed, and compared with their digests.

A jar is downloaded to ``NAME.part``, and is renamed when its digest is right. Proxies are set in the environment. This
module needs httpx2, which the extra ``local`` installs.
"""

from __future__ import annotations

import contextlib
import hashlib
import http
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from io import BufferedRandom
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple
from urllib.request import url2pathname

import httpx2

from pravega_connector.errors import ConfigError, JarDownloadError
from pravega_connector.local.maven import MAVEN_CENTRAL, REPOSITORY_VARIABLE, Jar
from pravega_connector.local.progress import JarProgress

_WORKERS: Final = 6
_TICK_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 1.0
# Consecutive failures without new bytes. The pause doubles after each.
_FAILURES: Final = 5
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_REDIRECTIONS: Final = 8
_PASSING_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_OTHER_WAYS: Final = (
    f"check the network, set https_proxy to a proxy, or name a mirror of Maven Central in {REPOSITORY_VARIABLE}"
)


class _TransferError(Exception):
    """Failure of one request. If ``passing``, another attempt may succeed after at least ``pause`` seconds."""

    def __init__(self, reason: str, advice: str = _OTHER_WAYS, *, passing: bool = False, pause: float = 0.0) -> None:
        self.reason, self.advice, self.passing, self.pause = reason, advice, passing, pause
        super().__init__(reason)


class _StoppedError(Exception):
    """The download has ended: another jar failed, its time has passed, or its caller was interrupted."""


class _Answer(NamedTuple):
    """Answer to a request for a file.

    ``resumed`` is True if the answer begins at the requested byte. ``size`` is its number of bytes, if known.
    """

    resumed: bool
    size: int | None
    pieces: Iterable[bytes]


class Repository:
    """Maven repository at a root URL, which may have credentials. ``root`` is the URL without them.

    ``read_seconds`` limits the wait for a connection, and for the next bytes of an answer. Raises ConfigError. Threads
    may share a repository.
    """

    def __init__(self, url: str, read_seconds: float) -> None:
        parts = _split(url)
        host = parts.netloc.rpartition("@")[2]
        self.root = f"{parts.scheme}://{host}{parts.path.rstrip('/')}/"
        if parts.scheme == "file":
            return
        self._proxy = _proxy(parts.scheme, host)
        try:
            self._client = httpx2.Client(
                auth=_credentials(parts),
                headers={"User-Agent": "pravega-serde", "Accept-Encoding": "identity"},
                timeout=read_seconds,
                follow_redirects=True,
                max_redirects=_REDIRECTIONS,
                verify=ssl.create_default_context(),  # the certificates of this machine, by SSL_CERT_FILE, too
            )
        except (ImportError, ValueError, httpx2.InvalidURL):  # ImportError: a SOCKS proxy
            raise ConfigError(
                "invalid proxy in https_proxy, http_proxy or all_proxy; expected http://host:port"
            ) from None

    def close(self) -> None:
        """Close the connections."""
        if not self.root.startswith("file:"):
            self._client.close()

    def download(self, jars: list[Jar], folder: Path, progress: JarProgress, seconds: float) -> None:
        """Download the jars into the folder, several at a time. The first failed jar ends the download.

        Raises JarDownloadError, also after ``seconds``, and OSError of the file system.
        """
        # Small jars need latency, and large jars bandwidth. Alternate them.
        by_size = sorted(jars, key=lambda jar: jar.size)
        order = (by_size[place // 2 if place % 2 else -1 - place // 2] for place in range(len(jars)))
        todo: SimpleQueue[Jar | None] = SimpleQueue()
        for jar in (*order, *[None] * _WORKERS):
            todo.put(jar)
        # Bytes that arrived, the reason of another attempt, the error that ends all, or None for a complete jar.
        events: SimpleQueue[int | str | Exception | None] = SimpleQueue()
        stop = threading.Event()

        def work() -> None:
            try:
                while (jar := todo.get()) is not None and not stop.is_set():
                    _Transfer(jar, folder, self, stop, events.put).run()
                    events.put(None)
            except _StoppedError:
                pass
            except Exception as error:  # noqa: BLE001 - raised again in _follow
                events.put(error)

        # An executor would wait for its threads at exit, and the threads may wait for a silent server.
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

    @contextlib.contextmanager
    def open(self, path: str, start: int) -> Iterator[_Answer]:
        """Yield a file from byte ``start``, or from its beginning.

        Raises _TransferError, also inside the block.
        """
        url = self.root + urllib.parse.quote(path)
        if url.startswith("file:"):
            try:
                content = Path(url2pathname(url[7:])).read_bytes()
            except OSError as error:
                raise _TransferError(error.strerror or str(error)) from error
            yield _Answer(False, len(content), [content])
            return
        try:
            with contextlib.closing(self._send(url, start)) as answer:
                yield self._checked(answer, start)
        except httpx2.HTTPError as error:
            raise self._broken(error) from error

    def _send(self, url: str, start: int) -> httpx2.Response:
        request = self._client.build_request("GET", url, headers={"Range": f"bytes={start}-"} if start else {})
        try:
            return self._client.send(request, stream=True)
        except (httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.WriteError):
            # The server may close an idle connection at the moment of the next request.
            return self._client.send(request, stream=True)

    def _checked(self, answer: httpx2.Response, start: int) -> _Answer:
        status = answer.status_code
        if start and status == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return _Answer(False, None, ())
        if status not in {http.HTTPStatus.OK, http.HTTPStatus.PARTIAL_CONTENT}:
            raise self._refused(answer)
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        length = answer.headers.get("Content-Length", "")
        return _Answer(
            resumed and status == http.HTTPStatus.PARTIAL_CONTENT,
            int(length) if length.isdecimal() else None,
            answer.iter_raw(),
        )

    def _refused(self, answer: httpx2.Response) -> _TransferError:
        status = answer.status_code
        reason = f"HTTP {status} {answer.reason_phrase}"
        if status in _PASSING_STATUS:
            after = answer.headers.get("Retry-After", "")
            return _TransferError(reason, passing=True, pause=float(after) if after.isdecimal() else 0.0)
        if status == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            return self._proxy_refused(reason)
        if status in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}:
            return _TransferError(
                reason,
                f"name a mirror with its credentials in {REPOSITORY_VARIABLE}, as https://user:password@host/path",
            )
        return _TransferError(reason, f"name a complete mirror of Maven Central in {REPOSITORY_VARIABLE}")

    def _proxy_refused(self, reason: str) -> _TransferError:
        return _TransferError(
            f"{reason}, says the proxy {self._proxy}",
            "put its credentials into https_proxy, as http://user:password@host:port",
        )

    def _broken(self, error: httpx2.HTTPError) -> _TransferError:
        """Return the error for a failure below HTTP."""
        if isinstance(error, httpx2.ProxyError):
            return self._proxy_refused(f"HTTP {error}")
        if isinstance(error, httpx2.TooManyRedirects):
            return _TransferError(f"redirected more than {_REDIRECTIONS} times")
        root: BaseException = error
        while cause := root.__cause__ or root.__context__:
            root = cause
        if isinstance(root, ssl.SSLCertVerificationError):
            return _TransferError(
                f"certificate not trusted ({root.verify_message})",
                "name a file with the certificates of its authority in SSL_CERT_FILE",
            )
        reason = f"{getattr(root, 'strerror', None) or root or type(root).__name__}"
        if self._proxy is not None:
            reason += f" (through the proxy {self._proxy})"
        unknown_host = isinstance(root, socket.gaierror) and root.errno != socket.EAI_AGAIN
        return _TransferError(reason, passing=not (unknown_host or isinstance(error, httpx2.UnsupportedProtocol)))


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


def _credentials(parts: urllib.parse.SplitResult) -> tuple[str, str] | None:
    """Return user and password of a URL."""
    if parts.username is None:
        return None
    return urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or "")


def _proxy(scheme: str, host: str) -> str | None:
    """Return the address, without credentials, of the proxy that httpx2 uses for a host.

    Raises ConfigError if it is invalid.
    """
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(host):
        return None
    shown = re.sub("//.*@", "//", url if "://" in url else f"http://{url}")
    try:
        parts = urllib.parse.urlsplit(shown)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return shown
    except ValueError:
        pass
    raise ConfigError(
        f"invalid proxy {shown!r} ({scheme}_proxy); expected an HTTP proxy, http://host:port, or {host} in no_proxy"
    )


class _Transfer:
    """Download of one jar into a folder. Each attempt resumes where the last one ended.

    ``on_progress`` is called with the number of bytes that arrived, which is negative for dropped bytes. It is also
    called with the reason of each further attempt.
    """

    def __init__(
        self,
        jar: Jar,
        folder: Path,
        source: Repository,
        stop: threading.Event,
        on_progress: Callable[[int | str], None],
    ) -> None:
        self._jar, self._folder, self._source, self._stop, self._on_progress = jar, folder, source, stop, on_progress
        self._have = self._most = self._failures = 0

    def run(self) -> None:
        """Download the jar. Raises JarDownloadError, _StoppedError, and OSError of the file system."""
        while True:
            try:
                return self._attempt()
            except _TransferError as error:
                if not error.passing or self._failures >= _FAILURES:
                    raise JarDownloadError(
                        f"cannot fetch {self._jar.path} from {self._source.root}: {error.reason}; {error.advice}"
                    ) from error
                self._on_progress(error.reason)
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
            # A server that cannot resume sends the same first bytes each time. They do not count as new.
            self._failures = 1 if self._have > self._most else self._failures + 1
            self._most = max(self._most, self._have)
            raise
        part.rename(self._folder / self._jar.file_name)

    def _receive(self, file: BufferedRandom) -> None:
        """Complete the file, and compare its digest."""
        begun = self._have = os.fstat(file.fileno()).st_size
        if begun < self._jar.size:
            with self._source.open(self._jar.path, begun) as answer:
                if begun and not answer.resumed:
                    self._drop(file)
                if answer.size is not None and self._have + answer.size != self._jar.size:
                    raise self._wrong(file, f"{self._have + answer.size} bytes, expected {self._jar.size}", begun)
                self._copy(answer.pieces, file)
            if self._have < self._jar.size:
                raise _TransferError(f"the answer ended after {self._have} of {self._jar.size} bytes", passing=True)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != self._jar.sha256:
            raise self._wrong(file, f"SHA-256 {sha256}, expected {self._jar.sha256}", begun)

    def _copy(self, pieces: Iterable[bytes], file: BufferedRandom) -> None:
        with contextlib.suppress(httpx2.RemoteProtocolError):  # the answer ended early
            for piece in pieces:
                if self._stop.is_set():
                    raise _StoppedError
                self._have += len(piece)
                self._on_progress(len(piece))
                file.write(piece)
                if self._have > self._jar.size:
                    return

    def _wrong(self, file: BufferedRandom, how: str, begun: int) -> _TransferError:
        """Drop a file that is not the jar, and return the error.

        If part of the file was downloaded before, another attempt may succeed: that part may come from another source.
        """
        self._drop(file)
        return _TransferError(
            f"not the jar that was published ({how})",
            f"name another mirror of Maven Central in {REPOSITORY_VARIABLE}, or none",
            passing=begun > 0,
        )

    def _drop(self, file: BufferedRandom) -> None:
        file.truncate(0)
        self._on_progress(-self._have)
        self._have = 0


def _follow(
    events: SimpleQueue[int | str | Exception | None], count: int, progress: JarProgress, seconds: float
) -> None:
    """Show the progress until ``count`` jars have arrived."""
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
