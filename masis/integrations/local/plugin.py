"""The registry of local verifiers, which resolves the part of a model string after ``local:``."""

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
    """A local model in an audit. It doesn't call a language model, so it has no prompt
    instructions.
    """

    name: str
    asks: ClassVar[str] = ""
    characters: ClassVar[int] = 0

    @property
    def string(self) -> str:
        """The full name. If the file is here, it includes the start of the digest, so that another
        file counts as another model.
        """
        parsed = parse_name(self.name)
        if parsed.digest or not is_here(self.name):
            return f"{PREFIX}:{self.name}"
        return f"{PREFIX}:{parsed.text}#{digest_of(find(self.name))[:PIN]}"

    @property
    def recorded(self) -> str:
        """The version recorded with its verdicts, from the version of the rules and the digest of
        the weights.
        """
        return version_of(digest_of(find(self.name)))

    def check(self) -> None:
        """Raise SettingsError or MissingExtra if the model can't be loaded, for example because it
        isn't downloaded.
        """
        check(self.name)

    def build(self, model: Any, settings: Settings) -> LocalRole:
        """Load the model and return the verifier. Missing points are found offline. Raises like
        ``check``.
        """
        scorer = load(self.name, settings.local_threads)
        role = LocalTagger if scorer.labels.head == "tokens" else LocalVerifier
        return role(scorer, settings, OfflineVerifier().missing)


class Registry:
    """The models that ``local`` offers for the verifier role."""

    def find(self, name: str, settings: Settings) -> LocalPlugin:
        """Return the model of this name. Raises SettingsError if the name is neither a path nor a
        hub id.
        """
        parse_name(name)
        return LocalPlugin(name)

    def available(self, settings: Settings) -> tuple[str, ...]:
        """Return the models in the hub's cache that can verify."""
        offered = []
        for downloaded in downloaded_models():
            name = downloaded.name.partition(":")[2]
            try:
                check(name)
            # Another kind of model. Naming it explicitly raises the error.
            except (SettingsError, MissingExtra):
                continue
            offered.append(downloaded.name)
        return tuple(offered)


verifiers = Registry()
