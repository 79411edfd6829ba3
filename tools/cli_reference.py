"""Write docs/cli.md from what every command's --help prints: python tools/cli_reference.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.cli import main

INTRODUCTION = """# The command line

What `masis --help` and `masis COMMAND --help` print, written by `tools/cli_reference.py`; a test holds them together.

Data go to stdout or to `--out`; everything said to people, progress included, goes to stderr. Exit codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | the job failed, or part of it: what went wrong is named, what went well is kept |
| 2 | wrong usage: an unknown command, option, setting or model; a file that is missing or a directory |
| 130 | interrupted with Ctrl-C (or SIGTERM): what was finished is kept, and the same command goes on from there |

An error about a file names file, line, field and hint, for example

    cases.jsonl, line 3, evidence[2].id: repeats the id '1' of evidence[0]. Give each chunk an id of its own.

Cases are JSON Lines in UTF-8, one object a line, at most 64 MiB each:

    {"id": "bridge", "query": "How long is it?", "answer": "120 metres [1].", "evidence": [{"id": "1", "text": "..."}]}

`answer`, `reasoning_steps`, `metadata` and `labels` may be absent, a chunk's `text` and `source` too; unknown keys are
kept. A file is read line by line, so its size does not matter. A line that repeats an earlier one word for word is
skipped; the same id with other content is an error that names both lines.

The database is the file named by `--db`, else by the variable `MASIS_DB`, else `masis.db` in the user's data folder.
"""


def reference() -> str:
    """The page."""
    parts = [INTRODUCTION]
    settings = {**main.context_settings, "terminal_width": 100}
    with click.Context(main, info_name="masis", **settings) as context:
        parts.append(_section("masis", main, context))
        parts += _subcommands("masis", main, context)
    return "\n".join(parts)


def _subcommands(title: str, command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                child = click.Context(below, context, info_name=name, terminal_width=100)
                yield _section(f"{title} {name}", below, child)
                yield from _subcommands(f"{title} {name}", below, child)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


if __name__ == "__main__":
    (ROOT / "docs" / "cli.md").write_text(reference(), encoding="utf-8")
