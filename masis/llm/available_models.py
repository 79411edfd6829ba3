"""Which models a person may choose from without typing: those that could be asked now."""

from __future__ import annotations

from masis.errors import SettingsError
from masis.llm.endpoints import KNOWN, endpoint
from masis.settings import OFFLINE, Settings


def offered(settings: Settings) -> tuple[str, ...]:
    """Offline, the defaults of each vendor whose key is here, and every model that the settings name."""
    names = [OFFLINE]
    for vendor, known in KNOWN.items():
        if known.strong and _has_key(vendor, settings):
            names += [f"{vendor}:{known.strong}", f"{vendor}:{known.plain}"]
    names += [name for name in settings.prices if name.partition(":")[0] in {*KNOWN, *settings.providers}]
    names += [string for string in settings.models().values() if ":" in string]
    return tuple(dict.fromkeys(names))


def _has_key(vendor: str, settings: Settings) -> bool:
    try:
        return endpoint(vendor, settings).key is not None
    except SettingsError:  # no key: said where somebody asks for the model
        return False


def endpoint_of(string: str, settings: Settings) -> str:
    """Where a model's questions go: the address of its provider. Raises SettingsError."""
    return endpoint(string.partition(":")[0], settings).address
