"""A home of Spark whose Python processes take PySpark as it is installed.

Spark puts ``python/lib/pyspark.zip`` in front of the path of all of them. Its modules are not compiled, and each of the
hundreds of processes that the tests start would compile them anew, half a second of a core: so here it is left out.
"""

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["spark_home"]

_LEFT_OUT = Path("python/lib/pyspark.zip")
_START = Path("bin/spark-submit")


def spark_home() -> Path | None:
    """The home, made of links to the installed PySpark; None without one."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    # Resolved: a checkout that reaches the environment by a link may be gone before the environment is.
    installed = Path(spec.origin).resolve().parent
    home = Path(sys.prefix).resolve() / f"spark-home-{version('pyspark')}"
    if not (home / _START).exists():
        shutil.rmtree(home, ignore_errors=True)  # links to what is not there any more
        made = Path(tempfile.mkdtemp(dir=home.parent))
        _link(installed, made, Path())
        with suppress(OSError):  # another process was faster
            made.rename(home)
    return home


def _link(installed: Path, made: Path, folder: Path) -> None:
    for entry in os.listdir(installed / folder):
        path = folder / entry
        if path in _LEFT_OUT.parents:
            (made / path).mkdir()
            _link(installed, made, path)
        elif path != _LEFT_OUT:
            (made / path).symlink_to(installed / path)
