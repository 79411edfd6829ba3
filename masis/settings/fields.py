"""The settings themselves: one field each, with its range and its default, which is the spec's where a spec has one.

A field that is added here is read from file, environment and flags without more; it needs words in
``masis/settings/docs.py``, and a name in ``NOT_OF_AUDIT`` where an audit's result does not rest on it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from masis.errors import SettingsError
from masis.schema.base import Record, Share
from masis.schema.providers import Price, ProviderSettings

Role = Literal["drafter", "verifier", "critic", "reviser", "evaluator"]
ROLES: tuple[Role, ...] = ("drafter", "verifier", "critic", "reviser", "evaluator")
OFFLINE = "offline"
Seconds = Annotated[float, Field(gt=0, le=3600)]


class InvalidSettings(SettingsError, ValueError):
    """Settings were made in Python of values that are wrong; a ValueError too, as pydantic's own error is."""


def _explained(error: ValidationError) -> str:
    """Return what is wrong with settings made in Python. Values are not repeated: one may be a key."""
    problems = []
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        message = f"{each['msg'][:1].lower()}{each['msg'][1:].rstrip('.')}"
        problems.append(f"{place}: {message}." if place else f"{message}.")
    return " ".join(problems)


class Settings(Record):
    """The settings of an audit. Every default that a rule fixes is the rule's."""

    # who judges
    drafter: str = OFFLINE
    verifier: str = OFFLINE
    critic: str = OFFLINE
    reviser: str = OFFLINE
    evaluator: str = OFFLINE

    # how models are reached; keys are never settings
    max_retries: Annotated[int, Field(ge=0, le=5)] = 2
    retry_base_s: Annotated[float, Field(gt=0, le=60)] = 0.5
    retry_cap_s: Annotated[float, Field(gt=0, le=600)] = 8.0
    claims_batch: Annotated[int, Field(ge=1, le=50)] = 8
    local_supported_from: Share = 0.75
    local_unsupported_to: Share = 0.1
    local_contradicted_from: Share = 0.8
    local_threads: Annotated[int, Field(ge=1, le=64)] = 1
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)
    programs_folder: str = ""

    # citations
    citation_mode: Literal["standard", "literal"] = "standard"
    invalid_citation_penalty: Share = 0.5
    uncited_claim_penalty: Share = 0.9

    # scores
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

    # the loop
    max_iterations: Annotated[int, Field(ge=1, le=5)] = 3
    min_iterations: Annotated[int, Field(ge=1, le=5)] = 1
    improvement_threshold: Share = 0.05
    call_deadline_s: Seconds = 15.0
    iteration_deadline_s: Seconds = 35.0
    loop_deadline_s: Seconds = 90.0
    judge_samples: Annotated[int, Field(ge=1, le=9)] = 1
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    output_validator: Annotated[str, Field(min_length=1, max_length=100)] = "pydantic"
    log_texts: bool = False
    log_format: Literal["text", "json"] = "text"
    telemetry: Literal["off", "otlp", "console"] = "off"
    telemetry_texts: bool = False

    # claims and drafts
    strictness: Literal["lenient", "moderate", "strict"] = "moderate"
    check_factual: bool = True
    check_completeness: bool = True
    check_contradictions: bool = True
    draft_critique: bool = True
    draft_auto_revise: bool = False
    draft_max_revisions: Annotated[int, Field(ge=1, le=4)] = 1
    draft_min_length: Annotated[int, Field(ge=0)] = 50

    # screening
    screening_graders: str = OFFLINE
    screening_retrieve: Annotated[int, Field(ge=1, le=1000)] = 20
    screening_max_rounds: Annotated[int, Field(ge=1, le=100)] = 4
    screening_least_rounds: Annotated[int, Field(ge=1, le=100)] = 1
    screening_required_first: Share = 0.70
    screening_required_step: Share = 0.05
    screening_required_least: Share = 0.55
    screening_keep_share: Share = 0.60
    screening_discard_share: Share = 0.50
    screening_memory: bool = False
    screening_memory_bound: Annotated[float, Field(ge=0, le=0.1)] = 0.05
    screening_criteria: Annotated[str, Field(max_length=10_000)] = ""
    screening_concepts: Annotated[str, Field(max_length=10_000)] = ""
    screening_pubmed_email: str = ""
    screening_pubmed_address: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"

    # who looks
    review_threshold: Share = 0.7
    review_quality: Share = 0.7
    review_disagreement: Share = 0.5
    review_uncited_answers: bool = True
    max_judge_spread: Share = 0.2
    review_revised: bool = True
    spot_check_share: Share = 0.05
    spot_check_seed: int = 0

    # retention: REQ-CRITIC-COMP-002, REQ-CRITIC-SEC-004
    retention_days: Annotated[int, Field(ge=0, le=36_500)] = 30
    retention_auto: bool = False

    # backups that masis serve makes
    backup_folder: str = ""
    backup_hours: Annotated[int, Field(ge=1, le=8760)] = 24
    backup_keep: Annotated[int, Field(ge=1, le=1000)] = 14

    if not TYPE_CHECKING:  # type checkers know the fields from the class

        def __init__(self, /, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                raise InvalidSettings(_explained(error)) from None

        # What pydantic's own __init__ carries: with it, settings that are read, with a place each, don't come here.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _names(cls, data: Any) -> Any:
        """Reject a wrong name with the nearest right one, in Python too."""
        for name in data if isinstance(data, Mapping) else ():
            if name not in cls.model_fields:
                near = difflib.get_close_matches(str(name)[:60], cls.model_fields, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                context = {"name": str(name)[:60], "hint": hint}
                raise PydanticCustomError("no_such_setting", "there is no setting '{name}'.{hint}", context)
        return data

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
NOT_OF_AUDIT = {
    *("providers", "prices", "programs_folder", "max_retries", "retry_base_s", "retry_cap_s", "local_threads"),
    *("log_texts", "log_format", "telemetry", "telemetry_texts"),
    *("retention_days", "retention_auto", "backup_folder", "backup_hours", "backup_keep"),
}
