"""Jars fetched over real HTTP, from a repository on this machine that can be slow, broken or gone."""

import contextlib
import hashlib
import http.client
import http.server
import json
import os
import random
import re
import select
import signal
import socket
import ssl
import threading
import time
import urllib.parse
from collections import Counter
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from pravega_connector.errors import ConfigError, JarDownloadError
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.maven import Jar
from pravega_connector.operations.cli.root import command_line
from tests.support.stopwatch import Stopwatch

# Fetches the jars named by the lines of its first argument and prints their folder.
FETCH = """
import signal, sys
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.maven import Jar
jars = tuple(Jar.from_line(line) for line in sys.argv[1].splitlines())
print(ensure_jars(JarSet("server", "1.0", jars)))
"""
# In the folder of a fetch whose second jar is in flight.
PARTIAL = ("second-1.0.jar.part", "first-1.0.jar", "third-1.0-linux.jar")


class Served:
    """A Maven repository; counts what it is asked for and what it sends, and may spoil its answers."""

    def __init__(self):
        self.files, self.jars = {}, []
        for name, classifier in (("first", ""), ("second", ""), ("third", "linux")):
            data = random.Random(name).randbytes(300_000)
            jar = Jar("org.example", name, "1.0", classifier, "jar", hashlib.sha256(data).hexdigest(), len(data))
            self.jars.append(jar)
            self.files[f"/maven/{jar.path}"] = data
        self.jar_set = JarSet("server", "1.0", tuple(self.jars))
        self.lines = "\n".join(jar.to_line() for jar in self.jars)
        self.downloads, self.sent = Counter(), Counter()
        self.ranges, self.authorizations, self.connections = [], [], set()
        self.ask_for = None  # the value of Authorization that is let in
        self.answers = {}  # per file: (status, headers) of the next answers in place of the file
        self.redirect = None  # where the files are instead
        self.has_ranges, self.has_length = True, True
        self.cut_off = 0  # this many downloads end after half of what they were asked for
        self.close_idle = False  # the connection ends after each answer, without a word of it
        self.pause = 0.0  # between two pieces
        self.asked = threading.Event()  # the second jar is in flight
        self.go_on = threading.Event()  # its second half may follow
        self.go_on.set()

    def name_of(self, request):
        return request.path.rpartition("/")[2]

    def serve(self, request):
        name = self.name_of(request)
        self.connections.add(request.client_address)
        self.authorizations.append(request.headers.get("Authorization"))
        if self.ask_for is not None and request.headers.get("Authorization") != self.ask_for:
            return self.refuse(request, 401)
        if self.answers.get(name):
            return self.refuse(request, *self.answers[name].pop(0))
        if self.redirect is not None:
            return self.refuse(request, 302, {"Location": self.redirect + request.path})
        if request.path not in self.files:
            return self.refuse(request, 404)
        self.downloads[name] += 1
        return self.send(request, name, self.files[request.path])

    def refuse(self, request, status, headers=()):
        request.send_response(status)
        for key, value in {"Content-Length": "4", **dict(headers)}.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(b"oops")

    def send(self, request, name, data):
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.has_ranges else 0
        if start >= len(data):
            return self.refuse(request, 416)
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.has_length:
            request.send_header("Content-Length", str(len(data) - start))
        else:
            request.close_connection = True
        request.end_headers()
        half = (start + len(data)) // 2 if self.cut_off else max(start, len(data) // 2)
        self.write(request, name, data[start:half])
        if self.cut_off:
            self.cut_off -= 1
            request.close_connection = True
            return None
        if name.startswith("second"):
            self.asked.set()
            assert self.go_on.wait(120)
        self.write(request, name, data[half:])
        request.close_connection |= self.close_idle
        return None

    def write(self, request, name, data):
        for place in range(0, len(data), 10_000):
            piece = data[place : place + 10_000]
            self.sent[name] += len(piece)  # before the client has it, and looks here
            try:
                request.wfile.write(piece)
            except ConnectionError:
                self.sent[name] -= len(piece)
                request.close_connection = True
                return
            time.sleep(self.pause)


@contextlib.contextmanager
def serving(answer, *, trust=None):
    """``answer(request)`` for each request, on its own port; yields the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            answer(self)

        do_CONNECT = do_GET

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            pass  # the other side ended in the middle, as these tests want it to

    with Server(("127.0.0.1", 0), Handler) as server:
        if trust is not None:
            server.socket = trust.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"{'http' if trust is None else 'https'}://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def repository(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("pravega_connector.local.download._FIRST_PAUSE", 0.01)
    monkeypatch.setenv("PRAVEGA_SERDE_CACHE", str(tmp_path / "cache"))
    served = Served()
    with serving(served.serve) as address:
        served.address = address
        monkeypatch.setenv("PRAVEGA_SERDE_MAVEN_REPOSITORY", f"{address}/maven/")
        yield served
        served.go_on.set()


def fetch(repository, url=None, **limits):
    return ensure_jars(repository.jar_set, url, **limits)


def partial(tmp_path, repository):
    return tmp_path / "cache" / "jars" / f"{repository.jar_set.key}.partial"


def assert_complete(folder, repository):
    there = {path.name for path in folder.iterdir()} - {"checked.json"}  # which the first use writes
    assert there == {"manifest.json", *(jar.file_name for jar in repository.jars)}
    assert all(jar.is_at(folder / jar.file_name) for jar in repository.jars)
    assert json.loads((folder / "manifest.json").read_text()) == {jar.file_name: 300_000 for jar in repository.jars}
    # No other folder, nothing half done, no second copies.
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}


def refused(repository, text, **arguments):
    """The one line of a fetch that fails, and leaves no folder under the final name."""
    with pytest.raises(JarDownloadError, match=r"^\[PRAVEGA-JAR-DOWNLOAD\] [^\n]*$") as caught:
        fetch(repository, **arguments)
    assert re.search(text, str(caught.value)), str(caught.value)
    return caught.value


# ---------------------------------------------------------------- what arrives


def test_fetched_once(repository, capsys):
    folder = fetch(repository)
    assert_complete(folder, repository)
    assert fetch(repository) == folder
    assert set(repository.downloads.values()) == {1}
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        f"Server jars (server 1.0): 0 bytes of 900.0 kB here, the rest from {repository.address}/maven/"
    )
    assert lines[-1].startswith("Server jars (server 1.0): complete after ")


def test_connections_are_kept(repository, monkeypatch):
    monkeypatch.setattr("pravega_connector.local.download._WORKERS", 1)
    assert_complete(fetch(repository), repository)
    assert len(repository.connections) == 1


def test_kept_connections_that_the_server_closes(repository, monkeypatch, capsys):
    monkeypatch.setattr("pravega_connector.local.download._WORKERS", 1)
    repository.close_idle = True
    assert_complete(fetch(repository), repository)
    assert len(repository.connections) == 3
    assert "trying again" not in capsys.readouterr().err


def test_nothing_is_left_in_the_home_folder(repository, start_python, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    process = start_python(FETCH, repository.lines, HOME=str(home))
    assert process.wait(120) == 0
    assert list(home.iterdir()) == []


def test_neither_java_nor_pyspark_is_needed(repository, start_python, tmp_path):
    program = "import sys; sys.modules['pyspark'] = None\nimport pravega_connector.operations.cli.local" + FETCH
    process = start_python(program, repository.lines, JAVA_HOME=str(tmp_path), PATH=str(tmp_path))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.strip().endswith(repository.jar_set.key)


def test_two_processes_at_once(repository, start_python):
    repository.go_on.clear()
    first = start_python(FETCH, repository.lines)
    assert repository.asked.wait(120)
    second = start_python(FETCH, repository.lines)
    assert "Another process is fetching" in second.stderr.readline()
    repository.go_on.set()
    folders = {first.communicate(timeout=120)[0], second.communicate(timeout=120)[0]}
    assert len(folders) == 1
    assert set(repository.downloads.values()) == {1}


def test_a_repository_on_disk(repository, tmp_path):
    for path, data in repository.files.items():
        (tmp_path / path[1:]).parent.mkdir(parents=True)
        (tmp_path / path[1:]).write_bytes(data)
    url = (tmp_path / "maven").as_uri()
    assert_complete(fetch(repository, url), repository)
    assert not repository.downloads


def test_files_that_are_elsewhere(repository):
    with serving(repository.serve) as address:
        first = Served()
        first.redirect = address
        with serving(first.serve) as front:
            user = front.replace("://", "://user:p%40ss@")
            assert_complete(fetch(repository, f"{user}/maven"), repository)
    assert set(first.authorizations) == {"Basic dXNlcjpwQHNz"}
    # Credentials are for the host that they were given for.
    assert set(repository.authorizations) == {None}


def test_an_endless_redirection(repository):
    repository.redirect = ""
    refused(repository, "redirected more than 8 times")


# ---------------------------------------------------------------- what is cut off, slow, or killed


@pytest.mark.parametrize("has_length", [True, False])
def test_a_download_that_is_cut_off_continues(repository, has_length, capsys):
    repository.cut_off, repository.has_length = 3, has_length
    assert_complete(fetch(repository), repository)
    assert repository.cut_off == 0
    assert sum(repository.downloads.values()) == len(repository.jars) + 3
    # No byte twice.
    assert set(repository.sent.values()) == {300_000}
    assert "trying again" in capsys.readouterr().err


def test_a_link_that_breaks_often_is_not_a_failure_while_bytes_arrive(repository):
    repository.cut_off = 12  # halves of halves: each brings something
    assert_complete(fetch(repository), repository)
    assert repository.cut_off == 0
    assert set(repository.sent.values()) == {300_000}


def test_a_server_that_cannot_resume(repository):
    repository.cut_off, repository.has_ranges = 2, False
    assert_complete(fetch(repository), repository)
    assert repository.cut_off == 0
    assert sum(repository.sent.values()) == 900_000 + 2 * 150_000


def test_a_server_that_cannot_resume_and_always_breaks_off(repository):
    repository.cut_off, repository.has_ranges = 1000, False
    refused(repository, r"the answer ended after 150000 of 300000 bytes")
    assert max(repository.downloads.values()) == 5


def test_a_server_that_falls_silent(repository):
    repository.go_on.clear()
    refused(repository, r"second-1\.0\.jar .*timed out", read_seconds=0.3)
    assert repository.downloads["second-1.0.jar"] == 5
    repository.go_on.set()
    assert_complete(fetch(repository), repository)


def test_a_server_that_drips(repository):
    repository.pause = 0.5
    began = Stopwatch()
    refused(repository, r"did not arrive within 2 s \(.* of 900\.0 kB\); calling again goes on there", seconds=2)
    assert began.within(10)
    repository.pause = 0
    assert_complete(fetch(repository), repository)
    assert any(repository.ranges)


@pytest.fixture
def stalled(repository, start_python, tmp_path, eventually):
    """A fetch in its own process that waits for the second half of the last jar, and that jar's file."""
    repository.go_on.clear()
    process = start_python(FETCH, repository.lines)
    part, *whole = (partial(tmp_path, repository) / name for name in PARTIAL)
    eventually(lambda: part.exists() and part.stat().st_size > 100_000 and all(path.exists() for path in whole))
    return process, part


def test_an_interrupted_fetch_ends_at_once(stalled):
    process, _ = stalled
    process.send_signal(signal.SIGINT)
    # Long before the 30 s that it would wait for the server.
    assert process.wait(120) == -signal.SIGINT


def test_a_process_killed_in_the_middle(repository, stalled, tmp_path):
    process, part = stalled
    process.kill()
    process.wait(120)
    repository.go_on.set()
    assert not (tmp_path / "cache" / "jars" / repository.jar_set.key).exists()
    have = part.stat().st_size
    repository.ranges.clear()
    assert_complete(fetch(repository), repository)
    # Bytes that have arrived are not requested again.
    assert repository.downloads == {"first-1.0.jar": 1, "second-1.0.jar": 2, "third-1.0-linux.jar": 1}
    assert repository.ranges == [f"bytes={have}-"]


def test_killed_at_any_time(repository, start_python, tmp_path):
    repository.pause = 0.02
    folder = tmp_path / "cache" / "jars" / repository.jar_set.key
    killed = 0
    for delay in (0.0, 0.1, 0.2, 0.3, 0.4):
        repository.asked.clear()
        process = start_python(FETCH, repository.lines)
        if repository.asked.wait(0.1 if killed else 60):
            time.sleep(delay)  # the fault: any moment will do
        process.kill()
        killed += process.wait(120) == -signal.SIGKILL
        if folder.exists():
            assert_complete(folder, repository)
    assert killed == 5
    repository.pause = 0
    assert_complete(fetch(repository), repository)


def test_a_beginning_of_something_else(repository, tmp_path):
    partial(tmp_path, repository).mkdir(parents=True)
    (partial(tmp_path, repository) / "second-1.0.jar.part").write_bytes(b"<html>please log in</html>")
    assert_complete(fetch(repository), repository)
    assert "bytes=26-" in repository.ranges
    assert repository.downloads["second-1.0.jar"] == 2


@pytest.mark.parametrize("size", [300_000, 300_001])
def test_a_beginning_that_is_too_long(repository, tmp_path, size):
    partial(tmp_path, repository).mkdir(parents=True)
    (partial(tmp_path, repository) / "second-1.0.jar.part").write_bytes(bytes(size))
    assert_complete(fetch(repository), repository)
    assert set(repository.downloads.values()) == {1}


def test_a_beginning_that_is_all(repository, tmp_path):
    partial(tmp_path, repository).mkdir(parents=True)
    path = f"/maven/{repository.jars[1].path}"
    (partial(tmp_path, repository) / "second-1.0.jar.part").write_bytes(repository.files[path])
    assert_complete(fetch(repository), repository)
    assert set(repository.downloads) == {"first-1.0.jar", "third-1.0-linux.jar"}


def damage_by_losing_the_manifest(folder):
    (folder / "manifest.json").unlink()


def damage_by_garbling_the_manifest(folder):
    (folder / "manifest.json").write_text("[")


def damage_by_losing_a_jar(folder):
    (folder / "first-1.0.jar").unlink()


def damage_by_cutting_a_jar(folder):
    (folder / "first-1.0.jar").write_bytes(b"PK")


def damage_by_another_byte(folder):
    """One of the same size, with the time of the last change as it was."""
    path = folder / "first-1.0.jar"
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def damage_by_another_jar(folder):
    """Another file gets its name."""
    (folder / "second-1.0.jar").replace(folder / "first-1.0.jar")
    (folder / "second-1.0.jar").write_bytes(b"")


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        damage_by_another_byte,
        damage_by_another_jar,
        damage_by_losing_the_manifest,
        damage_by_garbling_the_manifest,
        damage_by_losing_a_jar,
        damage_by_cutting_a_jar,
    ],
)
def test_a_damaged_folder_is_never_used(repository, damage, used):
    folder = fetch(repository)
    if used:
        assert fetch(repository) == folder
    damage(folder)
    assert_complete(fetch(repository), repository)
    assert repository.downloads["first-1.0.jar"] == 2


def test_jars_that_were_compared_are_not_read_again(repository, monkeypatch):
    folder = fetch(repository)
    assert fetch(repository) == folder
    monkeypatch.setattr(Jar, "is_at", lambda *_: pytest.fail("a jar was read"))
    assert fetch(repository) == folder
    assert set(repository.downloads.values()) == {1}


def test_a_cache_that_cannot_be_written_is_used(repository, monkeypatch):
    folder = fetch(repository)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert fetch(repository) == fetch(repository) == folder


# ---------------------------------------------------------------- what the repository says


@pytest.mark.parametrize(("size", "how"), [(300_000, r"SHA-256 \w+, expected \w+"), (9, "9 bytes, expected 300000")])
def test_a_jar_that_is_another(repository, tmp_path, size, how):
    path = next(path for path in repository.files if "second" in path)
    right, repository.files[path] = repository.files[path], bytes(size)
    refused(repository, rf"second-1\.0\.jar from .*: not the jar that was published \({how}\); name another mirror")
    assert not (tmp_path / "cache" / "jars" / repository.jar_set.key).exists()
    assert repository.downloads["second-1.0.jar"] == 1
    repository.files[path] = right
    assert_complete(fetch(repository), repository)


def test_a_jar_without_end(repository):
    repository.has_length = False
    path = next(path for path in repository.files if "second" in path)
    repository.files[path] *= 2
    refused(repository, "not the jar that was published")


@pytest.mark.parametrize("status", [404, 410])
def test_a_jar_that_is_not_there(repository, status):
    repository.answers["second-1.0.jar"] = [(status,)]
    error = refused(
        repository, rf"cannot fetch org/example/second/1\.0/second-1\.0\.jar from {repository.address}/maven/: HTTP 4"
    )
    assert "name a complete mirror of Maven Central in PRAVEGA_SERDE_MAVEN_REPOSITORY" in str(error)
    assert repository.downloads["second-1.0.jar"] == 0


def test_a_file_that_is_not_there(repository, tmp_path):
    refused(repository, "No such file or directory", url=tmp_path.as_uri())


@pytest.mark.parametrize(
    "answer",
    [
        (503, {"Connection": "close"}),
        (429, {"Retry-After": "1"}),
        (500, {"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}),
    ],
)
def test_a_passing_failure(repository, answer):
    repository.answers["second-1.0.jar"] = [answer] * 2
    began = time.monotonic()
    assert_complete(fetch(repository), repository)
    assert repository.answers == {"second-1.0.jar": []}
    assert answer[0] != 429 or time.monotonic() - began >= 2


def test_a_failure_that_does_not_pass(repository):
    repository.answers["second-1.0.jar"] = [(503,)] * 100
    refused(repository, "HTTP 503 Service Unavailable; check the network")
    assert len(repository.answers["second-1.0.jar"]) == 95


def test_a_repository_with_credentials(repository):
    repository.ask_for = "Basic dXNlcjpzZWNyZXQ="
    refused(repository, r"HTTP 401 .*https://user:password@host/path")
    error = refused(repository, "HTTP 401", url=f"{repository.address}/maven".replace("://", "://user:wrong@"))
    assert "wrong" not in str(error)
    url = f"{repository.address}/maven".replace("://", "://user:secret@")
    assert_complete(fetch(repository, url), repository)


def test_no_network(repository, closed_port):
    error = refused(repository, "Connection refused; check the network", url=f"http://127.0.0.1:{closed_port}/")
    assert error.retriable


@pytest.mark.parametrize(
    "url",
    [
        "nexus",
        "ftp://example.org/maven",
        "https:///maven",
        "http://user:secret@host:port/",
        "http://user:secret@[1",
        "file://host/x",
        "file:x",
    ],
)
def test_an_invalid_repository(repository, url):
    with pytest.raises(ConfigError, match=r"invalid Maven repository .*PRAVEGA_SERDE_MAVEN_REPOSITORY") as caught:
        fetch(repository, url)
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------- certificates and proxies


@pytest.fixture
def authority(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return authority


@pytest.fixture
def secure(repository, authority):
    """The address of the repository over TLS."""
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(trust)
    with serving(repository.serve, trust=trust) as address:
        yield address


def test_a_certificate_that_is_not_trusted(repository, secure):
    refused(repository, r"certificate not trusted \(.*\); name .* in SSL_CERT_FILE", url=f"{secure}/maven")
    assert not repository.downloads


def test_a_certificate_of_ones_own_authority(repository, secure, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert_complete(fetch(repository, f"{secure}/maven"), repository)


class Forwarding:
    """An HTTP proxy: passes requests on, and tunnels for CONNECT."""

    def __init__(self):
        self.passed = Counter()  # requests by method
        self.credentials = None  # the value of Proxy-Authorization that is let in
        self.status = 407  # for the others

    def serve(self, request):
        self.passed[request.command] += 1
        if self.credentials is not None and request.headers.get("Proxy-Authorization") != self.credentials:
            request.send_response(self.status)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.close_connection = True
        if request.command == "CONNECT":
            host, _, port = request.path.rpartition(":")
            with socket.create_connection((host, int(port))) as target:
                request.send_response(200)
                request.end_headers()
                self.relay(request.connection, target)
            return
        parts = urllib.parse.urlsplit(request.path)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", parts.path, headers={"Range": request.headers.get("Range", "")})
            answer = connection.getresponse()
            request.send_response(answer.status)
            request.send_header("Content-Length", answer.headers["Content-Length"])
            request.end_headers()
            request.wfile.write(answer.read())

    def relay(self, *ends):
        while True:
            for end in select.select(ends, [], [])[0]:
                if not (data := end.recv(1 << 16)):
                    return
                ends[end is ends[0]].sendall(data)


@pytest.fixture
def proxy():
    forwarding = Forwarding()
    with serving(forwarding.serve) as address:
        forwarding.address = address
        yield forwarding


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_for_http(repository, proxy, monkeypatch, variable):
    monkeypatch.setenv(variable, proxy.address)
    repository.cut_off = 0
    assert_complete(fetch(repository), repository)
    assert proxy.passed == {"GET": 3}


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_for_https(repository, proxy, secure, monkeypatch, tmp_path, variable):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv(variable, proxy.address.removeprefix("http://"))
    assert_complete(fetch(repository, f"{secure}/maven"), repository)
    assert set(proxy.passed) == {"CONNECT"}


def test_a_host_that_needs_no_proxy(repository, proxy, monkeypatch):
    monkeypatch.setenv("http_proxy", proxy.address)
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert_complete(fetch(repository), repository)
    assert not proxy.passed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_with_credentials(repository, proxy, secure, monkeypatch, tmp_path, scheme):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    url = f"{secure if scheme == 'https' else repository.address}/maven"
    proxy.credentials = "Basic dXNlcjpzZWNyZXQ="
    monkeypatch.setenv(f"{scheme}_proxy", proxy.address.replace("://", "://user:wrong@"))
    error = refused(
        repository, rf"HTTP 407 .*, says the proxy {proxy.address}; put its credentials into https_proxy", url=url
    )
    assert "wrong" not in str(error)
    monkeypatch.setenv(f"{scheme}_proxy", proxy.address.replace("://", "://user:secret@"))
    assert_complete(fetch(repository, url), repository)
    assert set(repository.authorizations) == {None}


def test_a_proxy_that_forbids(repository, proxy, secure, monkeypatch):
    proxy.credentials, proxy.status = "nobody", 403
    monkeypatch.setenv("https_proxy", proxy.address)
    refused(repository, rf"HTTP 403 .*, says the proxy {proxy.address}", url=f"{secure}/maven")


def test_a_proxy_that_is_down(repository, monkeypatch, closed_port):
    monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{closed_port}")
    error = refused(repository, rf"Connection refused \(through the proxy http://127\.0\.0\.1:{closed_port}\)")
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "proxy", ["socks5://user:secret@127.0.0.1:1080", "http://127.0.0.1:port", "http://", "http://[1"]
)
def test_an_invalid_proxy(repository, monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConfigError, match=r"invalid proxy .* \(http_proxy\); expected an HTTP proxy") as caught:
        fetch(repository)
    assert "secret" not in str(caught.value)


def test_an_invalid_proxy_for_other_requests(repository, monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://user:secret@127.0.0.1:1080")
    with pytest.raises(ConfigError, match="invalid proxy in https_proxy") as caught:
        fetch(repository)
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------- this machine, and the command


def test_a_full_disk(repository, tmp_path):
    folder = partial(tmp_path, repository)
    folder.mkdir(parents=True)
    # Every write to it fails as on a full disk.
    (folder / "second-1.0.jar.part").symlink_to("/dev/full")
    error = refused(
        repository, "cannot write the server's jars to .*: No space left on device; make room for 900.0 kB there"
    )
    assert "PRAVEGA_SERDE_CACHE" in str(error)
    (folder / "second-1.0.jar.part").unlink()
    assert_complete(fetch(repository), repository)


def test_a_cache_that_cannot_be_written(repository, tmp_path):
    (tmp_path / "cache").write_text("a file")
    refused(repository, "cannot write the server's jars to .*PRAVEGA_SERDE_CACHE")


def test_a_mirror_named_on_the_command_line(repository, closed_port):
    dead = f"http://127.0.0.1:{closed_port}/other"
    up = CliRunner().invoke(command_line, ["local", "up", "--port", "0", "--maven-repository", dead])
    assert (up.exit_code, up.stdout) == (8, "")
    assert f"the rest from {dead}/" in up.stderr
    assert re.search(rf"^\[PRAVEGA-JAR-DOWNLOAD\] cannot fetch .* from {dead}/: .*refused", up.stderr, re.MULTILINE)
    assert not repository.connections
