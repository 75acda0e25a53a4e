"""Groups of commands, which name the nearest command when there is none of a given name."""

from difflib import get_close_matches

import click

_NAMED = 3


class Group(click.Group):
    """A click group with "did you mean"."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_option = name.startswith("-")
        if not is_option and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}.{self._nearest(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _nearest(self, ctx: click.Context, name: str) -> str:
        """The question that names similar commands, or nothing."""
        there = self.list_commands(ctx)
        longer = [command for command in there if command.startswith(name)]
        similar = dict.fromkeys([*longer, *get_close_matches(name, there, _NAMED)])
        return f" Did you mean {' or '.join(list(similar)[:_NAMED])}?" if similar else ""
