"""Checks that models, graders and output validator named in the settings exist; errors name the place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from masis.api.roles import resolve_model
from masis.audit import output_validation
from masis.errors import MissingExtra, MissingKey, MissingModel, SettingsError
from masis.screening.critic import ROLE, grader_names
from masis.settings import Loaded, Settings

Check = Callable[[], object]


def check_named(loaded: Loaded) -> None:
    """Raise SettingsError where an audit's settings name something that does not exist, with the place."""
    if errors := misnamed(loaded, _of_audit(loaded.settings)):
        raise SettingsError("\n".join(errors))


def misnamed_anywhere(loaded: Loaded) -> list[str]:
    """Return the errors in whatever the settings name, the graders of screenings included."""
    return misnamed(loaded, (*_of_audit(loaded.settings), ("screening_graders", partial(_graders, loaded.settings))))


def misnamed(loaded: Loaded, checks: tuple[tuple[str, Check], ...]) -> list[str]:
    """Return the errors that these checks of settings raise, each with the place.

    A missing key is no error of the settings; nor is an extra that is not installed, nor a model not downloaded yet.
    """
    errors = []
    for setting, check in checks:
        try:
            check()
        except (MissingKey, MissingExtra, MissingModel):
            continue
        except SettingsError as error:
            place = loaded.origins[setting].place
            errors.append(f"{place}, {error}" if place else str(error))
    return errors


def _of_audit(settings: Settings) -> tuple[tuple[str, Check], ...]:
    roles = ((role, partial(resolve_model, model, role, settings)) for role, model in settings.models().items())
    return (*roles, ("output_validator", partial(output_validation.chosen, settings.output_validator)))


def _graders(settings: Settings) -> None:
    for name in grader_names(settings):
        try:
            resolve_model(name, ROLE, settings)
        except (MissingKey, MissingExtra):
            continue
