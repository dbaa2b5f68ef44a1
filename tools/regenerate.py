"""Generate ``controller_pb2`` from ``schemas/controller.proto``.

Run ``python -m tools.regenerate`` in a checkout. Generated code refuses a protobuf runtime older
than its compiler, so the compiler is pinned to the oldest runtime that this project supports, and is in a temporary
environment: its protobuf and the one in use need not agree.
"""

from __future__ import annotations

import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Final

# Its code runs on protobuf 6.31.1 and up, below 8 (pyproject.toml).
COMPILER: Final = "grpcio-tools==1.75.1"
PACKAGE: Final = "pravega_connector/controller/_proto"
LENIENT: Final = '# mypy: disable-error-code="type-arg, no-untyped-def"\n'  # protoc's stubs are not strict
ROOT: Final = Path(__file__).parents[1]


def arguments(schemas: Path, output: Path) -> list[str]:
    """Arguments for protoc that write the module and its stub below ``output``.

    The virtual folder before ``=`` becomes part of the registered file name: a bare ``controller.proto`` would clash
    with any other package that has one, because all share protobuf's default pool.
    """
    return [
        f"--proto_path={PACKAGE}={schemas}",
        f"--python_out={output}",
        f"--pyi_out={output}",
        f"{PACKAGE}/controller.proto",
    ]


def main() -> None:
    """Write ``controller_pb2.py`` and ``controller_pb2.pyi`` of the client."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", COMPILER], check=True)
        subprocess.run([python, "-m", "grpc_tools.protoc", *arguments(ROOT / "schemas", ROOT)], check=True)
    stub = ROOT / PACKAGE / "controller_pb2.pyi"
    stub.write_text(LENIENT + stub.read_text())


if __name__ == "__main__":
    main()
