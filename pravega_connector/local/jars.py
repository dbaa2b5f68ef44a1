"""Jars of the servers in the user's cache, downloaded once. A folder is complete, or it does not exist.

A lock file next to this module has the coordinates, size and SHA-256 of each jar of a server's class path. Therefore no
metadata is resolved at run time, and no jar runs that differs from the tested one. ``tools/relock.py`` writes the lock
file.

Jars are downloaded to a folder ``KEY.partial``. When all have arrived, the folder gets a manifest and is renamed. A
download that ended early is resumed. A jar that has changed since is downloaded again: each use compares its size and
time with those of the last digest check, and the digest if they differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.errors import JarDownloadError
from pravega_connector.local.file_lock import file_lock
from pravega_connector.local.maven import MAVEN_CENTRAL, REPOSITORY_VARIABLE, Jar
from pravega_connector.local.progress import JarProgress, decimal
from pravega_serde.errors import MissingExtraError

if TYPE_CHECKING:
    from pravega_connector.local.download import Repository

_MANIFEST: Final = "manifest.json"
_CHECKED: Final = "checked.json"  # jar -> size, time of change, and digest at the last comparison
_LOCK_SECONDS: Final = 3600.0
_FETCH_SECONDS: Final = 1800.0
_READ_SECONDS: Final = 30.0
PRAVEGA_VERSION: Final = "0.13.0"
REGISTRY_VERSION: Final = "0.6.0"
CACHE_VARIABLE: Final = "PRAVEGA_SERDE_CACHE"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Class path of a server."""

    name: str
    version: str
    jars: tuple[Jar, ...]

    @classmethod
    def load(cls, name: str, version: str, folder: Path | None = None) -> JarSet:
        """Read a lock file: from the folder, or the one that ships with this package."""
        lines = cls.lock_file(name, version, folder).read_text().splitlines()
        return cls(name, version, tuple(Jar.from_line(line) for line in lines if not line.startswith("#")))

    @staticmethod
    def lock_file(name: str, version: str, folder: Path | None = None) -> Path:
        """Path of the lock file of a set."""
        return (folder or Path(__file__).parent) / f"{name}-{version}.lock"

    @property
    def key(self) -> str:
        """Name of the set's folder in the cache. It differs for each set of jars."""
        text = "\n".join(jar.identity for jar in self.jars)
        return f"{self.name}-{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def size(self) -> int:
        """Number of bytes of all jars."""
        return sum(jar.size for jar in self.jars)


PRAVEGA_JARS: Final = JarSet.load("pravega-standalone", PRAVEGA_VERSION)
# In a separate folder, because the servers use different versions of the same libraries.
REGISTRY_JARS: Final = JarSet.load("schemaregistry", REGISTRY_VERSION)


def pravega_jars(repository: str | None = None) -> Path:
    """Return the folder with the jars of the Pravega server and the Java client. Download missing jars.

    ``repository`` is the root URL of a mirror of Maven Central. The default is the environment variable
    ``PRAVEGA_SERDE_MAVEN_REPOSITORY``, or Maven Central. Raises JarDownloadError, or ConfigError for an invalid URL.
    """
    return ensure_jars(PRAVEGA_JARS, repository)


def registry_jars(repository: str | None = None) -> Path:
    """Return the folder with the jars of the schema registry and its Java client: see :func:`pravega_jars`."""
    return ensure_jars(REGISTRY_JARS, repository)


def ensure_jars(
    jars: JarSet,
    repository: str | None = None,
    *,
    seconds: float = _FETCH_SECONDS,
    read_seconds: float = _READ_SECONDS,
) -> Path:
    """Return the folder with the jars of the set. Download missing jars.

    Several processes may call this at the same time: one downloads, the others wait. ``seconds`` limits the whole
    download. ``read_seconds`` limits the wait for a connection, and for the next bytes of an answer. Raises the errors
    of :func:`pravega_jars`.
    """
    home = cache_dir() / "jars"
    folder = home / jars.key
    if _is_complete(jars, folder):
        return folder
    try:
        from pravega_connector.local.download import Repository  # noqa: PLC0415 - only a fetch needs httpx2
    except ImportError as error:
        raise MissingExtraError("httpx2", "local", purpose="the download of the server's jars") from error
    source = Repository(repository or os.environ.get(REPOSITORY_VARIABLE) or MAVEN_CENTRAL, read_seconds)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(source),
            JarProgress(f"Server jars ({jars.name} {jars.version})") as progress,
            _alone(home / f"{jars.key}.lock", progress),
        ):
            # Another process may have fetched them while this one waited.
            if not _is_complete(jars, folder):
                _fetch(jars, source, folder, progress, seconds)
    except OSError as error:
        raise JarDownloadError(
            f"cannot write the server's jars to {home}: {error.strerror or error}; make room for {decimal(jars.size)} "
            f"there, or name another folder in {CACHE_VARIABLE}"
        ) from error
    return folder


@contextlib.contextmanager
def _alone(path: Path, progress: JarProgress) -> Iterator[None]:
    """Hold the lock on a file during the block. Raises JarDownloadError if another process keeps it."""
    waiting = "Another process is fetching the server's jars; waiting for it"
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(file_lock(path, _LOCK_SECONDS, waiting=lambda: progress.say(waiting)))
        except TimeoutError as error:
            raise JarDownloadError(
                f"another process has held {path} for {_LOCK_SECONDS:.0f} s; end it and try again"
            ) from error
        yield


def _is_complete(jars: JarSet, folder: Path) -> bool:
    """Return True if all jars are in the folder, byte for byte."""
    if _read(folder / _MANIFEST) != {jar.file_name: jar.size for jar in jars.jars}:
        return False
    checked = _read(folder / _CHECKED)
    now: dict[str, list[int | str]] = {}
    for jar in jars.jars:
        path = folder / jar.file_name
        try:
            found = path.stat()
        except OSError:
            return False
        # Not st_mtime, which a copy or an archive can set to any value.
        stamp = now[jar.file_name] = [found.st_size, found.st_ctime_ns, jar.sha256]
        if checked.get(jar.file_name) != stamp and not (found.st_size == jar.size and jar.is_at(path)):
            return False
    if now != checked:
        _write(folder / _CHECKED, now)
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, list[int | str]]) -> None:
    """Replace the file atomically, because other processes may use it. Do nothing if the folder is not writable."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        new.write_text(json.dumps(content))
        new.replace(path)


def _fetch(jars: JarSet, source: Repository, folder: Path, progress: JarProgress, seconds: float) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    partial.mkdir(exist_ok=True)
    missing = _remove_unusable(jars, partial)
    arrived = jars.size - sum(jar.size for jar in missing)
    arrived += sum(path.stat().st_size for path in partial.glob("*.part"))
    progress.begin(jars.size, arrived, source.root)
    source.download(missing, partial, progress, seconds)
    progress.end()
    (partial / _MANIFEST).write_text(json.dumps({jar.file_name: jar.size for jar in jars.jars}, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _remove_unusable(jars: JarSet, partial: Path) -> list[Jar]:
    """Keep only complete and partial jars in the folder. Return the jars that are not complete."""
    missing = [jar for jar in jars.jars if not jar.is_at(partial / jar.file_name)]
    usable = {f"{jar.file_name}.part" for jar in missing} | {jar.file_name for jar in set(jars.jars) - set(missing)}
    for path in list(partial.iterdir()):
        if path.name not in usable:
            path.unlink()
    return missing


def cache_dir() -> Path:
    """Return the cache folder of this user, which may not exist yet.

    It is ``PRAVEGA_SERDE_CACHE``, else ``XDG_CACHE_HOME/pravega-serde``, else ``~/.cache/pravega-serde``.
    """
    explicit = os.environ.get(CACHE_VARIABLE)
    if explicit:
        return Path(explicit).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
    return (Path(base) if os.path.isabs(base) else _home() / ".cache") / "pravega-serde"


def _home() -> Path:
    # HOME may be empty, which pathlib would treat as the root folder.
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
