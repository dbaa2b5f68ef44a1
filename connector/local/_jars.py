"""The servers' jars in the user's cache: fetched once, complete or not there at all.

Jars are collected in a folder of another name, each is opened as the archive it should be, a manifest is written, and
then the folder gets its name. A folder whose manifest is missing or disagrees is never used.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from connector.errors import JarDownloadError
from connector.local._cache import cache_dir
from connector.local._ivy import JarSet, Module, resolve
from connector.local._java import Java
from connector.local._progress import JarProgress

__all__ = ["PRAVEGA_JARS", "PRAVEGA_VERSION", "ensure_jars"]

PRAVEGA_VERSION: Final = "0.13.0"
_PROTOBUF_VERSION: Final = "3.19.6"

PRAVEGA_JARS: Final = JarSet(
    name="pravega-standalone",
    main=Module("io.pravega", "pravega-standalone", PRAVEGA_VERSION),
    # The published description leaves protobuf-java at 2.5.0, which the controller cannot run with.
    forced=(Module("com.google.protobuf", "protobuf-java", _PROTOBUF_VERSION),),
    excluded_organisations=(
        # Long-term storage on other systems, which an in-memory server never touches.
        "org.apache.hadoop",
        "com.azure",
        "com.google.cloud",
        "software.amazon.awssdk",
        "com.emc.ecs",
        # Its old ASM breaks the REST server on Java 17.
        "com.sun.jersey",
        # Logging goes through logback alone.
        "log4j",
    ),
    excluded_modules=("slf4j-reload4j",),
    jars=156,
)

_MANIFEST: Final = "manifest.json"
_LOCK_SECONDS: Final = 3600.0
_ATTEMPTS: Final = 2


def ensure_jars(jars: JarSet, java: Java) -> Path:
    """The folder with the set's jars, fetched now if they are not there yet.

    Several processes may call this at once: one fetches, the others wait. Raises JarDownloadError.
    """
    home = cache_dir() / "jars"
    folder = home / jars.key
    if _is_complete(folder):
        return folder
    home.mkdir(parents=True, exist_ok=True)
    with JarProgress(f"Server jars ({jars.main.name} {jars.main.version})", jars.jars) as progress:
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
        progress.say("Another process is fetching the server jars; waiting for it")
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
        try:
            resolve(jars, java, cache=ivy_cache, target=partial, progress=progress)
            _verify(partial)
        except JarDownloadError as error:
            if attempt == _ATTEMPTS:
                raise
            progress.say(f"{error.message}; trying again")
            _drop_broken(ivy_cache)
        else:
            break
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    # A second copy of every jar, of no use any more.
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _verify(folder: Path) -> None:
    """Open every jar, then write the manifest that makes the folder complete."""
    archives = sorted(folder.iterdir())
    broken = [path.name for path in archives if not _opens(path)]
    if broken or not archives:
        raise JarDownloadError(f"{len(broken)} of {len(archives)} server jars arrived broken: {', '.join(broken[:3])}")
    manifest = {path.name: path.stat().st_size for path in archives}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def _opens(path: Path) -> bool:
    """Whether the archive is whole: its directory is read, which stands at the end."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _drop_broken(ivy_cache: Path) -> None:
    """Remove what cannot be trusted from Ivy's cache: broken jars, and all descriptions, which are small."""
    for path in ivy_cache.rglob("*"):
        if path.is_file() and not (path.suffix in {".jar", ".nar"} and _opens(path)):
            path.unlink()


def _is_complete(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        return bool(manifest) and all((folder / name).stat().st_size == size for name, size in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False
