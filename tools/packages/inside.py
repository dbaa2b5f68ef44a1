"""Checks of an installed pravega-serde: ``python -m tools.packages.inside``, in an environment that has it.

Prints JSON: the version, public names by package that cannot be loaded, with the error, the result of each extra
(:mod:`tools.packages.extras`), and the number of blocks of a page that ran. The folder of the checkout must not have
the packages: the installed ones are tested.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pravega_connector.testing import InProcessPravega, InProcessRegistry
from tests.support import pages
from tools.packages import extras

PACKAGES = ("connector", "pravega_connector", "pravega_serde", "pyspark_pravega")
PAGES = ("README.md", "docs/get-started/quick-start.md")


def not_installed() -> list[str]:
    """Packages that are not loaded from the environment."""
    origins = {name: importlib.util.find_spec(name).origin or "" for name in PACKAGES}  # type: ignore[union-attr]
    return [name for name, origin in origins.items() if not Path(origin).is_relative_to(sys.prefix)]


def unloadable() -> dict[str, str]:
    """Public names that cannot be loaded, with the reason."""
    found = {}
    for name in PACKAGES:
        try:
            package: Any = importlib.import_module(name)
        except ImportError as error:
            found[name] = str(error)
            continue
        for public in package.__all__:
            try:
                getattr(package, public)
            except Exception as error:
                found[f"{name}.{public}"] = str(error)
    return found


def blocks_run() -> dict[str, int]:
    """Return how many blocks of each page have run: those that need neither Spark nor a package that is missing."""
    with_registry, with_commands = (importlib.util.find_spec(name) is not None for name in ("httpx2", "click"))
    run = pages.run_by(pages.ON_SERVERS)
    found = {}
    for page in PAGES:
        blocks = [
            block
            for block in run[page]
            if (with_registry or pages.REGISTRY not in block.text)
            and (with_commands or "pravega-serde" not in block.text)
        ]
        with tempfile.TemporaryDirectory() as folder, InProcessPravega() as server, InProcessRegistry() as registry:
            os.chdir(folder)
            os.environ |= {"PRAVEGA_CONTROLLER_URI": server.uri, "XDG_CONFIG_HOME": folder}
            follower = pages.Follower(Path(folder), server.uri, registry.uri)
            with contextlib.redirect_stdout(io.StringIO()):
                for block in blocks:
                    follower.run(block)
            follower.close()
            os.chdir("/")
        found[page] = len(blocks)
    return found


if __name__ == "__main__":
    result = {
        "version": version("pravega-serde"),
        "not installed": not_installed(),
        "unloadable": unloadable(),
        "extras": {name: extras.tried(name) for name in extras.EXTRAS},
        "blocks": blocks_run(),
    }
    print(json.dumps(result))
