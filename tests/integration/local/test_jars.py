"""Jars fetched by the real Ivy, from a repository on this machine that can be slow, broken or gone."""

import contextlib
import hashlib
import http.server
import io
import threading
import zipfile
from collections import Counter

import pytest

from connector.errors import JarDownloadError
from connector.local._jars import ensure_jars
from connector.local._jarset import Jar, JarSet
from connector.local._java import find_java

# Fetches the jars named by the lines of its first argument and prints their folder.
FETCH = """
import sys
from connector.local._jars import ensure_jars
from connector.local._jarset import Jar, JarSet
from connector.local._java import find_java
jars = tuple(Jar.from_line(line) for line in sys.argv[1].splitlines())
print(ensure_jars(JarSet("server", "1.0", jars), find_java()))
"""


def archive(name):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr(name, name * 10_000)
    return data.getvalue()


class Repository:
    """A Maven repository over HTTP; counts the downloads of each jar, and may spoil them."""

    def __init__(self):
        self.files, self.jars = {}, []
        for name, classifier in (("first", ""), ("second", ""), ("third", "linux")):
            data = archive(name)
            jar = Jar("org.example", name, "1.0", classifier, "jar", hashlib.sha256(data).hexdigest())
            self.jars.append(jar)
            self.files[f"/org/example/{name}/1.0/{jar.file_name}"] = data
        self.jar_set = JarSet("server", "1.0", tuple(self.jars))
        self.lines = "\n".join(jar.to_line() for jar in self.jars)
        self.downloads = Counter()
        self.asked = threading.Event()  # a download has begun
        self.go_on = threading.Event()  # it may end
        self.go_on.set()
        self.cut_off = 0  # so many downloads end in the middle

    def serve(self, handler):
        data = self.files.get(handler.path)
        handler.send_response(404 if data is None else 200)
        handler.send_header("Content-Length", str(len(data or b"")))
        handler.end_headers()
        if data is None or handler.command == "HEAD":
            return
        name = handler.path.rpartition("/")[2]
        self.downloads[name] += 1
        handler.wfile.write(data[: len(data) // 2])
        if self.cut_off:
            self.cut_off -= 1
            handler.close_connection = True
            return
        if name.startswith("second"):
            self.asked.set()
            assert self.go_on.wait(60)
        with contextlib.suppress(ConnectionError):
            handler.wfile.write(data[len(data) // 2 :])


@pytest.fixture
def repository(monkeypatch, tmp_path):
    served = Repository()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            served.serve(self)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("PRAVEGA_SERDE_MAVEN_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("PRAVEGA_SERDE_CACHE", str(tmp_path / "cache"))
        yield served
        served.go_on.set()
        server.shutdown()
        thread.join()


def fetch(repository):
    return ensure_jars(repository.jar_set, find_java())


def assert_complete(folder, repository):
    assert {path.name for path in folder.iterdir()} == {"manifest.json", *(jar.file_name for jar in repository.jars)}
    assert all(jar.is_at(folder / jar.file_name) for jar in repository.jars)
    # No other folder, nothing half done, no second copies.
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}


def test_fetched_once(repository):
    folder = fetch(repository)
    assert_complete(folder, repository)
    assert fetch(repository) == folder
    assert set(repository.downloads.values()) == {1}


def test_nothing_is_left_in_the_home_folder(repository, start_python, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    process = start_python(FETCH, repository.lines, HOME=str(home), JAVA_TOOL_OPTIONS=f"-Duser.home={home}")
    assert process.wait(60) == 0
    assert list(home.iterdir()) == []


def test_two_processes_at_once(repository, start_python):
    repository.go_on.clear()
    first = start_python(FETCH, repository.lines)
    assert repository.asked.wait(60)
    second = start_python(FETCH, repository.lines)
    assert "Another process is fetching" in second.stderr.readline()
    repository.go_on.set()
    folders = {first.communicate(timeout=60)[0], second.communicate(timeout=60)[0]}
    assert len(folders) == 1
    assert set(repository.downloads.values()) == {1}


def test_a_download_that_is_cut_off_is_tried_again(repository, capsys):
    repository.cut_off = 1
    assert_complete(fetch(repository), repository)
    assert repository.cut_off == 0
    assert sum(repository.downloads.values()) == len(repository.jars) + 1


def fetch_and_be_killed(repository, start_python):
    """In a process of its own, while a jar is on its way."""
    repository.go_on.clear()
    process = start_python(FETCH, repository.lines)
    assert repository.asked.wait(60)
    process.kill()
    process.wait(60)
    repository.go_on.set()


def test_a_process_killed_in_the_middle(repository, start_python):
    fetch_and_be_killed(repository, start_python)
    # What has arrived whole is not asked for again.
    assert_complete(fetch(repository), repository)
    assert repository.downloads["first-1.0.jar"] == 1
    assert repository.downloads["second-1.0.jar"] == 2


def test_a_broken_jar_in_the_download_cache(repository, tmp_path, start_python):
    fetch_and_be_killed(repository, start_python)
    (arrived,) = (tmp_path / "cache").rglob("first-1.0.jar")
    arrived.write_bytes(arrived.read_bytes()[:100])
    assert_complete(fetch(repository), repository)
    assert repository.downloads["first-1.0.jar"] == 2


def damage_by_losing_the_manifest(folder):
    (folder / "manifest.json").unlink()


def damage_by_garbling_the_manifest(folder):
    (folder / "manifest.json").write_text("[")


def damage_by_losing_a_jar(folder):
    (folder / "first-1.0.jar").unlink()


def damage_by_cutting_a_jar(folder):
    (folder / "first-1.0.jar").write_bytes(b"PK")


@pytest.mark.parametrize(
    "damage",
    [
        damage_by_losing_the_manifest,
        damage_by_garbling_the_manifest,
        damage_by_losing_a_jar,
        damage_by_cutting_a_jar,
    ],
)
def test_a_damaged_folder_is_never_used(repository, damage):
    folder = fetch(repository)
    damage(folder)
    assert_complete(fetch(repository), repository)
    assert repository.downloads["first-1.0.jar"] == 2


def test_a_jar_that_is_another(repository, tmp_path):
    path = next(path for path in repository.files if "second" in path)
    repository.files[path] = archive("something else")
    with pytest.raises(JarDownloadError, match=r"1 of the server's 3 jars are not what .*: second-1\.0\.jar"):
        fetch(repository)
    assert not (tmp_path / "cache" / "jars" / repository.jar_set.key).exists()
    assert repository.downloads["second-1.0.jar"] == 2


def test_a_jar_that_is_not_published(repository):
    repository.files = {path: data for path, data in repository.files.items() if "second" not in path}
    with pytest.raises(JarDownloadError, match=r"second.*PRAVEGA_SERDE_MAVEN_REPOSITORY"):
        fetch(repository)


def test_no_network(monkeypatch, repository, free_port):
    monkeypatch.setenv("PRAVEGA_SERDE_MAVEN_REPOSITORY", f"http://127.0.0.1:{free_port}/")
    with pytest.raises(JarDownloadError, match=r"^\[PRAVEGA-JAR-DOWNLOAD\] [^\n]*Connection refused") as caught:
        fetch(repository)
    assert caught.value.retriable
