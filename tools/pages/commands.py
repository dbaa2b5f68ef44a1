"""``docs/reference/cli-options.md``: the arguments, options and examples of all commands, from their declarations."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pravega_connector.cli.root import command_line


def commands(command: click.Command, context: click.Context, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that have no subcommands, with their names."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, context, f"{path} {name}")


def page(_: str) -> str:
    """Return the page."""
    lines = [
        "# Arguments and options of the commands",
        "",
        "These are the arguments and options of all commands, with examples.",
        "[The command line](../tools/command-line.md) is the guide.",
    ]
    context = click.Context(command_line, info_name="pravega-serde")
    for path, command in commands(command_line, context, "pravega-serde"):
        options = [each for each in command.params if isinstance(each, click.Option)]
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        usage = [path, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)]
        lines += ["", f"## {path.removeprefix('pravega-serde ')}", "", f"`{' '.join(usage)}`", ""]
        lines += [_escaped(command.get_short_help_str(200)), ""]
        if options:
            lines += ["| option | meaning |", "|---|---|"]
            lines += [f"| `{_escaped(_names(each))}` | {_escaped(_meaning(each))} |" for each in options]
        if command.epilog:
            lines += ["", "```text", *(line.strip() for line in command.epilog.splitlines()[2:]), "```"]
    return "\n".join(lines).rstrip() + "\n"


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _names(option: click.Option) -> str:
    names = ", ".join(option.opts)
    if option.is_flag:
        return names
    kind = option.type
    choices = "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else None
    return f"{names} {option.metavar or choices or kind.name.split()[0].upper()}"


def _meaning(option: click.Option) -> str:
    shown = option.show_default and not option.is_flag
    return (option.help or "") + (f"  [default: {option.default}]" if shown else "")


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
