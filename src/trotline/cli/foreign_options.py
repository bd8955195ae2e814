"""An option that was given to a command which does not have it: which commands do."""

import click

SPIDERS = ("work", "fleet", "run", "start", "coordinate", "lab")
"""The commands that work on a spider. Those that fetch its pages come first."""


def advice(error: click.NoSuchOption) -> str:
    """Empty: none of them has it."""
    group = error.ctx.parent.command if error.ctx is not None and error.ctx.parent is not None else None
    if not isinstance(group, click.Group) or error.ctx is None or error.ctx.info_name not in SPIDERS:
        return ""
    having = [name for name in SPIDERS if error.option_name in _options(group.get_command(error.ctx, name))]
    if not having:
        return ""
    return f"{error.option_name} is an option of {', '.join(f'trotline {name}' for name in having)}"


def _options(command: click.Command | None) -> set[str]:
    return set() if command is None else {word for one in command.params for word in one.opts}
