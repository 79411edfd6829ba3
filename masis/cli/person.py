"""``masis person``: the entry of a person in the sign-in file, with a new secret."""

from __future__ import annotations

import json

import click

from masis.cli.output import printable, say
from masis.schema.actor import ROLES
from masis.settings.sign_in import name_problem, new_secret


@click.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), required=True, help="What the person may do; docs/security.md has the list."
)
@click.option("--no-secret", is_flag=True, help="The person signs in with a provider; the file gives the role only.")
def person(name: str, role: str, no_secret: bool) -> None:
    """Print the entry of a person for the sign-in file, and a new secret for them.

    The entry goes to stdout, the secret to stderr, once: only its digest is in the entry.

    \b
      masis person "Ada Lovelace" --role reviewer >> people.toml
      masis serve --sign-in people.toml
    """  # noqa: D301 (click reads the backspace)
    if (problem := name_problem(name)) is not None:
        raise click.BadParameter(f"{printable(name)!r}: {problem}.", param_hint="NAME")
    lines = [f"[people.{json.dumps(name, ensure_ascii=False)}]", f'role = "{role}"']
    if not no_secret:
        made = new_secret()
        lines.append(f'secret = "{made.digest}"')
        say(f"The secret of {printable(name)}, shown only now: {made.text}")
    click.echo("\n".join(lines) + "\n")
