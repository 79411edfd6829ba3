"""All settings, and the only place that reads the environment and the configuration file.

A value comes, strongest first, from a flag, the environment (``MASIS_MAX_ITERATIONS``), the file ``masis.toml``, or the
default, which is the spec's constant where a spec has one. ``load()`` remembers which.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError

from masis.errors import SettingsError
from masis.schema.base import Record, Share
from masis.schema.providers import Price, ProviderSettings

Role = Literal["drafter", "verifier", "critic", "reviser", "evaluator"]
ROLES: tuple[Role, ...] = ("drafter", "verifier", "critic", "reviser", "evaluator")
OFFLINE = "offline"
Seconds = Annotated[float, Field(gt=0, le=3600)]


class Settings(Record):
    """What an audit may be told. Every default that a spec fixes is the spec's."""

    # who judges
    drafter: str = OFFLINE
    verifier: str = OFFLINE
    critic: str = OFFLINE
    reviser: str = OFFLINE
    evaluator: str = OFFLINE

    # how models are reached (DESIGN.md, 4.3 and 5); keys are never settings
    max_retries: Annotated[int, Field(ge=0, le=5)] = 2
    retry_base_s: Annotated[float, Field(gt=0, le=60)] = 0.5
    retry_cap_s: Annotated[float, Field(gt=0, le=600)] = 8.0
    claims_batch: Annotated[int, Field(ge=1, le=50)] = 8
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)

    # specs/masis-critic.md
    citation_mode: Literal["standard", "literal"] = "standard"
    invalid_citation_penalty: Share = 0.5
    uncited_claim_penalty: Share = 0.9

    # specs/masis-evaluator.md
    hallucination_faithfulness_cap: Share = 0.4
    uncited_faithfulness_cap: Share = 0.5
    uncited_cap_from: Annotated[int, Field(ge=1)] = 5
    many_uncited_faithfulness_cap: Share = 0.3
    many_uncited_cap_from: Annotated[int, Field(ge=1)] = 10
    faithfulness_weight: Share = 0.35
    relevance_weight: Share = 0.25
    completeness_weight: Share = 0.25
    reasoning_weight: Share = 0.15
    evaluate: Literal["every", "final", "never"] = "every"

    # specs/critic-loop.md
    max_iterations: Annotated[int, Field(ge=1, le=5)] = 3
    improvement_threshold: Share = 0.05
    call_deadline_s: Seconds = 15.0
    iteration_deadline_s: Seconds = 35.0
    loop_deadline_s: Seconds = 90.0
    judge_samples: Annotated[int, Field(ge=1, le=9)] = 1
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    log_texts: bool = False

    # specs/draft-critique.md
    strictness: Literal["lenient", "moderate", "strict"] = "moderate"
    check_factual: bool = True
    check_completeness: bool = True
    check_contradictions: bool = True
    draft_critique: bool = True
    draft_auto_revise: bool = False
    draft_max_revisions: Annotated[int, Field(ge=1, le=4)] = 1
    draft_min_length: Annotated[int, Field(ge=0)] = 50

    # specs/aesop-evidence-critic.md
    screening_graders: str = OFFLINE
    screening_retrieve: Annotated[int, Field(ge=1, le=1000)] = 20
    screening_max_rounds: Annotated[int, Field(ge=1, le=8)] = 4
    screening_required_first: Share = 0.70
    screening_required_step: Share = 0.05
    screening_required_least: Share = 0.55
    screening_keep_share: Share = 0.60
    screening_discard_share: Share = 0.50
    screening_memory: bool = False
    screening_memory_bound: Annotated[float, Field(ge=0, le=0.1)] = 0.05
    screening_pubmed_email: str = ""
    screening_pubmed_address: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"

    # who looks
    review_threshold: Share = 0.7
    max_judge_spread: Share = 0.2
    review_revised: bool = True
    spot_check_share: Share = 0.05
    spot_check_seed: int = 0

    def models(self) -> dict[str, str]:
        """The model string of each role."""
        return {role: getattr(self, role) for role in ROLES}

    def of_audit(self) -> dict[str, Any]:
        """What an audit's result rests on, JSON-ready: kept with the run, and what makes two audits the same.

        How a model is reached, what it costs and what is logged are left out, and what belongs to screening or to
        critique_draft alone.
        """
        whole = self.model_dump(mode="json", exclude=NOT_OF_AUDIT)
        return {name: value for name, value in whole.items() if not name.startswith(("screening_", "draft_"))}

    def of_screening(self) -> dict[str, Any]:
        """What a screening's result rests on, JSON-ready: kept with it. Who asks PubMed, and where, is left out."""
        whole = self.model_dump(mode="json", exclude=NOT_OF_SCREENING)
        return {name: value for name, value in whole.items() if name.startswith("screening_")}

    def as_told(self, of_audit: Mapping[str, Any]) -> Settings:
        """These settings with those of an audit or a screening begun before: what one that is taken up goes on with."""
        return Settings.model_validate(self.model_dump() | dict(of_audit))


NOT_OF_SCREENING = {"screening_pubmed_email", "screening_pubmed_address"}
NOT_OF_AUDIT = {"providers", "prices", "max_retries", "retry_base_s", "retry_cap_s", "log_texts"}


class Origin(NamedTuple):
    """Where a setting's value came from: ``default``, ``file``, ``environment`` or ``flag``, and the exact place."""

    kind: Literal["default", "file", "environment", "flag"]
    place: str


class Loaded(NamedTuple):
    """Settings with the origin of each value."""

    settings: Settings
    origins: dict[str, Origin]


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Settings from flags over environment over file over defaults.

    Raises SettingsError naming the key, its place and the nearest right key.
    """
    environment = os.environ if environment is None else environment
    file = file or config_file(environment)
    values: dict[str, Any] = {}
    origins = {name: Origin("default", "") for name in Settings.model_fields}

    def take(key: str, value: Any, origin: Origin) -> None:
        if key not in Settings.model_fields:
            near = difflib.get_close_matches(key, Settings.model_fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{origin.place}: there is no setting {key!r}.{hint}")
        values[key], origins[key] = value, origin

    if file is not None:
        for key, value in _read_file(file).items():
            take(key, value, Origin("file", f"{file}, {key}"))
    for variable, value in environment.items():
        if variable.startswith("MASIS_") and (key := variable.removeprefix("MASIS_").lower()) in Settings.model_fields:
            take(key, value, Origin("environment", variable))
    for key, value in (flags or {}).items():
        take(key, value, Origin("flag", f"--set {key}"))
    try:
        return Loaded(Settings.model_validate(values), origins)
    except ValidationError as error:
        raise SettingsError(_wrong_value(error, origins)) from None


def _wrong_value(error: ValidationError, origins: Mapping[str, Origin]) -> str:
    """Which value is wrong. What stands where no value belongs is never repeated: it may be a key."""
    first = error.errors()[0]
    key, *inside = (str(part) for part in first["loc"])
    place = ".".join([origins[key].place if key in origins else key, *inside])
    if inside[-1:] == ["key_env"]:
        return f"{place}: is no name of a variable, such as OPENAI_API_KEY. The key itself does not belong here."
    if first["type"] != "extra_forbidden":
        return f"{place}: {first['msg']} (got {first['input']!r})"
    known = ProviderSettings.model_fields if key == "providers" else Price.model_fields
    cure = " Keys stand in the environment or a secrets file: name the variable with key_env." * (key == "providers")
    return f"{place}: there is no such setting. There are: {', '.join(known)}.{cure}"


def _read_file(file: Path, named_by: str = "MASIS_CONFIG") -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: can't be read ({error.strerror}). Check {named_by}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is no valid TOML ({error}).") from error


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A variable of the environment that belongs to a provider, such as ``OPENAI_BASE_URL``; None where it is empty."""
    return (os.environ if environment is None else environment).get(name, "").strip() or None


def secret(name: str, environment: Mapping[str, str] | None = None) -> SecretStr | None:
    """A key by its name: from the environment, else from the secrets file; None where neither has it.

    The secrets file is ``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder, with lines such as
    ``OPENAI_API_KEY = "..."``. Raises SettingsError for a file that can't be read, and for a key that is no text.
    """
    environment = os.environ if environment is None else environment
    if value := environment.get(name, "").strip():
        return SecretStr(value)
    file = secrets_file(environment)
    value = _read_file(file, "MASIS_SECRETS").get(name, "") if file else ""
    if not isinstance(value, str):
        raise SettingsError(f"{file}, {name}: a key is text in quotes.")
    return SecretStr(value.strip()) if value.strip() else None


def secrets_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """``MASIS_SECRETS``, else ``masis.secrets.toml`` in the working folder if there is one."""
    environment = os.environ if environment is None else environment
    if named := environment.get("MASIS_SECRETS"):
        return Path(named)
    here = Path("masis.secrets.toml")
    return here if here.is_file() else None


def config_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """``MASIS_CONFIG``, else ``masis.toml`` in the working folder if there is one."""
    environment = os.environ if environment is None else environment
    if named := environment.get("MASIS_CONFIG"):
        return Path(named)
    here = Path("masis.toml")
    return here if here.is_file() else None


def data_folder() -> Path:
    """The user's data folder for the workbench."""
    return user_data_path("masis", appauthor=False)


def database_path(named: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """Where the database lies: ``--db``, else ``MASIS_DB``, else ``masis.db`` in the user's data folder."""
    environment = os.environ if environment is None else environment
    if named is not None:
        return Path(named).expanduser()
    if from_environment := environment.get("MASIS_DB"):
        return Path(from_environment).expanduser()
    return data_folder() / "masis.db"


def demo_database_path() -> Path:
    """The demo's own database, which ``masis demo --reset`` starts anew."""
    return data_folder() / "demo.db"
