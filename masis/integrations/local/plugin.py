"""Verifiers on this machine, found by name: what stands behind ``local:`` in a model string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from masis.errors import MissingExtra, SettingsError
from masis.integrations.local import PREFIX
from masis.integrations.local.model_files import (
    PIN,
    digest_of,
    downloaded_models,
    find,
    is_here,
    parse_name,
)
from masis.integrations.local.scoring import check, load
from masis.integrations.local.tagger import LocalTagger
from masis.integrations.local.verifier import LocalRole, LocalVerifier, version_of
from masis.offline.roles.verifier import OfflineVerifier
from masis.settings import Settings


@dataclass(frozen=True)
class LocalPlugin:
    """One model, as an audit names it. It asks no language model, so that no instructions go with a
    question.
    """

    name: str
    asks: ClassVar[str] = ""
    characters: ClassVar[int] = 0

    @property
    def string(self) -> str:
        """The full name; with the start of the digest where the file is here, so that another file
        is another model.
        """
        parsed = parse_name(self.name)
        if parsed.digest or not is_here(self.name):
            return f"{PREFIX}:{self.name}"
        return f"{PREFIX}:{parsed.text}#{digest_of(find(self.name))[:PIN]}"

    @property
    def recorded(self) -> str:
        """The version that its verdicts carry: of the rules around the model, and of
        its weights.
        """
        return version_of(digest_of(find(self.name)))

    def check(self) -> None:
        """Raise SettingsError or MissingExtra where the model can't be loaded here; a download that
        lacks is one.
        """
        check(self.name)

    def build(self, model: Any, settings: Settings) -> LocalRole:
        """The verifier, its model loaded; what is left out is found offline. Raises as ``check``
        does.
        """
        scorer = load(self.name, settings.local_threads)
        role = LocalTagger if scorer.labels.head == "tokens" else LocalVerifier
        return role(scorer, settings, OfflineVerifier().missing)


class Registry:
    """What the name ``local`` gives for the role of the verifier."""

    def find(self, name: str, settings: Settings) -> LocalPlugin:
        """The model of this name. Raises SettingsError for a name that is neither a path nor an id
        of the hub.
        """
        parse_name(name)
        return LocalPlugin(name)

    def available(self, settings: Settings) -> tuple[str, ...]:
        """The models in the hub's cache that could verify."""
        offered = []
        for found in downloaded_models():
            name = found.name.partition(":")[2]
            try:
                check(name)
            # another kind of model, said where somebody names it
            except (SettingsError, MissingExtra):
                continue
            offered.append(found.name)
        return tuple(offered)


verifiers = Registry()
