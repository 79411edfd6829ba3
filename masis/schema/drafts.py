"""Critique of a draft: the request and the result (DRAFT-CRITIQUE-REQUEST, DRAFT-CRITIQUE-RESULT).

Names are ours in Python and the spec's in JSON: both ``auto_revise`` and ``autoRevise`` are read,
and ``model_dump(by_alias=True)`` writes the spec's.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from masis.errors import InputError
from masis.schema.base import Share
from masis.schema.case import Evidence
from masis.schema.display import OneLine
from masis.schema.run import ReviewReason
from masis.schema.wording import count_noun

DraftIssueType = Literal["hallucination", "unsupported", "incomplete", "contradiction", "outdated"]
DraftSeverity = Literal["low", "medium", "high"]


class CamelRecord(BaseModel):
    """A frozen record that knows all its fields, each under its name here and under the spec's."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class SourceDocument(CamelRecord):
    """What a draft is held against. ``type`` is a word such as ``code``, ``doc`` or
    ``decision``.
    """

    id: StrictStr = Field(min_length=1)
    content: StrictStr
    type: str = ""
    path: str | None = None
    relevance_score: float | None = None

    def as_evidence(self) -> Evidence:
        """Return the chunk of evidence that it is."""
        return Evidence.model_validate(
            {"id": self.id, "text": self.content, "source": self.path, "type": self.type}
        )


class CritiqueOptions(CamelRecord):
    """What to check and whether to revise; the defaults are the spec's."""

    strictness: Literal["lenient", "moderate", "strict"] = "moderate"
    check_factual: bool = True
    check_completeness: bool = True
    check_contradictions: bool = True
    auto_revise: bool = False
    max_revisions: int = Field(default=1, ge=1, le=4)


class DraftCritiqueRequest(CamelRecord):
    """A draft with its question and its sources; options that are not given are those of the
    settings.
    """

    query: StrictStr
    draft: StrictStr
    sources: tuple[SourceDocument, ...]
    options: CritiqueOptions | None = None


class CritiqueIssue(CamelRecord):
    """One objection. ``location`` quotes the draft, ``related_source`` is the id of a source that
    says so.
    """

    type: DraftIssueType
    severity: DraftSeverity
    description: str
    location: str | None = None
    suggestion: str | None = None
    related_source: str | None = None


class CritiqueMetadata(CamelRecord):
    """The critique in figures. ``facts_unscored`` are those of ``facts_checked`` on which no
    verdict could be had.
    """

    facts_checked: int
    facts_verified: int
    facts_unscored: int = 0
    sources_used: tuple[str, ...]
    critique_time_ms: float


class CritiqueResult(OneLine, CamelRecord):
    """What was found about a draft.

    All but ``revised_draft``, ``revised_is_valid`` and ``remaining_issues`` is about the original
    draft. A revision that was audited as worse than the draft is not given. ``unscored`` says what
    could not be judged and why: a draft with a step that failed is not valid, and ``confidence`` is
    None if not one claim could be found for it. ``needs_review`` is the acceptance rule of audits,
    with its reasons; a draft that cites nothing may pass it.
    """

    is_valid: bool
    confidence: Share | None
    issues: tuple[CritiqueIssue, ...]
    suggestions: tuple[str, ...]
    revised_draft: str | None = None
    revised_is_valid: bool | None = None
    remaining_issues: tuple[CritiqueIssue, ...] = ()
    unscored: tuple[str, ...] = ()
    needs_review: bool = True
    review_reasons: tuple[ReviewReason, ...] = ()
    metadata: CritiqueMetadata

    def __repr__(self) -> str:
        """Return what matters on one line; the records and texts would fill pages."""
        state = "valid" if self.is_valid else "not valid"
        revised = "" if self.revised_draft is None else ", with a revision"
        return f"<CritiqueResult: {state}, {count_noun(len(self.issues), 'issue')}{revised}>"


class DraftMetrics(CamelRecord):
    """The metrics of the spec over many critiques, under its names.

    Shares are 0..1, latency is the mean in milliseconds; what has nothing to be computed from is
    None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=None)

    critique_hallucination_rate: Share | None
    critique_revision_rate: Share | None
    critique_latency_ms: float | None
    critique_confidence_avg: Share | None
    claims_per_draft: float | None


class PipelineOptions(CamelRecord):
    """What a query is to bring: only sources, a draft from them, and its critique. None: as the
    settings say.
    """

    generate_answer: bool = True
    enable_critique: bool | None = None
    critique_options: CritiqueOptions | None = None


class PipelineResult(CamelRecord):
    """What a query brought. ``draft`` is the revision where there is one; ``not_critiqued`` says
    why there is no critique.
    """

    context: str
    search_results: tuple[SourceDocument, ...]
    draft: str | None = None
    critique: CritiqueResult | None = None
    not_critiqued: str | None = None


Options = TypeVar("Options", bound=CamelRecord)


def options_of(kind: type[Options], given: Options | Mapping[str, Any]) -> Options:
    """Options as a record, from one or from a mapping in the spec's names or ours.

    Raises InputError naming every option that is wrong, with the nearest right name.
    """
    if isinstance(given, kind):
        return given
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = [_option_problem(each, kind) for each in error.errors(include_url=False)]
        names = ", ".join(field.alias or name for name, field in kind.model_fields.items())
        raise InputError(
            "; ".join(problems), hint=f"There are: {names}.", field="options"
        ) from error


def _option_problem(error: ErrorDetails, kind: type[CamelRecord]) -> str:
    place = ".".join(map(str, error["loc"])) or "what was given"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    inside = CritiqueOptions if len(error["loc"]) > 1 else kind
    near = difflib.get_close_matches(
        str(error["loc"][-1])[:60], [to_camel(name) for name in inside.model_fields], n=1
    )
    return f"there is no option {place}" + (f" (did you mean {near[0]}?)" if near else "")
