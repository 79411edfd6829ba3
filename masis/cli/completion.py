"""``masis completion``: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes 'masis' in SHELL.

    \b
      masis completion bash >> ~/.bashrc
      masis completion zsh >> ~/.zshrc
      masis completion fish > ~/.config/fish/completions/masis.fish
    """  # noqa: D301 (click reads the backspace)
    found = get_completion_class(shell)
    assert found is not None  # one of those that click knows
    click.echo(found(context.find_root().command, {}, "masis", "_MASIS_COMPLETE").source())
