"""What the settings name and nothing answers to: models, graders, an output validator; each with its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from masis.api.roles import resolve_model
from masis.audit import output_validation
from masis.errors import MissingExtra, MissingKey, SettingsError
from masis.screening.critic import ROLE, grader_names
from masis.settings import Loaded, Settings

Check = Callable[[], object]


def check_named(loaded: Loaded) -> None:
    """Raise SettingsError where an audit's settings name what there is none of, with the place it was named in."""
    if faults := misnamed(loaded, _of_audit(loaded.settings)):
        raise SettingsError("\n".join(faults))


def misnamed_anywhere(loaded: Loaded) -> list[str]:
    """What is wrong with whatever the settings name, the graders of screenings included."""
    return misnamed(loaded, (*_of_audit(loaded.settings), ("screening_graders", partial(_graders, loaded.settings))))


def misnamed(loaded: Loaded, checks: tuple[tuple[str, Check], ...]) -> list[str]:
    """What these checks of settings find, each with the place.

    A key that is not there is no fault of the settings; nor is an extra that is not installed.
    """
    faults = []
    for setting, check in checks:
        try:
            check()
        except (MissingKey, MissingExtra):
            continue
        except SettingsError as error:
            spoken = loaded.origins[setting].spoken
            faults.append(f"{spoken}, {error}" if spoken else str(error))
    return faults


def _of_audit(settings: Settings) -> tuple[tuple[str, Check], ...]:
    roles = ((role, partial(resolve_model, model, role, settings)) for role, model in settings.models().items())
    return (*roles, ("output_validator", partial(output_validation.chosen, settings.output_validator)))


def _graders(settings: Settings) -> None:
    for name in grader_names(settings):
        try:
            resolve_model(name, ROLE, settings)
        except (MissingKey, MissingExtra):
            continue
