"""Parts of the JSON that the driver, the JVM of an executor and its Python process exchange about tasks."""

from __future__ import annotations

import base64
import pickle
import traceback
from collections.abc import Callable
from typing import Any, Final

from pravega_connector.rows.options import CommonOptions
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.stores.segment_stores import SegmentPlace
from pravega_serde.errors import PravegaError

_NEVER: Final = 1e15
"""Unix time in seconds. JSON has no infinity."""


class NotInJvmError(Exception):
    """Reason for which Python must read or decode: a noun, after "is read with"."""


class TaskOptions(Exchanged):
    """Options of a query with the resolved configuration, for a Python process on an executor."""

    def __init__(self, options: CommonOptions) -> None:
        _ = options.config
        self.options = options


def packed(value: object) -> str:
    """Return a pickled value as text for JSON."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpacked(text: str) -> Any:
    """Return the value of a text of :func:`packed`."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - Spark's own protocol between its processes is pickle


def place_fields(place: SegmentPlace) -> dict[str, Any]:
    """Return a place as fields of a JSON object."""
    host, port = place.endpoint
    return {"host": host, "port": port, "token": place.token, "renewal": min(place.renewal, _NEVER)}


def answered(answer: Callable[[], Any]) -> dict[str, Any]:
    """Return the JSON object with the result of ``answer``, or with the text of its error."""
    try:
        return {"ok": answer()}
    except (PravegaError, Warning) as error:  # a warning is raised if the program turns warnings into errors
        return {"error": "".join(traceback.format_exception_only(error)).strip()}
    except Exception:  # noqa: BLE001 - the JVM raises it
        return {"error": traceback.format_exc().strip()}
