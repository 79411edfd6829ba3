"""Builds the data of the answer view: the answer as marked pieces, the issues and the evidence.

The functions are pure and turn a case and one iteration of a run into values that are ready for
JSON. Python counts characters as code points and JavaScript as UTF-16 units, so texts are cut here
(``marks.py``) and sent as pieces instead of offsets. This module only presents results: the
references were resolved (``masis/audit/markers/resolution.py``) and the claims checked by the
audit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import NotRequired, TypedDict

from masis.audit.citations.citing_style import CitingStyle, citing_style
from masis.audit.markers import without_markers
from masis.audit.sentences import split_sentences
from masis.audit.text.headings import heading_end, is_heading
from masis.schema.audit import Citation, ClaimCheck, Issue
from masis.schema.case import Case, Evidence
from masis.schema.issue_groups import word_stems
from masis.schema.review import answer_digest
from masis.schema.run import Iteration, Run
from masis.schema.wording import shorten
from masis.views.diff import ChangeKind, word_changes
from masis.views.headline import LONGEST_QUOTED, written_markers
from masis.views.issue_history import Course, FollowedIssue, course_at, follow, follow_groups
from masis.views.marks import (
    AnswerPiece,
    Bearing,
    EvidencePiece,
    TextSpan,
    answer_pieces,
    contradicting_chunks,
    count_facts,
    evidence_pieces,
    reference_marks,
)
from masis.views.markup import MarkupBlock, find_markup, with_markup
from masis.views.numbering import CLAIM_RULES, SEVERITIES, numbered_issues, worst_of
from masis.views.story import no_issues_text
from masis.views.verdicts import (
    WITHOUT_PASSAGE,
    ClaimData,
    ReferenceData,
    claims_data,
    references_data,
    target_key,
)
from masis.views.words import (
    COURSE,
    MARKED_WORDS,
    MISSING_FIGURE,
    REFERENCE,
    SENTENCE,
    VERDICT,
    LabelData,
    Word,
    label,
    no_answer_words,
    rule_word,
)

EVIDENCE_SHOWN = 200
"""Chunks drawn at once. If there are more, those that are cited or bear on a claim are drawn first.
"""

ISSUES_SHOWN = 300
"""Issues sent to the browser. If there are more, the most severe ones are sent."""

LONGEST_SENTENCE = 700
"""Longest text of an issue in characters; the full text is in the answer beside it."""

LONGEST_MARKER = 40
"""Longest marker that a card of the evidence shows, in characters."""

REASON_SHOWN = {
    # The issue itself says that the question asks for it, which isn't always true.
    "missing_information": "The evidence also says it, but the answer doesn't.",
}
"""Reasons shown to people in place of the issue's own reason, by rule."""

UNCITED, FABRICATED = "uncited_sentence", "fabricated_reference"


class RaisedData(TypedDict):
    """What one check or the critic says about an issue.

    ``restates`` is true for the critic's text if a check listed first gives its own reason.
    """

    label: LabelData
    severity: str
    description: str
    reason: str
    suggestion: str
    restates: NotRequired[bool]


class InsertionData(TypedDict):
    """What the evidence says about an issue, as a sentence for the correction.

    ``text`` has the citation in the style of the answer, and ``says`` has none. It belongs after
    the sentence ``after`` of the answer, if there is one. If ``cites``, ``text`` is only the
    citation that an uncited sentence lacks: it belongs after the words ``after``, and ``says`` is
    both together.
    """

    text: str
    says: str
    after: str
    cites: NotRequired[bool]


class IssueData(RaisedData):
    """One numbered issue (``numbering.py``). Number 1 is the gravest.

    ``also`` holds everything else raised about the same words. ``quote`` is the text concerned, if
    no other field contains it. ``claim`` is negative for a missing point, and
    ``EvidencePiece.claims`` contains it where the evidence states the point. ``target`` is the row
    of an uncited sentence, or of the citation that the issue is about, among the labels of the
    form. ``reference`` is the problem with a citation, as in ``AnswerPiece.reference``.
    """

    number: int
    also: list[RaisedData]
    evidence: list[str]
    quote: NotRequired[str]
    insert: NotRequired[InsertionData]
    claim: NotRequired[int]
    target: NotRequired[str]
    reference: NotRequired[str]
    course: NotRequired[LabelData]
    placed: bool


class FixedIssue(TypedDict):
    """An issue of the previous iteration that no longer exists."""

    label: LabelData
    description: str


class AnswerDifference(TypedDict):
    """The word-by-word difference between the answers of two iterations, numbered from 1."""

    left: int
    right: int
    changes: list[tuple[ChangeKind, str]]
    words_out: int
    words_in: int


class EvidenceCard(TypedDict):
    """One chunk of evidence, cut at the passages that bear on claims.

    ``cited_as`` is the marker with which the answer cites the chunk, if it isn't the chunk's id in
    brackets. ``source_against`` lists the claims that the chunk's source contradicts. ``body`` is
    the offset of the first sentence that isn't a heading.
    """

    id: str
    source: str
    pieces: list[EvidencePiece]
    blocks: list[MarkupBlock]
    cited: int
    cited_as: str
    bearing: list[int]
    source_against: list[int]
    body: int


class ChangeData(TypedDict):
    """One edit that led to this answer."""

    kind: str
    before: str
    after: str
    why: str


class LegendEntry(TypedDict):
    """One kind of mark, with its CSS name and how often it occurs in this answer."""

    mark: str
    label: LabelData
    count: int


class ShownAnswer(TypedDict):
    """Identifies the answer that a page shows.

    A decision sends it back and is refused if it concerns a different answer.
    """

    place: str
    digest: str


def shown_answer(case: Case, run: Run | None, index: int) -> ShownAnswer:
    """Identify the answer shown for iteration ``index`` (from 0), or for an unaudited case."""
    text = run.iterations[index].answer if run else case.answer or ""
    place = f"{case.id}/{run.id}/{index + 1}" if run else case.id
    return {"place": place, "digest": answer_digest(text)}


class AnswerViewData(TypedDict):
    """Everything the answer view draws.

    ``no_answer`` is the message shown if ``pieces`` is empty. ``corrected`` is the corrected answer
    of an active override, in pieces.
    """

    version: str
    shown: ShownAnswer
    question: str
    iteration: int
    pieces: list[AnswerPiece]
    blocks: list[MarkupBlock]
    claims: list[ClaimData]
    references: list[ReferenceData]
    issues: list[IssueData]
    issues_total: int
    nothing_found: str
    fixed: list[FixedIssue]
    difference: AnswerDifference | None
    evidence: list[EvidenceCard]
    evidence_total: int
    changes: list[ChangeData]
    changes_made: str
    legend: list[LegendEntry]
    audited: bool
    no_answer: str
    corrected: NotRequired[list[tuple[str, str]]]


def unaudited_answer_view(
    case: Case, version: str, *, shown: int = EVIDENCE_SHOWN
) -> AnswerViewData:
    """Return the view of an unaudited case: the plain answer and the first ``shown`` chunks."""
    plain: list[AnswerPiece] = [{"text": case.answer}] if case.answer else []
    cards = [_evidence_card(chunk, [], [], 0, chunk.id) for chunk in case.evidence[:shown]]
    return _view_without_issues(
        case, f"{version}/{shown}", shown_answer(case, None, 0), plain, cards, audited=False
    )


def answer_view(
    case: Case, run: Run, index: int, *, against: int | None = None, shown: int = EVIDENCE_SHOWN
) -> AnswerViewData:
    """Return the answer view of one iteration of a run.

    Args:
        case: The audited case.
        run: A run of the case.
        index: The iteration, counted from 0.
        against: Another iteration to compare the answer with; the earlier one is shown on the left.
        shown: The number of evidence chunks to draw.

    """
    iteration = run.iterations[index]
    followed = follow(run.iterations)
    # In the first iteration every issue is new, so a label for it would say nothing.
    issues, spans = _numbered_issues(case, iteration, course_at(followed, index) if index else {})
    marks = reference_marks(iteration)
    pieces = list(answer_pieces(iteration, marks, spans))
    version = f"{run.id}/{index}/{against}/{shown}"
    view = _view_without_issues(
        case,
        version,
        shown_answer(case, run, index),
        pieces,
        _evidence_cards(case, iteration, issues, shown),
        audited=True,
    )
    revision = run.iterations[index - 1].revision if index else None
    return {
        **view,
        "iteration": index + 1,
        "claims": claims_data(iteration),
        "references": references_data(iteration, marks),
        "issues": issues,
        "issues_total": len(issues),
        "nothing_found": "" if issues else no_issues_text(iteration),
        "fixed": list(_fixed_issues(follow_groups(run.iterations), index)),
        "difference": None if against is None else answer_difference(run, index, against),
        "changes": [
            {
                "kind": change.kind.replace("_", " "),
                "before": change.before,
                "after": change.after,
                "why": change.why,
            }
            for change in (revision.changes if revision else ())
        ],
        "changes_made": iteration.changes_made,
        "legend": _legend(iteration, marks, pieces),
    }


def _view_without_issues(
    case: Case,
    version: str,
    shown: ShownAnswer,
    pieces: list[AnswerPiece],
    evidence: list[EvidenceCard],
    *,
    audited: bool,
) -> AnswerViewData:
    """Return the view of an answer and its evidence without any results of an audit."""
    markup = find_markup("".join(piece["text"] for piece in pieces))
    return {
        "version": version,
        "shown": shown,
        "question": case.query,
        "iteration": 0,
        "pieces": with_markup(pieces, markup) if markup else pieces,
        "blocks": list(markup.blocks) if markup else [],
        "claims": [],
        "references": [],
        "issues": [],
        "issues_total": 0,
        "nothing_found": "",
        "fixed": [],
        "difference": None,
        "evidence": evidence,
        "evidence_total": len(case.evidence),
        "changes": [],
        "changes_made": "",
        "legend": [],
        "audited": audited,
        "no_answer": "" if pieces else no_answer_words(case),
    }


def for_browser(data: AnswerViewData) -> AnswerViewData:
    """Drop the least severe issues if there are too many for the browser.

    The numbers stay the same.
    """
    if len(data["issues"]) <= ISSUES_SHOWN:
        return data
    # sorted is stable, so issues of the same severity stay in the order of their numbers.
    by_weight = sorted(data["issues"], key=lambda issue: SEVERITIES.index(issue["severity"]))
    kept = {issue["number"] for issue in by_weight[:ISSUES_SHOWN]}
    return {**data, "issues": [issue for issue in data["issues"] if issue["number"] in kept]}


def answer_difference(run: Run, index: int, other_index: int) -> AnswerDifference:
    """Return what changed between the answers of two iterations, given in any order (from 0)."""
    left, right = sorted((index, other_index))
    changes = word_changes(run.iterations[left].answer, run.iterations[right].answer)
    return {
        "left": left + 1,
        "right": right + 1,
        "changes": [(change.kind, change.text) for change in changes],
        "words_out": sum(len(change.text.split()) for change in changes if change.kind == "out"),
        "words_in": sum(len(change.text.split()) for change in changes if change.kind == "in"),
    }


def _fixed_issues(followed: Iterable[FollowedIssue], index: int) -> Iterator[FixedIssue]:
    for history in followed:
        if history.courses[index] == "fixed" and (issue := history.issues[index - 1]):
            yield {
                "label": label(rule_word(issue.rule)),
                "description": shorten(issue.description, LONGEST_SENTENCE),
            }


def _numbered_issues(
    case: Case, iteration: Iteration, courses: dict[str, Course]
) -> tuple[list[IssueData], list[list[TextSpan]]]:
    """Return the issues ordered by number, and the spans of the answer that each one marks."""
    # Whole ids only: "chunk_1" must not match within "chunk_12".
    ids = [re.compile(rf"(?<!\w){re.escape(chunk.id)}(?!\w)") for chunk in case.evidence]
    claims = {
        (check.claim.start, check.claim.end): index for index, check in enumerate(iteration.claims)
    }
    rejected = {
        rejection.issue_id: rejection.reason
        for rejection in (iteration.revision.rejected if iteration.revision else ())
    }

    def claim_of(issue: Issue) -> int | None:
        return claims.get((issue.start, issue.end)) if issue.rule in CLAIM_RULES else None

    def partly(issue: Issue) -> bool:
        """Whether the critic doubts a claim that the evidence only supports in part."""
        at = claims.get((issue.start, issue.end)) if issue.rule == "critic_unsupported" else None
        return at is not None and iteration.claims[at].verdict == "partial"

    def sources(issue: Issue) -> Iterable[str]:
        # The critic names conflicting sources in its reason only.
        if issue.evidence_ids or issue.rule != "source_conflict":
            return issue.evidence_ids
        return (
            chunk.id
            for chunk, name in zip(case.evidence, ids, strict=True)
            if name.search(issue.reason)
        )

    def insertion(says: str, sources: Sequence[str], after: str) -> InsertionData:
        words = says.rstrip(". ")
        return {"text": f"{words} {style().write(sources)}.", "says": words, "after": after}

    @cache  # reading the markers back takes time, and most answers have nothing to insert
    def style() -> CitingStyle:
        return citing_style(iteration.answer, iteration.citation_audit, case.evidence)

    def worded(issue: Issue, first: Issue) -> RaisedData:
        is_repeat = issue is not first
        quoted = is_repeat and issue.reason and issue.quote and issue.quote in issue.description
        point = issue.rule == "missing_information"
        reason, suggestion = REASON_SHOWN.get(issue.rule, issue.reason), issue.suggestion
        if issue.rule == UNCITED:
            reason, suggestion = _uncited_reason(issue, iteration.claims)
        if issue.rule == "contradicted_claim" and (at := claim_of(issue)) is not None:
            reason = _contradicted_reason(issue, iteration.claims[at])
        if issue.id in rejected:
            reason = f"{reason} The reviser rejected this: {rejected[issue.id]}".strip()
        return {
            "label": label(VERDICT["partial"] if partly(issue) else _issue_word(issue)),
            "severity": issue.severity,
            # The words concerned are already shown above.
            "description": (
                "" if quoted else shorten(issue.point or issue.description, LONGEST_SENTENCE)
            ),
            "reason": shorten(reason, LONGEST_SENTENCE),
            "suggestion": "" if point else shorten(suggestion, LONGEST_SENTENCE),
            "restates": (
                is_repeat
                and issue.source == "critic"
                and bool(first.reason)
                and first.source != "critic"
            ),
        }

    groups = numbered_issues(iteration)
    issues: list[IssueData] = []
    for number, (first, *others) in enumerate(groups, 1):
        span, head = _issue_span(first), worded(first, first)
        data: IssueData = {
            "number": number,
            "label": head["label"],
            "severity": SEVERITIES[worst_of([first, *others])],
            "description": head["description"],
            "reason": head["reason"],
            "suggestion": head["suggestion"],
            "also": [worded(issue, first) for issue in others],
            "evidence": list(
                dict.fromkeys(name for issue in (first, *others) for name in sources(issue))
            ),
            "placed": span is not None,
        }
        # The texts of an uncited sentence don't quote it.
        if first.rule == UNCITED and span is not None:
            data["quote"] = shorten(
                iteration.answer[span.start : span.end].strip(), LONGEST_SENTENCE
            )
            data["target"] = target_key("sentence", *span)
        if (finding := _REFERENCE_FINDINGS.get(first.rule)) is not None:
            data["reference"] = finding
        if (citation := _citation_of(first, iteration)) is not None:
            data["target"] = target_key("reference", citation.start, citation.end)
        if (
            claim := next((at for at in map(claim_of, (first, *others)) if at is not None), None)
        ) is not None:
            data["claim"] = claim
        if (
            point := next(
                (issue for issue in (first, *others) if issue.rule == "missing_information"), None
            )
        ) is not None:
            data["claim"] = -number
            says = point.point or point.description
            after = _citing_sentence(iteration, data["evidence"], says)
            if data["evidence"] and not is_heading(says):
                data["insert"] = insertion(says, data["evidence"], after)
        elif claim is not None and (source := _evidence_sentence(case, iteration.claims[claim])):
            data["insert"] = insertion(*source, _sentence_with(iteration, claim))
        elif first.rule == UNCITED and span is not None:
            inside = _claims_inside(span, iteration.claims)
            if names := _sources_if_supported(inside):
                words = iteration.answer[span.start : span.end].rstrip(".!?;: \n")
                marker = style().write(names)
                data["insert"] = {
                    "text": marker,
                    "says": f"{words} {marker}",
                    "after": words,
                    "cites": True,
                }
        if course := courses.get(first.id):
            data["course"] = label(COURSE[course])
        issues.append(data)
    return issues, [[span for issue in group if (span := _issue_span(issue))] for group in groups]


def _uncited_reason(issue: Issue, claims: Iterable[ClaimCheck]) -> tuple[str, str]:
    """Return reason and suggestion for an uncited sentence, based on the checks of its claims.

    A sentence isn't doubtful because its citation is missing. If its claims aren't supported, they
    have issues of their own.
    """
    inside = _claims_inside(TextSpan(issue.start or 0, issue.end or 0), claims)
    names = _sources_if_supported(inside)
    if names is None:
        return "", issue.suggestion
    if sources := ", ".join(names):
        cited = [check for check in inside if check.sources]
        if len(cited) == len(inside):
            return f"It is supported by {sources}.", f"Cite {sources}."
        # The rest is right without a passage, such as words about a gap in the evidence.
        quoted = ", ".join(f"“{shorten(check.claim.text, LONGEST_QUOTED)}”" for check in cited)
        return f"{sources} supports {quoted}, and the rest needs no passage.", f"Cite {sources}."
    why = dict.fromkeys(filter(None, (check.steps for check in inside)))
    return (
        " ".join((WITHOUT_PASSAGE, *why)),
        "Label it exempt if it needs no citation, for example because it names a gap.",
    )


def _claims_inside(span: TextSpan, claims: Iterable[ClaimCheck]) -> list[ClaimCheck]:
    return [
        check
        for check in claims
        if check.claim.start is not None and span.start <= check.claim.start < span.end
    ]


def _sources_if_supported(checks: Collection[ClaimCheck]) -> list[str] | None:
    """Return the chunks that support these claims, or None if one of them isn't supported."""
    if not checks or any(check.verdict != "supported" for check in checks):
        return None
    return list(dict.fromkeys(name for check in checks for name in check.sources))


def _contradicted_reason(issue: Issue, check: ClaimCheck) -> str:
    """Return the reason of a contradicted claim, which names the chunk if the verifier gave none.

    The issue's own reason then only says that no evidence supports the claim. It can't be changed,
    because the reviser is asked with it and recorded replies are found by what was asked.
    """
    if check.issue:
        return issue.reason
    denying = sorted(contradicting_chunks(check))
    return f"{denying[0] if denying else 'The evidence'} says something else."


def _citing_sentence(iteration: Iteration, evidence: Collection[str], point: str) -> str:
    """Return a sentence of the answer that cites one of these chunks, with its markers, or "".

    If several do, the one that shares most words with the point is returned, and the last one in a
    tie. A single shared word is treated as chance.
    """
    audit = iteration.citation_audit
    places = [
        citation.sentence
        for citation in audit.citations
        if citation.evidence_id in evidence and citation.sentence is not None
    ]
    if not places:
        return ""
    point_stems = word_stems(point)
    shared = {place: len(word_stems(audit.sentences[place].text) & point_stems) for place in places}
    place = max(places, key=lambda place: (shared[place] if shared[place] > 1 else 0, place))
    return _with_its_markers(iteration, place)


def _sentence_with(iteration: Iteration, claim: int) -> str:
    """Return the sentence of the answer with a claim, and with its markers, or ""."""
    audit, start = iteration.citation_audit, iteration.claims[claim].claim.start or 0
    for place, sentence in enumerate(audit.sentences):
        if sentence.start <= start < sentence.end:
            return _with_its_markers(iteration, place)
    return ""


def _with_its_markers(iteration: Iteration, place: int) -> str:
    audit = iteration.citation_audit
    sentence = audit.sentences[place]
    ends = [citation.marker_end for citation in audit.citations if citation.sentence == place]
    return iteration.answer[sentence.start : max([sentence.end, *ends])].strip()


def _evidence_sentence(case: Case, check: ClaimCheck) -> tuple[str, list[str]] | None:
    """Return the sentence of the evidence that bears most on a claim, and the id of its chunk.

    A heading isn't a sentence that a correction could say.

    A sentence that contradicts the claim bears more on it than one that resembles it. Markers of
    the evidence itself are left out, because they name other sources than those of the case.
    """
    places = [
        (contradiction.evidence_id, contradiction.evidence_start, contradiction.evidence_end)
        for contradiction in check.contradictions
        if contradiction.kind != "source"
    ]
    by_score = sorted(check.quotes, key=lambda quote: -quote.score)
    places += [(quote.evidence_id, quote.start, quote.end) for quote in by_score]
    texts = {chunk.id: chunk.text for chunk in case.evidence}
    for name, start, end in places:
        text = texts.get(name, "")
        body = heading_end(text)
        for sentence in split_sentences(text):
            if sentence.start < end and start < sentence.end and sentence.start >= body:
                words = without_markers(text[sentence.start : sentence.end])
                return " ".join(words.split()), [name]
    return None


def _issue_span(issue: Issue) -> TextSpan | None:
    return None if issue.start is None or issue.end is None else TextSpan(issue.start, issue.end)


# The finding of the reference check, by the rule of the issue that reports it.
_REFERENCE_FINDINGS = {
    "misattributed_reference": "misattributed",
    "redundant_reference": "redundant",
}


def _citation_of(issue: Issue, iteration: Iteration) -> Citation | None:
    """Return the citation that an issue is about, or None if it's about something else.

    The label of such an issue belongs to the citation, even if the issue spans the claim that cites
    it.
    """
    if issue.rule not in (*_REFERENCE_FINDINGS, FABRICATED):
        return None
    start, end = issue.start or 0, issue.end or 0
    audit = iteration.citation_audit

    def is_meant(citation: Citation) -> bool:
        if issue.rule == FABRICATED:
            return citation.status == "invalid" and start < citation.end and citation.start < end
        if citation.sentence is None or citation.evidence_id != next(iter(issue.evidence_ids), ""):
            return False
        sentence = audit.sentences[citation.sentence]
        return sentence.start <= start < sentence.end

    return next(filter(is_meant, audit.citations), None)


def _issue_word(issue: Issue) -> Word:
    """Return the label of an issue.

    A serious issue by the critic is as red as a contradicted claim.
    """
    word = rule_word(issue.rule)
    return word._replace(tone="bad") if issue.source == "critic" and issue.major else word


LEAST_SHARED_STEMS = 0.3
"""Share of a missing point's words that its source sentence in the evidence must contain."""


def _sentences_with_point(text: str, point: str) -> Iterator[TextSpan]:
    """Yield the sentences of a chunk that state a missing point, best match first."""
    left = word_stems(point)
    # Two words at least, because a single one is shared by chance.
    least = max(2, LEAST_SHARED_STEMS * len(left))
    sentences = [
        (TextSpan(sentence.start, sentence.end), word_stems(text[sentence.start : sentence.end]))
        for sentence in split_sentences(text)
    ]
    # Greedy: each sentence must state words of the point that the ones before it don't.
    while sentences:
        span, stems = max(sentences, key=lambda candidate: len(candidate[1] & left))
        if len(stems & left) < least:
            return
        yield span
        left -= stems


def _evidence_cards(
    case: Case, iteration: Iteration, issues: Sequence[IssueData], shown: int
) -> list[EvidenceCard]:
    marked: dict[str, list[Bearing]] = defaultdict(list)
    texts = {chunk.id: chunk.text for chunk in case.evidence}
    for issue_data in issues:
        for name in issue_data["evidence"] if issue_data.get("claim", 0) < 0 else ():
            spans = _sentences_with_point(texts.get(name, ""), issue_data["description"])
            marked[name] += [Bearing(span, -issue_data["number"], False) for span in spans]
    sources: dict[str, list[int]] = defaultdict(list)
    for index, check in enumerate(iteration.claims):
        for quote in check.quotes:
            marked[quote.evidence_id].append(
                Bearing(TextSpan(quote.start, quote.end), index, False)
            )
        for contradiction in check.contradictions:
            span = TextSpan(contradiction.evidence_start, contradiction.evidence_end)
            marked[contradiction.evidence_id].append(Bearing(span, index, True))
            if contradiction.kind == "source":
                sources[contradiction.evidence_id].append(index)
    cited: dict[str, set[int | None]] = defaultdict(set)
    for citation in iteration.citation_audit.citations:
        if citation.evidence_id is not None:
            cited[citation.evidence_id].add(citation.sentence)
    # of a marker with several references, such as [1, 9], each chunk has its own
    markers = {
        citation.evidence_id: f"[{citation.reference}]"
        for citation in reversed(iteration.citation_audit.citations)
        if citation.evidence_id is not None and citation.marker_start < citation.marker_end
    } | written_markers(iteration.citation_audit)
    orders: dict[str, list[TextSpan]] = defaultdict(list)
    for issue in iteration.issues:
        if issue.evidence_start is not None and issue.evidence_end is not None:
            orders[issue.evidence_ids[0]].append(TextSpan(issue.evidence_start, issue.evidence_end))
    chunks = list(case.evidence)
    if len(chunks) > shown:
        # ``sort`` is stable, so that chunks keep their order within both groups.
        chunks.sort(
            key=lambda chunk: not (chunk.id in cited or chunk.id in marked or chunk.id in orders)
        )
    return [
        _evidence_card(
            chunk,
            marked[chunk.id],
            orders[chunk.id],
            len(cited[chunk.id]),
            markers.get(chunk.id, chunk.id),
        )
        | {"source_against": sources[chunk.id]}
        for chunk in chunks[:shown]
    ]


def _evidence_card(
    chunk: Evidence, marked: list[Bearing], orders: list[TextSpan], cited: int, cited_as: str
) -> EvidenceCard:
    text = chunk.text
    spans = [mark for mark in marked if 0 <= mark.span.start < mark.span.end <= len(text)]
    orders = [span for span in orders if 0 <= span.start < span.end <= len(text)]
    pieces = list(evidence_pieces(text, spans, orders))
    markup = find_markup(text)
    return {
        "id": chunk.id,
        "source": _EMPHASIS.sub(r"\2", chunk.source or ""),
        "pieces": with_markup(pieces, markup) if markup else pieces,
        "blocks": list(markup.blocks) if markup else [],
        "cited": cited,
        "cited_as": ""
        if cited_as.strip("[]()【】") == chunk.id
        else shorten(cited_as, LONGEST_MARKER),
        "bearing": sorted({mark.claim for mark in spans if mark.claim >= 0}),
        "source_against": [],
        "body": heading_end(text),
    }


# "*A Short History*" and "**bold**", but not "2 * 3" or "a*b*c"
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=[^\s*])([^*]*[^\s*])\1(?![\w*])")


def _legend(
    iteration: Iteration, marks: dict[int, str], pieces: Sequence[AnswerPiece]
) -> list[LegendEntry]:
    """Return the kinds of marks in this answer with their counts.

    Kinds that don't occur are left out.
    """
    references = list(marks.values())
    verdicts: list[str] = [check.verdict for check in iteration.claims]
    statuses: list[str] = [sentence.status for sentence in iteration.citation_audit.sentences]
    entries = [
        *((f"ref-{kind}", word, references.count(kind)) for kind, word in REFERENCE.items()),
        *((f"sentence-{kind}", word, statuses.count(kind)) for kind, word in SENTENCE.items()),
        *((f"claim-{kind}", word, verdicts.count(kind)) for kind, word in VERDICT.items()),
        ("fact-figure", MISSING_FIGURE, count_facts(pieces, "figure")),
        ("fact-marked", MARKED_WORDS, count_facts(pieces, "marked")),
    ]
    return [
        {"mark": mark, "label": label(word), "count": count}
        for mark, word, count in entries
        if count
    ]
