"""The command line's frame: which groups of commands there are, and how errors reach the user."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import click

from pravega_serde.errors import PravegaError

__all__ = ["main"]

# Name -> module with a click command of that name, and its one-line help. Modules are imported when they are asked for.
_COMMANDS: Final = {
    "cut": ("connector.cli._cut", "Print, compare, convert and take stream cuts."),
    "export": ("connector.cli._export", "Write events of a stream to a file: Parquet, JSON lines, Avro."),
    "ingest": ("connector.cli._ingest", "Put files into a stream, each record exactly once."),
    "lag": ("connector.cli._lag", "Show how far a Spark query is behind its streams."),
    "local": ("connector.cli._local", "Run a Pravega server on this machine."),
    "registry": ("connector.cli._registry", "Look into a schema registry."),
    "options": ("connector.cli._options", "Show the options of the Spark source and sink."),
    "pipe": ("connector.cli._pipe", "Write standard input, or what comes over sockets, to a stream."),
    "scaling": ("connector.cli._scaling", "Draw how a stream was scaled."),
    "subscribers": ("connector.cli._subscribers", "List and end the subscribers of a stream."),
    "watch": ("connector.cli._watch", "Show a stream's segments and rates, live."),
    "recover": ("connector.cli._recover", "Look at the ledger of a stream, and finish what a crash has left."),
}


class _LazyGroup(click.Group):
    """A group that imports a command's module only to run that command."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PravegaError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pravega-serde", prog_name="pravega-serde")
def _cli() -> None:
    """Pravega streams from Python and Spark."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; errors of this project are one line on standard error and exit code 1."""
    _cli.main(args=args, prog_name="pravega-serde")
