"""``pravega-serde recover``: inspect and repair the ledger of a Spark sink, without Spark."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any, Final

import click
from rich.table import Table

from pravega_connector.exactly_once.batch_commit import (
    Finding,
    Ledger,
    Outcome,
    Recovery,
    TransactionId,
    ledger_name,
    require_ledger,
    stream_of,
)
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.output import standard_output

_DESCRIPTIONS: Final = {
    Outcome.COMMITTED: "committed",
    Outcome.SKIPPED: "was committed by another process",
    Outcome.UNFINISHED: "aborted; none of its rows were visible, and the query writes them again when it restarts",
    Outcome.TORN: "TORN: some rows are visible and some are lost; choose --accept or --discard",
    Outcome.UNDECIDABLE: "UNDECIDABLE: the server has forgotten its state; look for its events, then choose",
}


@click.command(epilog=examples("pravega-serde recover shop/orders", "pravega-serde recover shop/orders --finish"))
@arguments.stream
@arguments.controller
@click.option("--ledger", metavar="STREAM", help="Stream of the ledger, also scope/stream.  [default: <stream>-ledger]")
@click.option("--finish", is_flag=True, help="Finish every open batch: commit complete batches, abort lost ones.")
@click.option("--accept", metavar="APP", help="Record the open batch of APP as committed; its lost rows stay lost.")
@click.option("--discard", metavar="APP", help="Discard the open batch of APP; its visible rows will be written again.")
@click.option(
    "--forget", metavar="APP", multiple=True, help="Delete the state of APP, which must never write again; repeatable."
)
@click.option(
    "--forget-older",
    type=arguments.DURATION,
    help="Delete the state of applications that have not written for this long, such as 90d.",
)
@click.option(
    "--abort", metavar="ID", multiple=True, type=click.UUID, help="Abort an abandoned transaction; repeatable."
)
@arguments.as_json
def recover(
    *,
    stream: str,
    controller: str | None,
    ledger: str | None,
    finish: bool,
    accept: str | None,
    discard: str | None,
    forget: tuple[str, ...],
    forget_older: int | None,
    abort: tuple[uuid.UUID, ...],
    as_json: bool,
) -> None:
    """Inspect and repair the ledger of a Spark sink.

    The ledger records the batches that each query has written. Without an option, the command changes nothing. With
    an option, it finishes or drops what a crash left. Stop the query first: a running query finishes its own batches.
    """
    with arguments.client_of(controller) as client:
        target = client.name(stream)
        name = ledger_name(target, ledger)
        require_ledger(client, name, target)
        for id_ in abort:
            client.transaction(target, id_).abort()
        with Ledger(client.stores, name) as opened:
            recovery = Recovery(client.stores, target, opened)
            _change(recovery, finish=finish, accept=accept, discard=discard, as_json=as_json)
            if forget:
                recovery.forget(*forget)
            if forget_older is not None:
                for app in recovery.forget_older(forget_older / 1000):
                    click.echo(f"{app}: forgotten", err=as_json)
            findings, left_open = recovery.survey(), recovery.left_open()
    if as_json:
        click.echo(
            json.dumps({"applications": list(map(_value, findings)), "left_open": [str(id_.id) for id_ in left_open]})
        )
    else:
        _show(findings, left_open)


def _change(recovery: Recovery, *, finish: bool, accept: str | None, discard: str | None, as_json: bool) -> None:
    for app in [f.app.app for f in recovery.survey() if finish and f.app.open]:
        click.echo(f"{app}: {_DESCRIPTIONS[recovery.finish(app)]}", err=as_json)
    if accept is not None:
        recovery.resolve(accept, "accept")
    if discard is not None:
        recovery.resolve(discard, "discard")


def _value(finding: Finding) -> dict[str, Any]:
    app, prepared = finding.app, finding.app.open
    content = app.content_of(app.last)
    return {
        "application": app.app,
        "last_batch": app.last if app.last >= 0 else None,
        "rows": content.rows if content else None,
        "open_batch": prepared.batch if prepared else None,
        "transactions": {state.value: finding.statuses.count(state) for state in dict.fromkeys(finding.statuses)},
        "state": finding.verdict,
        "last_written": _moment(app.time),
    }


def _moment(millis: int) -> str | None:
    return datetime.fromtimestamp(millis // 1000, UTC).isoformat() if millis else None


def _show(findings: list[Finding], left_open: list[TransactionId]) -> None:
    table = Table(box=None)
    table.add_column("application", no_wrap=True)  # not cut: --accept and --discard require it
    for heading in ("last batch", "rows", "last written", "open batch", "transactions", "state"):
        table.add_column(heading)
    for finding in findings:
        app, prepared = finding.app, finding.app.open
        states = ", ".join(f"{finding.statuses.count(s)} {s.value}" for s in dict.fromkeys(finding.statuses))
        last = str(app.last) if app.last >= 0 else "none"
        content = app.content_of(app.last)
        rows = str(content.rows) if content else ""
        open_batch = str(prepared.batch) if prepared else ""
        table.add_row(app.app, last, rows, _moment(app.time), open_batch, states, finding.verdict)
    standard_output().print(table if findings else "The ledger is empty.")
    for id_ in left_open:
        stream = stream_of(id_)
        click.echo(f"open transaction: {id_.id} (to end it before its timeout: recover {stream} --abort {id_.id})")
