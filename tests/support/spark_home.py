"""Home of Spark whose Python processes use the installed PySpark.

Spark puts ``python/lib/pyspark.zip`` first in the path of its Python processes. The modules in it are not compiled.
Each of the hundreds of processes in the tests would compile them again, which takes half a second of a core. Therefore
this home does not contain the file.
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
    """Return the home, which has links to the installed PySpark, or None without PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    # Resolved, because a checkout with a link to the environment may be deleted before the environment.
    installed = Path(spec.origin).resolve().parent
    home = Path(sys.prefix).resolve() / f"spark-home-{version('pyspark')}"
    if not (home / _START).exists():
        shutil.rmtree(home, ignore_errors=True)  # its links are broken
        made = Path(tempfile.mkdtemp(dir=home.parent))
        _link(installed, made, Path())
        with suppress(OSError):  # another process created it first
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
