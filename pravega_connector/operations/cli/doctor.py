"""``pravega-serde doctor``: check the installation, the servers and Spark, with a remedy for each problem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import click

from pravega_connector.config import PravegaConfig
from pravega_connector.core.io import in_background
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.doctor_cluster import Cluster, check_registry
from pravega_connector.operations.cli.doctor_machine import Finding, check_machine
from pravega_connector.operations.cli.doctor_spark import check_spark
from pravega_connector.operations.cli.exit_codes import ExitCode
from pravega_serde.errors import SerdeError
from pravega_serde.registry import RegistryConfig

# Requests of the check of a registry, and the look at its clock.
_REGISTRY_REQUESTS: Final = 3
_SHOWN: Final = {"ok": "ok      ", "warning": "WARNING ", "failed": "FAILED  ", "skipped": "skipped "}


@click.command(
    epilog=examples(
        "pravega-serde doctor",
        "pravega-serde doctor --stream shop/orders --json",
        "pravega-serde doctor --spark --master spark://spark:7077",
    )
)
@arguments.controller
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="SCOPE/STREAM",
    help="Look up the segment stores of this stream; repeatable.  [default: the first streams that exist]",
)
@arguments.registry
@click.option("--spark", "with_spark", is_flag=True, help="Start a Spark session, and check driver and executors.")
@click.option("--master", metavar="URL", help="Spark master, with --spark.  [default: Spark's configuration]")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 600, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Deadline of each request to a server.",
)
@click.option(
    "--spark-timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Deadline of all checks of --spark.",
)
@arguments.as_json
@click.pass_context
def doctor(
    context: click.Context,
    *,
    controller: str | None,
    streams: tuple[str, ...],
    registry: str | None,
    with_spark: bool,
    master: str | None,
    timeout: float,
    spark_timeout: float,
    as_json: bool,
) -> None:
    """Check the installation, the servers and Spark.

    Each line is one check: the versions, free space, the controllers, every segment store that the controller returns
    to clients, the registry if one is configured, and the clocks. A problem has its remedy on the next line. Nothing is
    created or changed in Pravega, and no secret is printed.

    The exit code is 0 if no check failed. Otherwise it is 4 if a stream does not exist, 8 if servers or the machine
    failed, and 1 for all other failures.
    """
    if master is not None and not with_spark:
        raise click.UsageError("--master requires --spark")
    cluster = Cluster(PravegaConfig.resolve(controller=controller), streams, timeout)
    found = []
    for finding in _checks(cluster, registry, timeout, (master, spark_timeout) if with_spark else None):
        found.append(finding)
        if not as_json:
            _show(finding)
    codes = {finding.code for finding in found if finding.status == "failed"}
    if as_json:
        click.echo(json.dumps({"ok": not codes, "checks": [finding.to_json() for finding in found]}))
    worst = (ExitCode.FAILED, ExitCode.NOT_FOUND, ExitCode.UNAVAILABLE)
    context.exit(next((code for code in worst if code in codes), ExitCode.FAILED) if codes else ExitCode.DONE)


def _checks(
    cluster: Cluster, registry: str | None, timeout: float, spark: tuple[str | None, float] | None
) -> Iterator[Finding]:
    yield from check_machine()
    yield from cluster.check()
    yield from _check_registry(registry, timeout)
    if spark is not None:
        yield from check_spark(cluster, *spark, timeout)


def _check_registry(uri: str | None, timeout: float) -> Iterator[Finding]:
    settings: dict[str, Any] = {} if uri is None else {"uri": uri}
    try:
        config = replace(RegistryConfig.resolve(**settings), timeout=timeout)
    except SerdeError as error:
        yield Finding(
            check="registry",
            status="skipped" if uri is None else "failed",
            detail=error.message,
            remedy="pass --registry URI to check a registry" if uri is None else "correct --registry",
        )
        return
    # A deadline for all of it: one answer may come in many small parts, each in time.
    limit = _REGISTRY_REQUESTS * timeout
    checked = in_background(lambda: list(check_registry(config, timeout)), "pravega-doctor-registry")
    try:
        yield from checked.result(limit)
    except TimeoutError:
        yield Finding(
            check="registry",
            status="failed",
            subject=config.uri,
            detail=f"did not answer completely within {limit:.0f} s",
            remedy="check the registry's load and the proxies on the way, or set a longer --timeout",
        )


def _show(finding: Finding) -> None:
    subject = f" {finding.subject}" if finding.subject else ""
    click.echo(f"{_SHOWN[finding.status]} {finding.check}{subject}: {finding.detail}")
    if finding.remedy:
        click.echo(f"          remedy: {finding.remedy}")
