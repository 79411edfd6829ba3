"""The request and result of a draft critique (DRAFT-CRITIQUE-REQUEST, DRAFT-CRITIQUE-RESULT).

Python uses our names and JSON the spec's: ``auto_revise`` and ``autoRevise`` are both read, and
``model_dump(by_alias=True)`` writes the spec's.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StrictStr, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from masis.errors import InputError
from masis.schema.base import CheckedModel, Share
from masis.schema.case import Evidence
from masis.schema.display import OneLine
from masis.schema.run import ReviewReason
from masis.schema.wording import count_noun

DraftIssueType = Literal["hallucination", "unsupported", "incomplete", "contradiction", "outdated"]
DraftSeverity = Literal["low", "medium", "high"]


class CamelRecord(CheckedModel):
    """A frozen record without unknown fields; each field has a Python name and the spec's name."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class SourceDocument(CamelRecord):
    """A source to check a draft against.

    ``type`` is a word such as ``code``, ``doc`` or ``decision``.
    """

    id: StrictStr = Field(min_length=1)
    content: StrictStr
    type: str = ""
    path: str | None = None
    relevance_score: float | None = None

    def as_evidence(self) -> Evidence:
        """Return the source as a chunk of evidence."""
        return Evidence.model_validate(
            {"id": self.id, "text": self.content, "source": self.path, "type": self.type}
        )


class CritiqueOptions(CamelRecord):
    """The checks to run and whether to revise; the defaults are the spec's."""

    strictness: Literal["lenient", "moderate", "strict"] = "moderate"
    check_factual: bool = True
    check_completeness: bool = True
    check_contradictions: bool = True
    auto_revise: bool = False
    max_revisions: int = Field(default=1, ge=1, le=4)


class DraftCritiqueRequest(CamelRecord):
    """A draft with its question and sources. Without ``options``, the settings apply."""

    query: StrictStr
    draft: StrictStr
    sources: tuple[SourceDocument, ...]
    options: CritiqueOptions | None = None


class CritiqueIssue(CamelRecord):
    """One issue of a draft.

    ``location`` quotes the draft; ``related_source`` is the id of the source that says so.
    """

    type: DraftIssueType
    severity: DraftSeverity
    description: str
    location: str | None = None
    suggestion: str | None = None
    related_source: str | None = None


class CritiqueMetadata(CamelRecord):
    """The critique in figures.

    ``facts_unscored`` counts those of ``facts_checked`` that got no verdict.
    """

    facts_checked: int
    facts_verified: int
    facts_unscored: int = 0
    sources_used: tuple[str, ...]
    critique_time_ms: float


class CritiqueResult(OneLine, CamelRecord):
    """The critique of a draft.

    Everything except ``revised_draft``, ``revised_is_valid`` and ``remaining_issues`` is about the
    original draft. A revision that was audited as worse than the draft is left out.

    Attributes:
        is_valid: False for a draft with a failed step.
        confidence: None if no claim could be extracted from the draft.
        unscored: The parts that couldn't be judged, with reasons.
        needs_review: The result of the acceptance rule of audits. A draft that cites nothing may
            pass.

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
        """Return the main results on one line; the records and texts would fill pages."""
        state = "valid" if self.is_valid else "not valid"
        revised = "" if self.revised_draft is None else ", with a revision"
        return f"<CritiqueResult: {state}, {count_noun(len(self.issues), 'issue')}{revised}>"


class DraftMetrics(CamelRecord):
    """The metrics of the spec over many critiques, under the spec's names.

    Shares are from 0 to 1 and latency is the mean in milliseconds. A metric without data is None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=None)

    critique_hallucination_rate: Share | None
    critique_revision_rate: Share | None
    critique_latency_ms: float | None
    critique_confidence_avg: Share | None
    claims_per_draft: float | None


class PipelineOptions(CamelRecord):
    """The parts of a query's result: sources, a draft from them, and its critique.

    None means that the settings decide.
    """

    generate_answer: bool = True
    enable_critique: bool | None = None
    critique_options: CritiqueOptions | None = None


class PipelineResult(CamelRecord):
    """The result of a query.

    ``draft`` is the revision if there is one; ``not_critiqued`` says why there is no critique.
    """

    context: str
    search_results: tuple[SourceDocument, ...]
    draft: str | None = None
    critique: CritiqueResult | None = None
    not_critiqued: str | None = None


Options = TypeVar("Options", bound=CamelRecord)


def options_of(kind: type[Options], options: Options | Mapping[str, Any]) -> Options:
    """Return options as a record, from a record or from a mapping in the spec's or Python's names.

    Raises:
        InputError: An option is wrong. The error names all of them, with the closest right names.

    """
    if isinstance(options, kind):
        return options
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        problems = [_option_problem(detail, kind) for detail in error.errors(include_url=False)]
        names = ", ".join(field.alias or name for name, field in kind.model_fields.items())
        raise InputError(
            "; ".join(problems), hint=f"There are: {names}.", field="options"
        ) from error


def _option_problem(error: ErrorDetails, kind: type[CamelRecord]) -> str:
    place = ".".join(map(str, error["loc"])) or "the options"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    inside = CritiqueOptions if len(error["loc"]) > 1 else kind
    near = difflib.get_close_matches(
        str(error["loc"][-1])[:60], [to_camel(name) for name in inside.model_fields], n=1
    )
    return f"there is no option {place}" + (f" (did you mean {near[0]}?)" if near else "")
