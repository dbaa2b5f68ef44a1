"""Findings of ``pravega-serde doctor``, and the checks of this machine: Python, packages, Java, free space."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Final, Literal

from pravega_connector.errors import JavaNotFoundError
from pravega_connector.local.jvm import find_java
from pravega_connector.operations.cli.exit_codes import ExitCode, exit_code
from pravega_serde.errors import PravegaError

Status = Literal["ok", "warning", "failed", "skipped"]

_DISTRIBUTION: Final = "pravega-serde"
# Extras that install the tools of a checkout, and not what users run.
_NOT_FOR_USERS: Final = frozenset({"demo", "dev", "docs", "rust", "test"})
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?([^;]*)(?:;.*extra == ['\"]([^'\"]+)['\"])?")
_BOUND: Final = re.compile(r"(>=|<|==)\s*([0-9.]+)")
#: Bytes of a temporary folder below which there is a warning, and a failure. Spark spills and unpacks into it.
_SCARCE_SPACE: Final = 1 << 30
_NO_SPACE: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check."""

    check: str
    status: Status
    detail: str
    subject: str = ""
    remedy: str = ""
    """What to do; empty if the status is ``ok``."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and versions, for scripts."""
    code: ExitCode = ExitCode.FAILED
    """Exit code of a command with this failure."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding for ``--json``."""
        found = {"check": self.check, "subject": self.subject, "status": self.status, "detail": self.detail}
        return found | {"remedy": self.remedy, "values": dict(self.values)}


def failure(check: str, error: PravegaError, remedy: str, *, subject: str = "") -> Finding:
    """Return the finding for an error."""
    return Finding(
        check=check, status="failed", subject=subject, detail=str(error), remedy=remedy, code=exit_code(error)
    )


def check_machine() -> Iterator[Finding]:
    """Check the installation and the machine of this process."""
    version = platform.python_version()
    yield Finding(
        check="python", status="ok", detail=f"Python {version} at {sys.executable}", values={"version": version}
    )
    yield from _check_packages()
    yield _check_java()
    yield free_space("free space", *_temporary_space())


def package_versions() -> dict[str, str]:
    """Return the versions of this project and of the installed packages that it uses."""
    found = {_DISTRIBUTION: metadata.version(_DISTRIBUTION)}
    for name, _, _ in _requirements():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed
    return found


def _check_packages() -> Iterator[Finding]:
    versions = package_versions()
    text = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    yield Finding(check="packages", status="ok", detail=text, values=versions)
    for name, bounds, extra in _requirements():
        if name in versions and not _within(versions[name], bounds):
            install = f"'{_DISTRIBUTION}[{extra}]'" if extra else _DISTRIBUTION
            yield Finding(
                check="packages",
                status="failed",
                subject=name,
                detail=f"{name} {versions[name]} is installed, {_DISTRIBUTION} requires {bounds}",
                remedy=f"run pip install --upgrade {install}",
            )


def _requirements() -> Iterator[tuple[str, str, str | None]]:
    """Yield the name, the bounds and the extra of each package that this project uses."""
    for text in metadata.requires(_DISTRIBUTION) or ():
        match = _REQUIREMENT.match(text)
        assert match is not None
        name, bounds, extra = match[1], match[2].strip(), match[3]
        if name != _DISTRIBUTION and (extra is None or extra not in _NOT_FOR_USERS):
            yield name, bounds, extra


def _within(version: str, bounds: str) -> bool:
    found = _numbers(version)
    compared = {">=": found.__ge__, "<": found.__lt__, "==": found.__eq__}
    return all(compared[bound[1]](_numbers(bound[2])) for bound in _BOUND.finditer(bounds))


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return (*numbers, *[0] * (3 - len(numbers)))


def _check_java() -> Finding:
    try:
        java = find_java()
    except JavaNotFoundError as error:
        return Finding(
            check="java",
            status="warning",
            detail=error.message,
            remedy="install Java 17 or newer if this machine runs Spark or a local server; the client needs no Java",
        )
    return Finding(
        check="java", status="ok", detail=f"Java {java.version} at {java.path}", values={"version": java.version}
    )


def _temporary_space() -> tuple[str, int | None]:
    """Return the temporary folder and its free bytes; no bytes if no folder can be written."""
    try:
        folder = tempfile.gettempdir()
        return folder, shutil.disk_usage(folder).free
    except OSError as error:
        return str(error), None


def free_space(check: str, folder: str, free: int | None, *, subject: str = "") -> Finding:
    """Return the finding for the free bytes of a temporary folder. Without bytes, ``folder`` has the reason."""
    remedy = "free some space, or set TMPDIR (for Spark also spark.local.dir) to a folder on a larger disk"
    if free is None:
        return Finding(
            check=check, status="failed", subject=subject, detail=f"no temporary folder: {folder}", remedy=remedy
        )
    status: Status = "failed" if free < _NO_SPACE else "warning" if free < _SCARCE_SPACE else "ok"
    return Finding(
        check=check,
        status=status,
        subject=subject,
        detail=f"{folder} has {free / 1e9:.1f} GB free",
        remedy="" if status == "ok" else remedy,
        values={"free_bytes": free},
        code=ExitCode.UNAVAILABLE,
    )
