"""The group of all commands, and the reporting of errors.

The module of a command is imported when the command runs. The help imports none of them.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, Final

import click

from pravega_connector.cli.commands import COMMANDS
from pravega_serde.errors import MissingExtraError, PravegaError
from pravega_serde.suggestions import did_you_mean

#: Package that some commands need -> the extra that installs it.
_EXTRAS: Final = {"pyspark": "spark", "rich": "cli"}


class _LazyGroup(click.Group):
    """Group that imports the module of a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        try:
            module = importlib.import_module(f"{__package__}.{cmd_name}")
        except ImportError as error:
            package = (error.name or "").partition(".")[0]
            if package not in _EXTRAS:
                raise
            missing = MissingExtraError(package, _EXTRAS[package], purpose=f"pravega-serde {cmd_name}")
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
