"""Implements ``masis.llm.model_files.ModelFiles`` for local models."""

from __future__ import annotations

from collections.abc import Iterator

from masis.integrations.local import PREFIX, local_name
from masis.integrations.local.model_files import (
    describe_model,
    download,
    downloaded_models,
    find,
    is_here,
    model_record,
)
from masis.integrations.local.scoring import check
from masis.llm.model_files import ModelDescription

__all__ = ["PREFIX", "describe", "download", "is_here", "list_downloaded", "local_name"]


def describe(name: str) -> ModelDescription:
    """Describe a model. Raises SettingsError, MissingModel or MissingExtra."""
    labels = check(name)
    record = model_record(find(name))
    return ModelDescription(record, labels.words, describe_model(record, labels.words))


def list_downloaded() -> Iterator[str]:
    """Yield the names of the models in the hub's cache."""
    for model in downloaded_models():
        yield model.name.removeprefix(f"{PREFIX}:")
