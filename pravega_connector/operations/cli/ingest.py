"""``pravega-serde ingest``: write the records of files or of a Kafka topic to a stream, exactly once."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
from rich import progress as rich
from rich.console import Console
from rich.text import Text

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli import arguments, step_options
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import SIGNAL, ExitCode
from pravega_connector.operations.ingest import (
    VARIANTS,
    Counts,
    FileOptions,
    FileSource,
    IngestPlan,
    IngestSummary,
    KafkaOptions,
    KafkaSource,
    Settings,
    Sizes,
    parse_kafka_config,
    parse_types,
    plan,
)
from pravega_connector.operations.ingest import ingest as ingest_source
from pravega_connector.operations.ingest.kafka_source import is_kafka
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_serde.errors import PravegaError

_SIZES: Final = Sizes()
_SETTINGS: Final = Settings()
_SHOWN: Final = 10

_OPTIONS: Final = (
    click.argument("paths", metavar="PATH...", nargs=-1, required=True),
    arguments.stream,
    arguments.controller,
    click.option("--format", metavar="NAME", help="Format of the events.  [default: json; text files: their lines]"),
    click.option("--avro-schema", metavar="SCHEMA", help="Avro schema, as text or path.  [default: from the columns]"),
    arguments.registry,
    arguments.registry_group,
    click.option(
        "--key",
        metavar="COLUMN",
        help="Column with the routing key.  [default: the key of a record in Kafka; the file name or partition, which "
        "keeps files and partitions in order]",
    ),
    click.option(
        "--target-column",
        metavar="COLUMN",
        help="Column with the stream of each record, in the scope of STREAM. Records without a value go to STREAM.",
    ),
    click.option("--unordered", is_flag=True, help="Write without a routing key: events of a file go to all segments."),
    arguments.more_options("sink"),
    click.option(
        "--input",
        metavar="KIND",
        help="csv, tsv, jsonl, text, avro or parquet.  [default: from the file name]  For Kafka: format of the values, "
        "such as json.  [default: bytes, which stay as they are]",
    ),
    click.option(
        "--input-option",
        "input_options",
        multiple=True,
        metavar="NAME=VALUE",
        callback=arguments.pairs,
        help="Option of the Spark source that decodes the values of records in Kafka; repeatable.",
    ),
    click.option(
        "--kafka-config",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="File with settings of librdkafka, such as security.protocol=SASL_SSL. They are not recorded.",
    ),
    click.option(
        "--skip-lost", is_flag=True, help="Continue after records that Kafka deleted before they were ingested."
    ),
    click.option("--base", metavar="FOLDER", help="Identify files by their paths relative to this folder."),
    click.option("--delimiter", metavar="TEXT", default=",", show_default=True, help="Delimiter of CSV fields."),
    click.option("--no-header", is_flag=True, help="Read the first line of CSV as a record; columns are f0, f1, …"),
    click.option(
        "--encoding",
        default="utf-8",
        show_default=True,
        metavar="NAME",
        help="Encoding of CSV, JSON and text files, such as latin-1, cp1252 or utf-16.",
    ),
    click.option("--multiline", is_flag=True, help="Allow line ends inside quotes in CSV."),
    click.option(
        "--null",
        "nulls",
        multiple=True,
        default=("", "NA"),
        metavar="TEXT",
        help="Unquoted CSV text that means null; repeatable.  [default: empty, NA]",
    ),
    click.option(
        "--type",
        "types",
        multiple=True,
        metavar="COLUMN=TYPE",
        help="Type of a CSV or JSON column, such as zip=string; repeatable.",
    ),
    click.option("--infer-all", is_flag=True, help="Infer the types of CSV and JSON from whole files."),
    click.option(
        "--variant",
        type=click.Choice(VARIANTS),
        default=_SIZES.variant,
        show_default=True,
        help="Content of a transaction: whole files, a number of records, or a number of bytes. Kafka: see the docs.",
    ),
    click.option(
        "--files-per-transaction",
        default=_SIZES.files,
        show_default=True,
        help="Maximum number of files, with --variant file.",
    ),
    click.option(
        "--events-per-transaction",
        default=_SIZES.records,
        show_default=True,
        help="Number of records, with --variant count. Maximum for Kafka.",
    ),
    click.option(
        "--bytes-per-transaction",
        default=_SIZES.bytes,
        show_default=True,
        help="Number of bytes, with --variant length or file. Maximum for Kafka.",
    ),
    step_options.lease(_SETTINGS.lease),
    arguments.failover_timeout,
    step_options.takeover_after,
    click.option(
        "--state", metavar="STREAM", help="Stream with the state of the ingestion.  [default: <stream>-ingest]"
    ),
    click.option("--follow", is_flag=True, help="Wait for new files or records until SIGTERM or Ctrl-C."),
    click.option(
        "--settle",
        type=float,
        metavar="SECONDS",
        help="Ingest a file only after it has not changed for this long.  [default: 0; 2 with --follow]",
    ),
    click.option(
        "--dead-letters", metavar="FOLDER", help="Dead-letter folder: write malformed records there and continue."
    ),
    click.option("--keep-going", is_flag=True, help="Skip files with errors and exit with code 6."),
    click.option(
        "--on-change",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="Handling of an ingested file that has changed: stop with an error, or skip the file.",
    ),
    step_options.resolve,
    arguments.create,
    arguments.metrics,
    click.option("--dry-run", is_flag=True, help="Show the plan and write nothing."),
    click.option("--json", "as_json", is_flag=True, help="Print the plan or the summary as JSON."),
    click.option("--quiet", is_flag=True, help="Print no progress bar and no summary."),
)


def _with_options(function: Callable[..., None]) -> click.Command:
    for each in reversed(_OPTIONS):
        function = each(function)
    return click.command(
        epilog=examples(
            "pravega-serde ingest data/*.csv shop/orders --key customer",
            "pravega-serde ingest incoming shop/orders --follow --dead-letters rejected",
            "pravega-serde ingest data shop/orders --format avro --dry-run",
            "pravega-serde ingest kafka://broker:9092/orders shop/orders --follow",
        )
    )(function)


@_with_options
def ingest(
    *, paths: tuple[str, ...], stream: str, failover_timeout: float, dry_run: bool, quiet: bool, **given: Any
) -> None:
    """Write the records of files, or of a Kafka topic, to a stream, exactly once.

    PATH is a file, a folder or a glob, or a topic: kafka://broker:9092/topic. A run resumes where the last run ended,
    and writes no record twice, even after a kill.

    Exit code 0: all records are in the stream. 3: Kafka deleted records before they were ingested. 4: the stream or the
    topic does not exist. 6: a file is unreadable, has changed, or has a malformed record. 7: you must choose --resolve.
    8: the servers failed. 128 and more: a signal. No record is lost: fix the cause and run the command again.
    """
    source = _source(paths, given)
    sink = _sink_options(given)
    arguments.check_schema(parse_options(SinkOptions, {**sink, "path": stream}))
    config = PravegaConfig.resolve(controller=given["controller"])
    common = {
        "options": sink,
        "state": given["state"],
        "ordered": not given["unordered"],
        "target_column": given["target_column"],
    }
    code = 0
    try:
        with arguments.interrupted_by_signals(), PravegaClient(config, failover_timeout=failover_timeout) as client:
            common["client"] = client
            if dry_run:
                _show_plan(plan(source, stream, **common), source, as_json=given["as_json"])
            else:
                with arguments.serving_metrics(given["metrics_port"], given["metrics_host"]):
                    code = _run(source, stream, common, given, quiet=quiet)
    except arguments.Interrupted as stopped:
        code = SIGNAL + stopped.number
    sys.exit(code)


def _source(paths: tuple[str, ...], given: dict[str, Any]) -> FileSource | KafkaSource:
    """Return the source. Raises errors in files, which come before the connection to Pravega."""
    if not any(map(is_kafka, paths)):
        source = FileSource(paths, _file_options(given))
        source.listing()
        return source
    if len(paths) > 1:
        raise click.UsageError("a Kafka topic must be the only PATH")
    decoding = {} if given["input"] is None else {"format": given["input"]}
    decoding |= given["input_options"]
    config = "" if given["kafka_config"] is None else Path(given["kafka_config"]).read_text()
    return KafkaSource(
        paths[0],
        KafkaOptions(
            config=parse_kafka_config(config),
            input=decoding or None,
            reject=given["dead_letters"] is not None,
            skip_lost=given["skip_lost"],
        ),
    )


def _file_options(given: dict[str, Any]) -> FileOptions:
    settle = given["settle"] if given["settle"] is not None else (2.0 if given["follow"] else 0.0)
    return FileOptions(
        input=given["input"],
        base=given["base"],
        delimiter=given["delimiter"],
        header=not given["no_header"],
        encoding=given["encoding"],
        multiline=given["multiline"],
        nulls=given["nulls"],
        types=parse_types(given["types"]),
        infer_all=given["infer_all"],
        reject=given["dead_letters"] is not None,
        settle=settle,
    )


def _sink_options(given: dict[str, Any]) -> dict[str, str]:
    named = {
        "format": given["format"],
        "avro_schema": given["avro_schema"],
        "registry": given["registry"],
        "group": given["group"],
        "routing_key_field": given["key"],
        "allow_create_stream": None if given["create"] is None else "true",
        "default_num_segments": None if given["create"] is None else str(given["create"]),
    }
    more: dict[str, str] = given["more"]
    return {name: value for name, value in named.items() if value is not None} | more


def _run(
    source: FileSource | KafkaSource, stream: str, common: dict[str, Any], given: dict[str, Any], *, quiet: bool
) -> int:
    sizes = Sizes(
        variant=given["variant"],
        files=given["files_per_transaction"],
        records=given["events_per_transaction"],
        bytes=given["bytes_per_transaction"],
    )
    settings = Settings(lease=given["lease"], follow=given["follow"], keep_going=given["keep_going"])
    with _progress(source, stream, common, quiet=quiet) as show:
        summary = ingest_source(
            source,
            stream,
            sizes=sizes,
            settings=settings,
            skip_changed=given["on_change"] == "skip",
            dead_letters=given["dead_letters"],
            takeover_after=given["takeover_after"],
            resolve=given["resolve"],
            on_progress=show,
            **common,
        )
    if given["as_json"]:
        failed, changed = {id_: str(error) for id_, error in summary.failed.items()}, dict(summary.changed)
        click.echo(json.dumps({**dataclasses.asdict(summary.counts), "changed": changed, "failed": failed}))
    elif not quiet:
        _show_summary(summary, source)
    for error in summary.failed.values():
        click.echo(str(error), err=True)
    return ExitCode.BAD_DATA if summary.failed else ExitCode.DONE


@contextmanager
def _progress(
    source: FileSource | KafkaSource, stream: str, common: dict[str, Any], *, quiet: bool
) -> Iterator[Callable[[str, Counts], None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda _what, _counts: None
        return
    client: PravegaClient = common["client"]

    class Outage(rich.ProgressColumn):
        """Column with the current outage of the servers. A run that waits for them has no other progress."""

        def render(self, task: rich.Task) -> Text:
            return Text(client.trouble or "", style="yellow")

    columns = (
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.description}"),
        Outage(),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        try:
            total = plan(source, stream, **common).bytes or None
        except PravegaError:
            total = None  # the run raises the error
        task = bar.add_task("", total=total)

        def show(what: str, counts: Counts) -> None:
            done = f"{counts.events:,} events, {counts.transactions:,} transactions"
            bar.update(task, completed=counts.bytes, description=f"{done}  {what[-50:]}")

        yield show


def _show_plan(planned: IngestPlan, source: FileSource | KafkaSource, *, as_json: bool) -> None:
    ignored = source.listing().ignored if isinstance(source, FileSource) else []
    if as_json:
        value = {
            "done": planned.done,
            "pending": list(planned.pending),
            "bytes": planned.bytes,
            "open_step": planned.open_step,
            "ignored": list(map(str, ignored)),
            "columns": {column.name: str(column.type) for column in planned.schema},
            "format": planned.encoding.format,
            "schema": planned.encoding.schema_text,
        }
        click.echo(json.dumps(value))
        return
    if isinstance(source, KafkaSource):
        click.echo(f"to ingest: {len(planned.pending)} partitions")
    else:
        to_do = f"{len(planned.pending)} files, {planned.bytes} bytes"
        click.echo(f"in the stream: {planned.done} files; to ingest: {to_do}")
    if planned.open_step:
        click.echo("another run is active or was interrupted")
    for id_ in planned.pending[:_SHOWN]:
        click.echo(f"  {id_}")
    if len(planned.pending) > _SHOWN:
        click.echo(f"  … and {len(planned.pending) - _SHOWN} more")
    for path in ignored[:_SHOWN]:
        click.echo(f"  ignored, unknown kind of file (set --input): {path}")
    click.echo("columns:")
    for column in planned.schema:
        click.echo(f"  {column.name}: {column.type}")
    click.echo(f"events: {planned.encoding.format}; key: {planned.encoding.key}")
    if planned.encoding.schema_text is not None:
        click.echo(planned.encoding.schema_text)


def _show_summary(summary: IngestSummary, source: FileSource | KafkaSource) -> None:
    counts = summary.counts
    files = f" of {counts.sources} files" if isinstance(source, FileSource) else ""
    parts = [f"{counts.events} events{files} in {counts.transactions} transactions"]
    if counts.rejected:
        parts.append(f"{counts.rejected} malformed records in the dead-letter folder")
    if counts.recovered or counts.redone:
        parts.append(f"{counts.recovered} transactions of other runs resolved, {counts.redone} repeated")
    if counts.rewritten:
        parts.append(f"{counts.rewritten} parts of transactions written again")
    if summary.changed:
        parts.append(f"{len(summary.changed)} changed files skipped")
    if summary.failed:
        parts.append(f"{len(summary.failed)} {'files' if files else 'partitions'} with errors skipped")
    click.echo("; ".join(parts))
