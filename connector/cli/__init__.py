"""The command ``pravega-serde``: its groups of commands, and the way of errors to the user.

Each command is in the module of its name, which is imported to run the command: the help loads none. ``arguments`` has
the arguments and options that mean the same in several commands.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import click

from pravega_serde.errors import PravegaError

__all__ = ["COMMANDS", "command_line", "main"]

#: Name of a command, of its module and of the click command in it -> one-line help.
COMMANDS: Final = {
    "cut": "Print, compare, convert and take stream cuts.",
    "export": "Write events of a stream to a file: Parquet, JSON lines, Avro.",
    "ingest": "Put files into a stream, each record exactly once.",
    "lag": "Show how far a Spark query is behind its streams.",
    "local": "Run a Pravega server on this machine.",
    "options": "Show the options of the Spark source and sink.",
    "pipe": "Write standard input, or what comes over sockets, to a stream.",
    "recover": "Look at the ledger of a stream, and finish what a crash has left.",
    "registry": "Look into a schema registry.",
    "scaling": "Draw how a stream was scaled.",
    "subscribers": "List and end the subscribers of a stream.",
    "watch": "Show a stream's segments and rates, live.",
}


class _LazyGroup(click.Group):
    """Group that imports the module of a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"{__name__}.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PravegaError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pravega-serde", prog_name="pravega-serde")
def command_line() -> None:
    """Pravega streams from Python and Spark."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; an error of this project is one line on standard error and exit code 1."""
    command_line.main(args=args, prog_name="pravega-serde")
