"""The group of all commands, and the reporting of errors.

The module of a command is imported when the command runs. The list of commands imports no module.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from typing import Any, Final

import click

from pravega_connector.errors import OutputFileError
from pravega_connector.operations.cli.command_group import CommandGroup, examples, unknown_option
from pravega_connector.operations.cli.commands import COMMANDS
from pravega_connector.operations.cli.exit_codes import exit_code
from pravega_serde.errors import MissingExtraError, PravegaError
from pravega_serde.profiles import DEFAULT_PROFILE, PROFILE_VARIABLE, load_profile, named, profile_names

#: Package that some commands need -> the extra that installs it.
_EXTRAS: Final = {"pyspark": "spark", "rich": "cli"}
_STDOUT: Final = 1
#: Errors of standard output: a full disk or quota, a closed descriptor, a failed device.
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO})


class _LazyGroup(CommandGroup):
    """Group that imports the module of a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*args, **more)
        except click.NoSuchOption as error:
            raise unknown_option(error) from None

    def main(self, *args: Any, **extra: Any) -> Any:
        _open_output()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            if error.errno not in _UNWRITABLE or error.filename is not None:
                raise
            _end_output()
            refused = OutputFileError(
                f"cannot write to standard output: {error.strerror}; free disk space, or redirect it to another file"
            )
            click.echo(str(refused), err=True)
            sys.exit(exit_code(refused))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise unknown_option(error) from None
        except PravegaError as error:
            click.echo(str(error), err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            ctx.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            _end_output()
            ctx.exit(128 + signal.SIGPIPE)


def _open_output() -> None:
    """Open standard output if it is closed, so that a write to it fails, and not to the next file that is opened."""
    if sys.stdout is None:
        closed = os.open(os.devnull, os.O_RDONLY)
        os.dup2(closed, _STDOUT)
        if closed != _STDOUT:
            os.close(closed)
        sys.stdout = open(_STDOUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open


def _end_output() -> None:
    """Discard the rest of the output, which nothing can receive."""
    discarded = os.open(os.devnull, os.O_WRONLY)
    os.dup2(discarded, sys.stdout.fileno())
    os.close(discarded)


class _Failing(click.Command):
    """Command that cannot be loaded. It accepts all arguments and raises the reason."""

    def __init__(self, name: str, reason: PravegaError) -> None:
        context_settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, context_settings=context_settings, add_help_option=False)
        self._reason = reason

    def invoke(self, ctx: click.Context) -> Any:
        raise self._reason


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "pravega-serde local up",
        "pravega-serde stream create shop/orders --segments 2",
        "pravega-serde write shop/orders orders.jsonl",
        "pravega-serde read shop/orders --limit 10",
        "pravega-serde --profile production stream list",
    ),
)
@click.option(
    "--profile",
    metavar="NAME",
    help="Use the settings of this profile in config.toml. They override the environment. "
    "The environment overrides the profile of PRAVEGA_PROFILE and the profile 'default'.",
)
@click.version_option(package_name="pravega-serde", prog_name="pravega-serde")
@click.pass_context
def command_line(context: click.Context, profile: str | None) -> None:
    """Work with Pravega streams, reader groups and schemas from a shell."""
    _use_profile(context, profile)


def _use_profile(context: click.Context, name: str | None) -> None:
    """Activate a profile for this command. Without a name, activate the profile ``default`` if it exists."""
    if name is not None:
        load_profile(name)  # raises the error for an unknown name now
        context.with_resource(named(name))
    elif not os.environ.get(PROFILE_VARIABLE) and DEFAULT_PROFILE in profile_names():
        os.environ[PROFILE_VARIABLE] = DEFAULT_PROFILE  # as if the environment named it: other variables override it
        context.call_on_close(lambda: os.environ.pop(PROFILE_VARIABLE, None))
