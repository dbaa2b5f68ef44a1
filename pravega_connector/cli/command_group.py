"""Groups of commands, with hints for unknown names and examples in the help."""

from __future__ import annotations

from typing import Final

import click

from pravega_serde.suggestions import did_you_mean

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
