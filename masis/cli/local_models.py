"""``masis models``: verifier models on this machine: download one, and show what each is."""

from __future__ import annotations

import json

import click

from masis.cli.group import Command, CommandGroup
from masis.cli.output import Progress, printable, say
from masis.errors import MissingExtra, SettingsError
from masis.integrations.local import PREFIX, local_names
from masis.schema.wording import counted
from masis.settings import Settings

COMMANDS = {
    "get": Command("masis.cli.local_models:get", "Download a verifier model, and show what it is."),
    "list": Command("masis.cli.local_models:list_models", "List the verifier models that were downloaded."),
}


@click.group("models", cls=CommandGroup, entries=COMMANDS)
def models() -> None:
    """Verifier models that run on this machine: download one, and show what each is.

    \b
      masis models get local:ORG/NAME
      masis models list

    docs/verifiers.md says which models are understood and how to measure them.
    """  # noqa: D301 (click reads the backspace)


@click.command()
@click.argument("name", metavar="local:NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def get(name: str, as_json: bool) -> None:
    """Download a model of the Hugging Face hub, unless it is here, and show what it is; a folder is shown alike.

    \b
      masis models get local:ORG/NAME
      masis models get local:ORG/NAME/onnx/model_quantized.onnx     one file of several
      masis models get local:ORG/NAME@REVISION
      masis models get local:./models/my-nli

    Only configuration, tokenizer, card and one form of the weights are fetched, into the hub's own cache (HF_HOME).
    Interrupted, the same command goes on.

    Exit code 0: it is here and understood. 2: it can't be had or understood; the message says why and what to do.
    """  # noqa: D301 (click reads the backspace)
    text = name.removeprefix(f"{PREFIX}:")
    _download(text)
    from masis.integrations.local import model_files, scoring

    labels = scoring.check(text)
    record = model_files.recorded(model_files.find(text))
    if as_json:
        click.echo(json.dumps({**record.model_dump(), "tells": labels.words}, ensure_ascii=False))
        return
    for line in model_files.described(record, labels.words):
        click.echo(printable(line))
    say(
        f'Use it: masis audit cases.jsonl --model verifier={record.name}   or in masis.toml: verifier = "{record.name}"'
    )


@click.command("list")
def list_models() -> None:
    """List the models in the hub's cache that can verify here, each with its licence, size and place.

    \b
      masis models list
    """  # noqa: D301 (click reads the backspace)
    from masis.integrations.local import model_files, scoring

    number = 0
    for found in model_files.downloaded():
        try:
            labels = scoring.check(found.name.removeprefix(f"{PREFIX}:"))
        except (SettingsError, MissingExtra) as error:
            say(f"{found.name}: {error}")
            continue
        number += 1
        record = model_files.recorded(found)
        licence = record.licence or "licence not stated"
        click.echo(printable(f"{record.name}  {labels.words}  {licence}  {record.bytes / 1e6:,.0f} MB  {record.file}"))
    say(f"{counted(number, 'verifier model')} in the hub's cache. docs/verifiers.md names some to begin with.")


def download_missing(settings: Settings) -> None:
    """Download the verifier model that the settings name, where it is not here yet, showing how far it has come."""
    for text in local_names(settings.verifier):
        _download(text)


def _download(text: str) -> None:
    from masis.integrations.local import model_files

    if model_files.is_here(text):
        return
    say(f"{PREFIX}:{text} is downloaded once, into the cache of the Hugging Face hub.")
    bar: Progress | None = None

    def show(step: model_files.Step) -> None:
        nonlocal bar
        if bar is None:
            bar = Progress("Downloading", step.total)
            bar.__enter__()
        bar.move(step.done, f"{step.done / 1e6:,.0f} of {step.total / 1e6:,.0f} MB ({step.file})")

    try:
        model_files.download(text, show)
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
