"""Groups of commands, with hints for unknown names and examples in the help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from pravega_serde.suggestions import did_you_mean, which_name

#: Word for a command in the tools of Kafka, Pulsar and shells -> name of the command here.
_MEANT: Final = {
    "topic": "stream",
    "topics": "stream",
    "consumer-group": "group",
    "consumer-groups": "group",
    "consumer": "read",
    "consume": "read",
    "producer": "write",
    "produce": "write",
    "detect": "sniff",
    "identify": "sniff",
    "publish": "write",
    "namespace": "scope",
    "namespaces": "scope",
    "subscription": "subscribers",
    "subscriptions": "subscribers",
    "ls": "list",
    "add": "create",
    "alter": "update",
    "show": "describe",
    "rm": "delete",
    "remove": "delete",
    "start": "up",
    "stop": "down",
}
# Options of those tools, and names of arguments and of Spark's options -> options here.
_MEANT_OPTIONS: Final = {
    **dict.fromkeys(("--bootstrap-server", "--bootstrap-servers", "--controller-uri"), "--controller"),
    **dict.fromkeys(("--uri", "--url"), "--controller --registry"),
    **dict.fromkeys(("--partitions", "--num-partitions", "--num-segments"), "--segments --create"),
    **dict.fromkeys(("--from-beginning", "--from", "--start-stream-cut", "--offset"), "--start"),
    **dict.fromkeys(("--until", "--to", "--end-stream-cut"), "--end"),
    **dict.fromkeys(("--max-messages", "--max-events", "--max-rows", "--count", "-n"), "--limit"),
    **dict.fromkeys(("--key", "--partition-key"), "--routing-key --key-field"),
    **dict.fromkeys(("--consumer-group", "--group-id"), "--group"),
    **dict.fromkeys(("--serializer", "--value-format", "--deserializer"), "--format"),
    **dict.fromkeys(("--registry-url", "--registry-uri", "--schema-registry"), "--registry"),
    **dict.fromkeys(("--force", "-y", "-f"), "--yes"),
    "--if-not-exists": "--exist-ok",
}


def unknown_option(error: click.NoSuchOption) -> click.UsageError:
    """Return the error for an unknown option, with the options of the command that may be meant, or its place."""
    name, context = error.option_name, error.ctx
    assert context is not None
    command, root = context.command, context.find_root()
    if name in _options(root.command, root):
        hint = f": it goes before the command: {root.info_name} {name} …"
    elif isinstance(command, click.Group) and any(
        name in _options(each, context) for each in _commands(command, context)
    ):
        hint = f": it goes after the command: {context.command_path} COMMAND {name} …"
    else:
        hint = which_name(name, _options(command, context), _MEANT_OPTIONS)
    return click.UsageError(f"No such option {name!r}{hint}", context)


def _options(command: click.Command, context: click.Context) -> list[str]:
    return [name for each in command.get_params(context) for name in each.opts if name.startswith("-")]


def _commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, context)
        elif command is not None:
            yield command


class CommandGroup(click.Group):
    """Group of commands that suggests a name for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command. An unknown name ends with a hint."""
        known = self.list_commands(ctx)
        if args[0] not in known and args[0][:1].isalnum():
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], known, _MEANT)}")
        return super().resolve_command(ctx, args)


def examples(*commands: str) -> str:
    """Return the epilog of a help text that shows these commands, one on a line."""
    return "\n".join(("\b", "Examples:" if len(commands) > 1 else "Example:", *(f"  {each}" for each in commands)))
