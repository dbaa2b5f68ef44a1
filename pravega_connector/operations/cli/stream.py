"""``pravega-serde stream``: list, create, describe, change and delete streams."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from rich.table import Table

from pravega_connector.client import PravegaClient, RetentionPolicy, ScalingPolicy, StreamConfig, StreamName
from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.operations.cli.position_argument import POSITION, resolve_position
from pravega_connector.operations.monitoring import compare_cuts, segment_label

_Command = TypeVar("_Command", bound=Callable[..., Any])
_UNLIMITED: Final = 2**63 - 1
_POLICIES: Final = (
    click.option(
        "--segments", type=click.IntRange(1), metavar="N", help="Number of segments; with a rate, the minimum."
    ),
    click.option(
        "--scale-events",
        type=click.IntRange(1),
        metavar="RATE",
        help="Split a segment with more than this many events per second.",
    ),
    click.option(
        "--scale-kbytes",
        type=click.IntRange(1),
        metavar="RATE",
        help="Split a segment with more than this many KiB per second.",
    ),
    click.option(
        "--scale-factor", type=click.IntRange(2), metavar="N", help="Number of parts of a split.  [default: 2]"
    ),
    click.option("--retain-size", type=arguments.SIZE, help="Keep at least this much, such as 500GB or 1TiB."),
    click.option(
        "--retain-time", type=arguments.DURATION, help="Keep events for at least this long, such as 12h or 7d."
    ),
    click.option(
        "--retain-at-most",
        metavar="SIZE|DURATION",
        help="Upper limit of retention for slow subscribers.  [default: no limit]",
    ),
    click.option("--tag", "tags", metavar="TEXT", multiple=True, help="Tag of the stream; repeatable."),
)


def _with_policies(function: _Command) -> _Command:
    for each in reversed(_POLICIES):
        function = each(function)
    return function


@click.group(
    cls=CommandGroup, epilog=examples("pravega-serde stream list shop", "pravega-serde stream describe shop/orders")
)
def stream() -> None:
    """List, create, describe, change and delete streams."""


@stream.command(
    "list", epilog=examples("pravega-serde stream list shop --json", "pravega-serde stream list shop --tag sales")
)
@click.argument("scope", required=False)
@click.option("--tag", metavar="TEXT", help="List only streams with this tag.")
@click.option("--internal", is_flag=True, help="Include Pravega's internal scopes and streams, which begin with _.")
@arguments.controller
@arguments.as_json
def list_streams(scope: str | None, controller: str | None, *, tag: str | None, internal: bool, as_json: bool) -> None:
    """List the streams of a scope.

    The default is the configured scope, or all scopes.
    """
    with arguments.client_of(controller) as client:
        chosen = scope or client.config.scope
        scopes = [chosen] if chosen else client.controller.list_scopes()
        shown = (each for each in scopes if chosen or internal or not each.startswith("_"))
        names = [
            str(name) for each in shown for name in client.controller.list_streams(each, internal=internal, tag=tag)
        ]
    click.echo(json.dumps(names) if as_json else "\n".join(names), nl=as_json or bool(names))


@stream.command(
    epilog=examples(
        "pravega-serde stream create shop/orders --segments 4 --retain-time 7d",
        "pravega-serde stream create shop/clicks --scale-events 1000",
    )
)
@arguments.stream
@_with_policies
@click.option("--exist-ok", is_flag=True, help="Succeed if the stream exists already; its policies do not change.")
@arguments.controller
def create(stream: str, controller: str | None, *, exist_ok: bool, **policies: Any) -> None:
    """Create a stream, and its scope if it does not exist."""
    config = _changed(StreamConfig(), policies)
    with arguments.client_of(controller) as client:
        name = client.name(stream)
        client.controller.create_scope(name.scope)
        if not client.controller.create_stream_with(name, config) and not exist_ok:
            raise ConfigError(f"stream {name} exists already: to use it, pass --exist-ok")


@stream.command(
    epilog=examples(
        "pravega-serde stream update shop/orders --retain-size 500GB",
        "pravega-serde stream update shop/orders --no-scaling",
    )
)
@arguments.stream
@_with_policies
@click.option("--no-retention", is_flag=True, help="Remove the retention policy: keep all events.")
@click.option("--no-scaling", is_flag=True, help="Remove the scaling policy: keep the number of segments.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@arguments.controller
def update(
    stream: str, controller: str | None, *, no_retention: bool, no_scaling: bool, no_tags: bool, **policies: Any
) -> None:
    """Change the policies and tags of a stream.

    Other policies and tags stay as they are. If the stream has no scaling policy, --segments scales it.
    """
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        before = client.controller.stream_config(name)
        base = dataclasses.replace(
            before,
            retention=None if no_retention else before.retention,
            scaling=ScalingPolicy.fixed(before.scaling.min_segments) if no_scaling else before.scaling,
            tags=() if no_tags else before.tags,
        )
        after = _changed(base, policies)
        if after == before:
            raise click.UsageError("nothing would change: pass an option with a new value")
        client.controller.update_stream(name, after)


@stream.command(epilog=examples("pravega-serde stream describe shop/orders --json"))
@arguments.stream
@arguments.controller
@arguments.as_json
def describe(stream: str, controller: str | None, *, as_json: bool) -> None:
    """Show the policies and segments of a stream.

    The output also has the sizes of the segments, the head and tail of the stream, and its subscribers.
    """
    with arguments.client_of(controller) as client:
        found = _described(client, client.require_stream(stream))
    if as_json:
        click.echo(json.dumps(found))
    else:
        _show(found)


@stream.command(epilog=examples("pravega-serde stream seal shop/orders --yes"))
@arguments.stream
@arguments.yes
@arguments.controller
def seal(stream: str, controller: str | None, *, yes: bool) -> None:
    """Seal a stream permanently.

    A sealed stream accepts no events. Its events can still be read.
    """
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        arguments.confirmed(f"Seal stream {name} permanently", yes=yes)
        client.controller.seal_stream(name)


@stream.command(epilog=examples("pravega-serde stream delete shop/orders --yes"))
@arguments.stream
@arguments.yes
@arguments.controller
def delete(stream: str, controller: str | None, *, yes: bool) -> None:
    """Seal and delete a stream and all its events."""
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        arguments.confirmed(f"Delete stream {name} and all its events", yes=yes)
        client.controller.seal_stream(name)
        client.controller.delete_stream(name)


@stream.command(epilog=examples("pravega-serde stream truncate shop/orders --at @orders.cut --yes"))
@arguments.stream
@click.option("--at", required=True, type=POSITION, help="latest, a time, a stream cut in any form, or @FILE with one.")
@arguments.yes
@arguments.controller
def truncate(stream: str, at: str, controller: str | None, *, yes: bool) -> None:
    """Delete all events before a position."""
    with arguments.client_of(controller) as client:
        cut = resolve_position(client, client.name(stream), at)
        arguments.confirmed(f"Delete all events of {cut.stream} before {at.strip()}", yes=yes)
        client.truncate(cut)


@stream.command(
    epilog=examples(
        "pravega-serde stream scale shop/orders --segments 4",
        "pravega-serde stream scale shop/orders --split 0 --into 3",
        "pravega-serde stream scale shop/orders --merge 1 2",
    )
)
@arguments.stream
@click.option(
    "--segments", type=click.IntRange(1), metavar="N", help="Replace all segments with N segments of equal key ranges."
)
@click.option("--split", metavar="SEGMENT", help="Split this segment: its number or short name, such as 3.#epoch.1.")
@click.option(
    "--into", type=click.IntRange(2), metavar="N", default=2, show_default=True, help="Number of parts, with --split."
)
@click.option("--merge", nargs=2, metavar="SEGMENT SEGMENT", help="Merge two neighboring segments.")
@arguments.controller
def scale(
    *,
    stream: str,
    segments: int | None,
    split: str | None,
    into: int,
    merge: tuple[str, str] | None,
    controller: str | None,
) -> None:
    """Scale a stream now: replace, split or merge segments.

    The order of events per routing key is kept.
    """
    if sum(each is not None for each in (segments, split, merge)) != 1:
        raise click.UsageError("pass one of --segments, --split and --merge")
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        current = {each.id: each for each in client.controller.current_segments(name)}
        if segments is not None:
            sealed, low, high, parts = list(current), 0.0, 1.0, segments
        else:
            sealed = [_segment_id(name, text, set(current)) for text in merge or (split or "",)]
            low = min(current[i].low for i in sealed)
            high = max(current[i].high for i in sealed)
            parts = 1 if merge else into
        bounds = [low + (high - low) * i / parts for i in range(parts)] + [high]
        after = client.controller.scale_stream(name, sealed, list(itertools.pairwise(bounds)))
    click.echo(
        f"{name} has {len(after)} segments: {', '.join(segment_label(name, each.id) for each in after)}", err=True
    )


def _segment_id(name: StreamName, text: str, current: set[int]) -> int:
    """Return the id of an open segment from its id, its number or its short name."""
    by_name = {segment_label(name, i): i for i in current}
    if text in by_name:
        return by_name[text]
    if text.isdecimal():
        if int(text) in current:
            return int(text)
        numbered = [i for label, i in by_name.items() if label.startswith(f"{text}.")]
        if len(numbered) == 1:
            return numbered[0]
    raise ConfigError(
        f"stream {name} has no open segment {text!r}; its open segments: {', '.join(by_name) or 'none, it is sealed'}"
    )


# ---- policies ----


def _changed(config: StreamConfig, given: dict[str, Any]) -> StreamConfig:
    """Return the configuration with new policies. Raises click.UsageError for policies that exclude each other."""
    if given["tags"]:
        config = dataclasses.replace(config, tags=tuple(given["tags"]))
    return dataclasses.replace(config, scaling=_scaling(config.scaling, given), retention=_retention(config, given))


def _scaling(policy: ScalingPolicy, given: dict[str, Any]) -> ScalingPolicy:
    events, kbytes, factor = given["scale_events"], given["scale_kbytes"], given["scale_factor"]
    if events is not None and kbytes is not None:
        raise click.UsageError("--scale-events and --scale-kbytes exclude each other: pass one")
    if events is not None or kbytes is not None:
        policy = dataclasses.replace(
            policy,
            kind="kbytes" if events is None else "events",
            target_rate=kbytes if events is None else events,
            scale_factor=max(policy.scale_factor, 2),
        )
    if factor is not None:
        if policy.kind == "fixed":
            raise click.UsageError("--scale-factor requires --scale-events or --scale-kbytes")
        policy = dataclasses.replace(policy, scale_factor=factor)
    return policy if given["segments"] is None else dataclasses.replace(policy, min_segments=given["segments"])


def _retention(config: StreamConfig, given: dict[str, Any]) -> RetentionPolicy | None:
    size, time, most = given["retain_size"], given["retain_time"], given["retain_at_most"]
    if size is not None and time is not None:
        raise click.UsageError("--retain-size and --retain-time exclude each other: pass one")
    policy = config.retention
    if size is not None or time is not None:
        policy = RetentionPolicy.by_time(time) if size is None else RetentionPolicy.by_size(size)
    if most is None:
        return policy
    if policy is None:
        raise click.UsageError("--retain-at-most requires --retain-size or --retain-time")
    unit = arguments.SIZE if policy.kind == "size" else arguments.DURATION
    try:
        return dataclasses.replace(policy, most=unit.convert(most, None, None))
    except click.BadParameter as error:
        raise click.UsageError(f"--retain-at-most: {error.message}") from None


# ---- describe ----


def _described(client: PravegaClient, name: StreamName) -> dict[str, Any]:
    config, ranges = client.controller.stream_config(name), client.controller.current_segments(name)
    head, tail = client.head(name), client.tail(name)
    infos = client.stores.segment_infos(name, tail.positions)
    keys = {each.id: [each.low, each.high] for each in ranges}
    retention = config.retention
    return {
        "stream": str(name),
        "sealed": not ranges,
        "scaling": dataclasses.asdict(config.scaling),
        "retention": None
        if retention is None
        else {
            "kind": retention.kind,
            "least": retention.least,
            "most": None if retention.most == _UNLIMITED else retention.most,
        },
        "tags": list(config.tags),
        "bytes": compare_cuts(head, tail, client).bytes,
        "segments": [
            {
                "segment": segment_label(name, i),
                "segment_id": i,
                "keys": keys.get(i),
                "start": infos[i].start_offset,
                "end": infos[i].write_offset,
            }
            for i in tail.positions
        ],
        "head": head.to_text(),
        "tail": tail.to_text(),
        "subscribers": client.controller.subscribers(name),
    }


def _show(found: dict[str, Any]) -> None:
    scaling, retention = found["scaling"], found["retention"]
    load = {"events": "events/s", "kbytes": "KiB/s"}.get(scaling["kind"])
    amount = found["bytes"]
    rows = (
        ("stream", found["stream"] + ("  (sealed)" if found["sealed"] else "")),
        (
            "scaling",
            f"fixed, {scaling['min_segments']} segments"
            if load is None
            else f"{scaling['target_rate']:,} {load} in a segment, split by {scaling['scale_factor']}, "
            f"at least {scaling['min_segments']} segments",
        ),
        ("retention", "everything" if retention is None else _kept(retention)),
        ("tags", ", ".join(found["tags"]) or "none"),
        ("bytes", "unknown" if amount is None else f"{amount:,}"),
        ("head", found["head"]),
        ("tail", found["tail"]),
        ("subscribers", ", ".join(found["subscribers"]) or "none"),
    )
    for name, text in rows:
        click.echo(f"{name:<12} {text}")
    table = Table("segment", "keys", box=None)
    for heading in ("start", "end"):
        table.add_column(heading, justify="right")
    for each in found["segments"]:
        keys = "{:.3f}–{:.3f}".format(*each["keys"]) if each["keys"] else "sealed"
        table.add_row(each["segment"], keys, f"{each['start']:,}", f"{each['end']:,}")
    standard_output().print(table)


def _kept(retention: dict[str, Any]) -> str:
    unit = "bytes" if retention["kind"] == "size" else "ms"
    most = "" if retention["most"] is None else f", at most {retention['most']:,}"
    return f"at least {retention['least']:,} {unit}{most}"
