"""Setup of a Spark session: default options of the format, short start-up and latency, and streams as tables.

Spark plans a Python source in processes that have neither the session nor its configuration. They get only the class
that was registered. So the defaults are attributes of a class that is created for the session.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_connector.rows.options import option_hint, texts
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.fork_server.session import UnavailableError, register
from pravega_connector.spark.jvm.session import (
    NOT_BUILT,
    leave_to_python,
    obstacle,
    use_jvm_reader,
    use_local_checkpoint_files,
)
from pravega_connector.spark.selection import all_names
from pravega_connector.spark.versions import check_spark, register_source, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEDGER: Final = "-ledger"  # suffix of the ledger of a stream that is written exactly once
_UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_WORKERS_PYTHON: Final = "spark.pyspark.python"
_TRANSFER_BUFFER: Final = "spark.sql.execution.pandas.udf.buffer.size"
# Characters that the name of a table or a view must not have.
_NOT_IN_NAMES: Final = re.compile(r"\W", re.ASCII)

_log: Final = logging.getLogger(__name__)
# The data source of each configured session and, for sessions that Spark clones in foreachBatch, of its context.
_sources: Final[weakref.WeakKeyDictionary[object, type[PravegaDataSource]]] = weakref.WeakKeyDictionary()


def configure(
    spark: SparkSession | SparkSession.Builder,
    config: PravegaConfig | None = None,
    *,
    jvm_reader: bool = True,
    fork_server: bool = True,
    unix_sockets: bool = True,
    local_checkpoint_files: bool = True,
    **options: Any,
) -> SparkSession:
    """Set a configuration and options as the defaults of ``format("pravega")`` in a session, and return the session.

    If you pass a builder, the session is started first. Without ``config``, the settings come from the session
    (``spark.pravega.controller.uri`` and others, as :meth:`PravegaConfig.from_spark_conf` reads them), then from the
    environment of this process. Options of a read, a write or a table take precedence. The functions ``read`` and
    ``write`` use the same defaults.

    The credentials are then not among the options of a query, so they are in no plan and no catalog. Spark keeps them
    in its memory, and passes them to the processes that plan. A second call replaces the defaults of the first.

    Spark starts the first ``python3`` of the ``PATH`` for its Python processes, also if this program runs in a virtual
    environment. With a local master, they get the Python of this program, unless ``PYSPARK_PYTHON`` is set. The
    setting ``spark.pyspark.python``, which Spark reads only in ``spark-submit``, takes precedence with any master.

    The call also switches on everything that makes reads and short queries faster in this session. Set a parameter to
    False to leave it out:

    - ``jvm_reader``: raw events are read and written inside Spark's JVM, see options ``raw_reader`` and ``raw_writer``.
      The driver must be a Python program with a classic session, and the reader must have been built.
    - ``fork_server``: on Linux with a local master, Python processes of this format start as forks of a process that
      has imported their modules. It ends with the driver.
    - ``unix_sockets``: ``spark.python.unix.domain.socket.enabled`` is set to true for all Python processes of the
      application. Spark reads it at the start of the application only, so pass the builder.
    - ``local_checkpoint_files``: with the JVM reader and a local master, Spark writes the files of local checkpoints
      without starting processes.

    ``spark.sql.execution.pandas.udf.buffer.size`` becomes 1 MiB in this session, unless it has a value. One log line
    has the reason for each part that is not possible: at level WARNING if the JVM reader was not built, else INFO.

    Raises UnknownOptionError, and UnsupportedModeError in Spark 3.5, unless the JVM reader is used.
    """
    if not jvm_reader:
        check_spark("configure without jvm_reader")
    known = all_names()
    for name in options:
        if name.lower() not in known:
            raise UnknownOptionError(f"unknown option {name!r}{option_hint(name, known)}")
    session = _started(spark, unix_sockets)
    _choose_python(session)
    source = _made_source(session, config, options, is_configured=True)
    for owner in _owners(session):
        _sources[owner] = source
    if not hasattr(session, "dataSource"):  # Spark 3.5
        if not use_jvm_reader(session, source):
            check_spark(f"a session without the JVM reader ({obstacle(session)})")
        return session
    register_source(session, source)
    if _TRANSFER_BUFFER not in session.conf.getAll:
        session.conf.set(_TRANSFER_BUFFER, str(1 << 20))  # Spark accepts no units here
    parts = {
        "JVM reader": lambda: _use_jvm_reader(session, source, jvm_reader),
        "fork server": lambda: _use_fork_server(session, source) if fork_server else None,
        "unix domain sockets": lambda: _no_unix_sockets(session) if unix_sockets else None,
        "local checkpoint files": lambda: _use_local_checkpoint_files(session, jvm_reader and local_checkpoint_files),
    }
    _switch_on(parts)
    return session


def source_of(session: SparkSession) -> type[PravegaDataSource]:
    """Return the data source of a configured session, or one with the connection of the session's settings."""
    for owner in _owners(session):
        if owner in _sources:
            return _sources[owner]
    return _made_source(session, None, {}, is_configured=False)


def _made_source(
    session: SparkSession, config: PravegaConfig | None, options: Mapping[str, Any], *, is_configured: bool
) -> type[PravegaDataSource]:
    """Return a data source with defaults. Without ``config``, the connection comes from the session's settings."""
    found = PravegaConfig.resolve(properties=settings_of(session)) if config is None else config
    given = texts({"tls_validate_hostname": found.tls_validate_hostname, **found.options(), **options})
    # A class created in this function is pickled with its contents, not by its name.
    return type("SessionDataSource", (PravegaDataSource,), {"defaults": given, "is_configured": is_configured})


def _owners(session: SparkSession) -> list[object]:
    return [session, session.sparkContext] if hasattr(session, "_jsparkSession") else [session]


def _switch_on(parts: Mapping[str, Callable[[], str | None]]) -> None:
    """Call each part, which returns the reason if it is not possible, and log all reasons."""
    missing: dict[str, list[str]] = {}
    for name, part in parts.items():
        try:
            reason = part()
        except Exception as error:  # noqa: BLE001 - Spark of a platform may refuse any of these calls
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if reason is not None:
            missing.setdefault(reason, []).append(name)
    if missing:
        text = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in missing.items())
        _log.log(logging.WARNING if NOT_BUILT in missing else logging.INFO, "this Spark session does without: %s", text)


def _started(spark: SparkSession | SparkSession.Builder, unix_sockets: bool) -> SparkSession:
    """Return the session, or start it with the builder."""
    if not hasattr(spark, "getOrCreate"):
        return spark
    if unix_sockets and _UNIX_SOCKETS not in spark._options and _sockets_obstacle() is None:
        spark = spark.config(_UNIX_SOCKETS, "true")
    return spark.getOrCreate()


def _sockets_obstacle() -> str | None:
    """Return the reason why Python processes of an application that starts now cannot use unix domain sockets."""
    if not hasattr(socket, "AF_UNIX"):
        return "this Python does not have them"
    mask = os.umask(0o077)
    os.umask(mask)
    # Spark does not authenticate its processes then: the permissions of the files protect them.
    if mask & 0o022 != 0o022:
        return "other users could connect to them: set the umask to 022"
    return None


def _choose_python(session: SparkSession) -> None:
    """Set the Python of Spark's processes, unless the environment has set it or the session has no context."""
    if not hasattr(session, "_jsparkSession") or os.environ.get("PYSPARK_PYTHON"):
        return
    context = session.sparkContext
    chosen = context.getConf().get(_WORKERS_PYTHON)
    if chosen is None and context.master.startswith("local") and sys.executable:
        chosen = sys.executable
    if chosen is not None:
        # Every function and data source that is registered from now on carries this path to the JVM.
        context.pythonExec = chosen


def _use_jvm_reader(session: SparkSession, source: type[PravegaDataSource], use: bool) -> str | None:
    if not use:
        leave_to_python(session)
        return None
    reason = obstacle(session)
    if reason is None:
        use_jvm_reader(session, source)
    return reason


def _use_fork_server(session: SparkSession, source: type[PravegaDataSource]) -> str | None:
    try:
        register(session, source)
    except UnavailableError as reason:
        return str(reason)
    return None


def _no_unix_sockets(session: SparkSession) -> str | None:
    # A builder also sets it in the session of a running application, where it has no effect.
    settings = session.sparkContext.getConf() if hasattr(session, "_jsparkSession") else session.conf
    if settings.get(_UNIX_SOCKETS, "false") == "true":
        return None
    missing = f"{_UNIX_SOCKETS} is not set: pass SparkSession.builder before the application starts"
    return _sockets_obstacle() or missing


def _use_local_checkpoint_files(session: SparkSession, use: bool) -> str | None:
    reason = obstacle(session) if use else None
    return use_local_checkpoint_files(session, use) if reason is None else reason


def register_streams(
    spark: SparkSession,
    scope: str,
    *,
    database: str | None = None,
    views: bool = False,
    replace: bool = False,
    **options: Any,
) -> dict[str, str]:
    """Create a table for each stream of a scope, with the same options; return the table names by stream name.

    The tables are in ``database``, by default the current one. With ``views`` they are temporary views, for which Spark
    keeps the result of the first read. The name of a table is the name of its stream, with ``_`` for characters that
    Spark does not allow. Existing tables do not change, unless ``replace`` is set. Pravega's own streams are left out,
    and so are the ledgers of streams that are written exactly once.

    Raises ConfigError for two streams with the same table name, ScopeNotFoundError. Also raises the errors of a read
    with these options, in the form in which Spark raises them.
    """
    given = texts(options)
    listed = spark.read.format("pravega").options(**given).option("metadata", "Streams").option("scope", scope).load()
    streams = {row.stream_name for row in listed.collect()}
    streams -= {name + _LEDGER for name in streams}
    names: dict[str, str] = {}
    for stream in sorted(streams):
        name = _NOT_IN_NAMES.sub("_", stream)
        for other, taken in names.items():
            if taken.lower() == name.lower():
                raise ConfigError(
                    f"the streams {other!r} and {stream!r} of scope {scope!r} would have the same table name, "
                    f"{name!r}: create their tables with CREATE TABLE"
                )
        names[stream] = name
    for stream, name in names.items():
        own = {**given, "stream": f"{scope}/{stream}"}
        if views:
            spark.read.format("pravega").options(**own).load().createOrReplaceTempView(name)
            continue
        full = name if database is None else f"{database}.{name}"
        if replace:
            spark.sql(f"DROP TABLE IF EXISTS {full}")
        if not spark.catalog.tableExists(full):
            spark.catalog.createTable(full, source="pravega", **own)
    return names
