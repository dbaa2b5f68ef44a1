"""The command ``pravega-serde``: its groups of commands, and the way of errors to the user.

Each command is in the module of its name, which is imported to run the command: the help loads none. ``arguments`` has
the arguments and options that mean the same in several commands, ``exit_codes`` how they end.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from pravega_serde.errors import MissingExtraError, PravegaError
from pravega_serde.guesses import did_you_mean

__all__ = ["COMMANDS", "command_line", "main"]

#: Name of a command, of its module and of the click command in it -> one-line help.
COMMANDS: Final = {
    "cut": "Print, compare, convert and take stream cuts.",
    "export": "Write events of a stream to a file: Parquet, JSON lines, Avro.",
    "group": "List, describe, reset and delete reader groups, and show how far they are behind.",
    "ingest": "Put files into a stream, each record exactly once.",
    "lag": "Show how far a Spark query, or a reader with a stream cut, is behind.",
    "local": "Run a Pravega server on this machine.",
    "options": "Show the options of the Spark source and sink.",
    "pipe": "Write standard input, or what comes over sockets, to a stream.",
    "read": "Print the events of a stream.",
    "recover": "Look at the ledger of a stream, and finish what a crash has left.",
    "registry": "Look into a schema registry.",
    "scaling": "Draw how a stream was scaled.",
    "scope": "List, create and delete scopes.",
    "stream": "List, create, describe, change and delete streams.",
    "subscribers": "List and end the subscribers of a stream.",
    "watch": "Show a stream's segments and rates, live.",
    "write": "Write lines to a stream, as events of a format.",
}


class _LazyGroup(click.Group):
    """Group that imports the module of a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        try:
            module = importlib.import_module(f"{__name__}.{cmd_name}")
        except ImportError as error:
            if error.name is None or error.name.partition(".")[0] != "pyspark":
                raise
            missing = MissingExtraError("pyspark", "spark", purpose=f"pravega-serde {cmd_name}")
            return _Failing(cmd_name, missing)
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and args[0][:1].isalnum():
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PravegaError as error:
            from pravega_connector.cli.exit_codes import exit_code  # noqa: PLC0415 - the help needs no errors

            click.echo(str(error), err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            ctx.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            _end_output()
            ctx.exit(128 + signal.SIGPIPE)


def _end_output() -> None:
    """Let what is left in the buffer go nowhere: whoever reads the output has had enough."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _Failing(click.Command):
    """Command that cannot be loaded: whatever it is called with, it raises the reason."""

    def __init__(self, name: str, reason: PravegaError) -> None:
        context_settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, context_settings=context_settings, add_help_option=False)
        self._reason = reason

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ARG002 - click passes it
        raise self._reason


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--profile",
    metavar="NAME",
    help="Settings of that name in the user's config.toml. They rule over the environment; "
    "those of PRAVEGA_PROFILE, and the default ones, do not.",
)
@click.version_option(package_name="pravega-serde", prog_name="pravega-serde")
@click.pass_context
def command_line(context: click.Context, profile: str | None) -> None:
    """Pravega streams from Python and Spark."""
    _use_profile(context, profile)


def _use_profile(context: click.Context, name: str | None) -> None:
    """Name the profile for all that this command does; without a name, the default one if there is one."""
    from pravega_serde.profiles import (  # noqa: PLC0415 - as above
        DEFAULT_PROFILE,
        PROFILE_VARIABLE,
        load_profile,
        named,
        profile_names,
    )

    if name is not None:
        load_profile(name)  # a wrong name is an error now
        context.with_resource(named(name))
    elif not os.environ.get(PROFILE_VARIABLE) and DEFAULT_PROFILE in profile_names():
        os.environ[PROFILE_VARIABLE] = DEFAULT_PROFILE  # below the environment, as if it had named it
        context.call_on_close(lambda: os.environ.pop(PROFILE_VARIABLE, None))


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; an error of this project is one line on standard error, and an exit code of its own."""
    command_line.main(args=args, prog_name="pravega-serde")
