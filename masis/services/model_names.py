"""Check which models a person may name: configured ones, and those that open no file here.

``replay:FILE`` and ``local:FOLDER`` name a file or folder of the server. If anyone could name one,
its error would tell whether a file exists, and the server would open it.
"""

from __future__ import annotations

from collections.abc import Iterator

from masis.api.roles import offered_models
from masis.errors import SettingsError
from masis.extensions import extensions
from masis.llm.role_plugins import fillable_roles
from masis.schema.actor import Actor
from masis.schema.model_ref import DEMO_REPLIES, ModelRef
from masis.services.access import Access
from masis.settings import Settings


def assert_listed(access: Access, actor: Actor, named: Settings, configured: Settings) -> None:
    """Raise SettingsError if a role or an extension names a file, folder or plug-in that
    is neither configured nor offered, as downloaded models are.

    People who can change the settings may name any model. The error is the same whether or not the
    file exists, and no file is opened.

    Args:
        access: The access rule of the workbench.
        actor: Who named the models.
        named: The settings with the models.
        configured: The settings of the workbench.

    """
    if access.allows(actor, "configure"):
        return
    listed = {text for _, text in _named_models(configured)}
    for role, model_text in _named_models(named):
        model = _strip_first_stage(model_text)
        if not _opens_files(ModelRef.parse(model)):
            continue
        allowed = (*listed, *offered_models(configured, role))
        if model not in map(_strip_first_stage, allowed):
            raise SettingsError(
                f"{role}: {model[:200]!r} isn't a model of this workbench. Choose one from the"
                " list, or ask an admin to add it to the configuration."
            )


def _named_models(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each role with its model string, also the models that extensions use."""
    yield from settings.models().items()
    for extension in extensions():
        for models in extension.model_lists:
            for name in getattr(settings, models.setting).split(","):
                if name.strip():
                    yield models.role, name.strip()


def _strip_first_stage(model_text: str) -> str:
    """Return the model of a string without its first stage."""
    return str(ModelRef.parse(model_text).alone)


def _opens_files(ref: ModelRef) -> bool:
    if ref.is_replay:
        return ref.name != DEMO_REPLIES
    return bool(fillable_roles(ref))
