"""The servers' jars in the user's cache: fetched once, complete or not there at all.

Jars are collected in a folder of another name, each is compared with its digest, a manifest is written, and then the
folder gets its name. A folder whose manifest is missing or disagrees is never used.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from connector.errors import JarDownloadError
from connector.local._cache import cache_dir
from connector.local._ivy import resolve
from connector.local._jarset import Jar, JarSet
from connector.local._java import Java, find_java
from connector.local._progress import JarProgress

__all__ = [
    "PRAVEGA_JARS",
    "PRAVEGA_VERSION",
    "REGISTRY_JARS",
    "REGISTRY_VERSION",
    "ensure_jars",
    "pravega_jars",
    "registry_jars",
]

PRAVEGA_VERSION: Final = "0.13.0"
PRAVEGA_JARS: Final = JarSet.load("pravega-standalone", PRAVEGA_VERSION)
REGISTRY_VERSION: Final = "0.6.0"
# A folder of their own: their versions of what both servers use differ.
REGISTRY_JARS: Final = JarSet.load("schemaregistry", REGISTRY_VERSION)

_MANIFEST: Final = "manifest.json"
_LOCK_SECONDS: Final = 3600.0
_ATTEMPTS: Final = 2


def pravega_jars() -> Path:
    """The folder with the jars of the Pravega server and the Java client, fetched now if they are not there yet.

    Raises JavaNotFoundError, JarDownloadError.
    """
    return ensure_jars(PRAVEGA_JARS, find_java())


def registry_jars() -> Path:
    """The folder with the jars of the schema registry's server, Java client and Java serializers, fetched if need be.

    Raises JavaNotFoundError, JarDownloadError.
    """
    return ensure_jars(REGISTRY_JARS, find_java())


def ensure_jars(jars: JarSet, java: Java) -> Path:
    """The folder with the set's jars, fetched now if they are not there yet.

    Several processes may call this at once: one fetches, the others wait. Raises JarDownloadError.
    """
    home = cache_dir() / "jars"
    folder = home / jars.key
    if _is_complete(folder):
        return folder
    home.mkdir(parents=True, exist_ok=True)
    with JarProgress(f"Server jars ({jars.name} {jars.version})") as progress:
        lock = _acquire(home / f"{jars.key}.lock", progress)
        with lock:
            # Another process may have fetched them while this one waited.
            if not _is_complete(folder):
                _fetch(jars, java, folder, progress)
    return folder


def _acquire(path: Path, progress: JarProgress) -> FileLock:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.say("Another process is fetching the server's jars; waiting for it")
        try:
            lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout as error:
            raise JarDownloadError(
                f"another process has held {path} for {_LOCK_SECONDS:.0f} s; end it and try again"
            ) from error
    return lock


def _fetch(jars: JarSet, java: Java, folder: Path, progress: JarProgress) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    ivy_cache = folder.with_name(f"{folder.name}.ivy")
    for attempt in range(1, _ATTEMPTS + 1):
        # What a process that was killed in here left behind.
        shutil.rmtree(partial, ignore_errors=True)
        _keep_whole(jars, ivy_cache)
        progress.expect(len(jars.jars))
        try:
            resolve(jars.ivy_module(), java, cache=ivy_cache, target=partial, progress=progress)
            _seal(jars, partial)
        except JarDownloadError as error:
            if attempt == _ATTEMPTS:
                raise
            progress.say(f"{error.message}; trying again")
        else:
            break
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    # A second copy of every jar, of no use any more.
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _keep_whole(jars: JarSet, ivy_cache: Path) -> None:
    """Leave in Ivy's cache only jars that are right, which need not be fetched again after a cut-off download."""
    known = {jar.file_name: jar for jar in jars.jars}
    for path in [path for path in ivy_cache.rglob("*") if path.is_file()]:
        jar = known.get(path.name)
        if jar is None or not jar.is_at(path):
            path.unlink()


def _seal(jars: JarSet, folder: Path) -> None:
    """Compare every jar with its digest, then write the manifest that makes the folder complete."""
    wrong = [jar.file_name for jar in jars.jars if not jar.is_at(folder / jar.file_name)]
    if wrong:
        raise JarDownloadError(
            f"{len(wrong)} of the server's {len(jars.jars)} jars are not what they should be: {', '.join(wrong[:3])}"
        )
    manifest = {jar.file_name: _size(jar, folder) for jar in jars.jars}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def _size(jar: Jar, folder: Path) -> int:
    return (folder / jar.file_name).stat().st_size


def _is_complete(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        return bool(manifest) and all((folder / name).stat().st_size == size for name, size in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False
