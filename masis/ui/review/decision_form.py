"""The decision form as plain data: the data of the component, and the parsing of its posts.

The functions here are pure. A browser's post is untrusted input: it's read field by field, and
values that aren't valid are dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, NamedTuple, Self, cast

from pydantic import BeforeValidator, Field, model_validator

from masis.api.audits import audit_citations, citations_kept
from masis.audit.markers import evidence_index, half_bracketed_ids, without_markers
from masis.audit.sentences import split_sentences
from masis.schema.audit import CitationAudit, Issue
from masis.schema.base import Record
from masis.schema.case import Case, Severity
from masis.schema.labels import SERIOUS_SEVERITIES, TargetLabel
from masis.schema.review import (
    Decision,
    LogEntry,
    Verdict,
    answer_digest,
    answer_name,
    decision_outcome,
)
from masis.schema.rules import OMISSIONS
from masis.schema.run import Iteration, Run
from masis.schema.team import LabelTypes
from masis.schema.wording import count_noun, shorten
from masis.services import decision_rules
from masis.services.decision_rules import (
    OTHER,
    REASON_CODE,
    REASON_CODES,
    is_unchanged,
    label_key,
    own_words,
    reasons_for,
    reasons_given,
    seen_issues,
    seen_labels,
    suggest_reasons,
)
from masis.services.drafts import clean, read_if_valid
from masis.services.records import RunSummary
from masis.settings import Settings
from masis.ui.review.form_texts import Answer, Name, Note, OwnWords, Place
from masis.ui.review.label_form import (
    Chunks,
    Labels,
    NamedEvidence,
    evidence_labels,
    labels_of,
    named_evidence,
    target_labels,
)
from masis.views.diff import word_changes
from masis.views.labels import label_lines
from masis.views.log_entries import entry_texts
from masis.views.numbering import SEVERITIES, numbered_issues, worst_of
from masis.views.numbers import moment_utc
from masis.views.verdicts import target_key
from masis.views.words import DECIDE, VERDICT, Word, label, rule_word

LONGEST_NAME = 80
MOST_REASONS = 10
EXCERPT = 220
OFFENDERS_NAMED = 5
NEIGHBOURS = 3
"""The number of unchanged words shown on either side of a change."""

MOST_REPORTED = 100
"""The most issues that one decision reports."""


# The markers before the text of a heading, list item or quotation, also several of them, such as
# "> - " or "## 1. ".
_BLOCK_MARKER = re.compile(r"(?:[ \t]*(?:#{1,6}|[-+*>]|\d{1,3}[.)])[ \t]+)+")


class ReportFields(NamedEvidence):
    """An issue that a reviewer reports, as far as it's filled in.

    Without ``start`` and ``end`` it's about the whole answer.
    """

    start: Place | None = None
    end: Place | None = None
    text: Answer = ""
    type: Name = ""
    severity: Severity | Literal[""] = ""
    note: Note = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.start is None) == bool(self.text):
            raise ValueError("give both start and end with the quoted text, or none of them")
        return self


class OpenReport(ReportFields):
    """An issue that is being written.

    ``answer`` is the digest of the answer. ``place`` is the index of the reported issue that it
    changes, or None for a new one.
    """

    answer: Name = ""
    place: Place | None = None

    @model_validator(mode="after")
    def _of_an_answer(self) -> Self:
        if not self.answer:
            raise ValueError("the answer's digest is missing")
        return self


def _valid_reports(posted: object) -> dict[str, tuple[ReportFields, ...]]:
    read = {
        clean(answer, 64): tuple(
            report
            for issue in issues[:MOST_REPORTED]
            if (report := read_if_valid(ReportFields, issue))
        )
        for answer, issues in (list(posted.items())[:20] if isinstance(posted, dict) else ())
        if isinstance(issues, list | tuple)
    }
    return {answer: issues for answer, issues in read.items() if issues}


class LabelEntries(Record):
    """The labels of the form.

    Attributes:
        labels: The labels by iteration (``label_base``) and target (``target_key``).
        chunks: The labels on chunks of the evidence.
        missing: The note that a needed passage is missing; None if none is.
        reported: The reported issues by the digest of their answer, so that they survive another
            audit of the same answer.

    """

    labels: Labels = Field(default_factory=dict)
    chunks: Chunks = Field(default_factory=dict)
    missing: Note | None = None
    reported: Annotated[dict[str, tuple[ReportFields, ...]], BeforeValidator(_valid_reports)] = (
        Field(default_factory=dict)
    )


class FormFields(LabelEntries):
    """The entries of the form.

    Attributes:
        reason: The code of the reason chosen first.
        also: The codes of further reasons.
        corrected: The corrected answer; None while the answer is unchanged.
        reporting: The issue that is being written.

    """

    verdict: Verdict | None = None
    reason: Name = ""
    also: tuple[Name, ...] = Field(default=(), max_length=MOST_REASONS)
    other: OwnWords = ""
    note: Note = ""
    corrected: Answer | None = None
    reporting: Annotated[OpenReport | None, BeforeValidator(partial(read_if_valid, OpenReport))] = (
        None
    )

    @property
    def empty(self) -> bool:
        """Whether nothing has been entered."""
        return self == type(self)()


class FormProblem(NamedTuple):
    """The reason why a form can't be submitted yet, and the field that needs attention."""

    field: str
    message: str


Data = dict[str, Any]
"""Data of the component, as JSON. Only ``desk.js`` reads it."""


def find_problem(fields: FormFields, reviewer: str) -> FormProblem | None:
    """Return the first problem that keeps ``decision_of`` from making a decision, or None."""
    if fields.verdict is None:
        return FormProblem(
            "verdict", "Choose a verdict first: approve, override, reject or escalate."
        )
    if OTHER in chosen_reasons(fields)[1:] and not fields.other.strip():
        return FormProblem("other", "Type the other reason in your own words, or deselect it.")
    if any(
        not issue.type or not issue.severity
        for issues in fields.reported.values()
        for issue in issues
    ):
        return FormProblem(
            "reported", "A reported issue has no type or no severity. Edit or remove it."
        )
    if not reviewer.strip():
        return FormProblem("reviewer", "Type your name. It's recorded with every decision.")
    return None


def to_mend(problems: Iterable[decision_rules.DecisionProblem]) -> FormProblem | None:
    """Return the first problem of a decision with the form's field that solves it, or None."""
    problem = next(iter(problems), None)
    if problem is None:
        return None
    field = "corrected" if problem.field == "corrected_answer" else problem.field
    return FormProblem("other" if problem.code == "own_words_missing" else field, problem.sentence)


def is_unexplained_escalation(fields: FormFields) -> bool:
    """Return whether a case is escalated without a reason or a note. The form asks for one once."""
    text, _ = reasons_given(chosen_reasons(fields), fields.other)
    return fields.verdict == "escalate" and not text and not fields.note.strip()


def chosen_reasons(fields: FormFields) -> list[str]:
    """Return the codes of the chosen reasons that can be given with the chosen verdict."""
    known = {reason.code for reason in reasons_for(fields.verdict)} if fields.verdict else set()
    return [code for code in dict.fromkeys((fields.reason, *fields.also)) if code in known]


def decision_of(
    fields: FormFields,
    *,
    case_id: str,
    run: Run | None,
    index: int,
    reviewer: str,
    token: str,
    machine_shown: tuple[str, ...],
    shown: str = "",
    acknowledged: Collection[str] = (),
) -> Decision:
    """Return the decision of a form for which ``find_problem`` returned None.

    Args:
        fields: The entries of the form.
        case_id: The case.
        run: The audit shown, or None for an unaudited case.
        index: The iteration shown, from 0.
        reviewer: The reviewer's name.
        token: The token of the form, which makes a repeated submit harmless.
        machine_shown: The parts of the machine's verdict that the page showed.
        shown: The digest of the answer shown.
        acknowledged: The ids of the serious issues that were listed to the reviewer, and the keys
            of their own serious labels (``label_key``).

    """
    base = label_base(run, index)
    labels = tuple(labels_in(fields, base, run.iterations[index] if run else None, shown))
    reason, codes = reasons_given(chosen_reasons(fields), fields.other)
    extra: dict[str, Any] = {"answer": shown_name(run, index), **codes}
    if fields.verdict in ("approve", "override"):
        taken = revision_of(run, fields.corrected or "") if fields.verdict == "override" else None
        serious = serious_issues(run, taken or index)
        extra |= seen_issues(issue for issue in serious if issue.id in acknowledged)
        extra |= seen_labels(label for label in labels if label_key(label) in acknowledged)
    return Decision(
        reviewer=reviewer.strip(),
        case_id=case_id,
        run_id=run.id if run else None,
        iteration=index + 1 if run else None,
        verdict=fields.verdict,
        reason=reason,
        note=fields.note.strip(),
        corrected_answer=fields.corrected if fields.verdict == "override" else None,
        labels=labels,
        machine_shown=machine_shown if run else (),
        token=token,
        extra=extra,
    )


def labels_in(
    fields: LabelEntries,
    base: str,
    iteration: Iteration | None,
    digest: str,
    recorded: Sequence[TargetLabel] = (),
) -> Iterator[TargetLabel]:
    """Yield the labels of a form on one answer: those of ``base``, and the issues by ``digest``."""
    yield from target_labels(iteration, fields.labels.get(base, {}), recorded)
    yield from map(_reported_label, fields.reported.get(digest, ()))
    yield from evidence_labels(fields.chunks, fields.missing)


def _reported_label(issue: ReportFields) -> TargetLabel:
    return TargetLabel(
        target="answer" if issue.start is None else "span",
        start=issue.start,
        end=issue.end,
        text=issue.text,
        label=issue.type,
        severity=cast("Severity", issue.severity),
        note=issue.note.strip(),
        **issue.to_label_fields(),
    )


def fields_of_labels(decision: Decision, answer: str) -> Data:
    """Return the labels and the reported issues of a decision as fields of the form.

    ``answer`` is the digest of the answer that the decision is about.
    """
    reported = tuple(ReportFields.model_validate(row) for row in _reported_rows(decision))
    return {**labels_of(decision), "reported": {answer: reported} if reported else {}}


def entries_of(decision: Decision, answer: str | None) -> FormFields:
    """Return a decision as entries of the form.

    ``answer`` is the answer that it's about, or None if it was removed. Its labels need it.
    """
    codes = decision.extra.get(REASON_CODES, [decision.extra.get(REASON_CODE, "")])
    known = {reason.code for reason in reasons_for(decision.verdict)} if decision.verdict else set()
    reasons = [code for code in codes if code in known]
    labels = {}
    if decision.labels and answer is not None:
        labels = fields_of_labels(decision, answer_digest(answer))
    return FormFields(
        verdict=decision.verdict,
        reason=next(iter(reasons), ""),
        also=tuple(reasons[1:]),
        other=own_words(decision.reason, reasons),
        note=decision.note,
        corrected=decision.corrected_answer,
        **labels,
    )


@lru_cache(maxsize=16)  # called after every pause in typing for the same answer
def sentence_places(answer: str) -> tuple[tuple[int, int], ...]:
    """Return the start and end of each sentence, without the markers of headings and lists."""
    places = []
    for sentence in split_sentences(answer):
        marker = _BLOCK_MARKER.match(answer, sentence.start, sentence.end)
        start = marker.end() if marker and marker.end() < sentence.end else sentence.start
        places.append((start, sentence.end))
    return tuple(places)


def reporting(answer: str, types: LabelTypes, standing: Decision | None) -> Data:
    """Return the data for reporting issues; ``standing`` is the current decision on the answer."""
    reported = [
        row
        for row in (_reported_rows(standing) if standing else [])
        if row["start"] is None or answer[row["start"] : row["end"]] == row["text"]
    ]
    return {
        "types": [
            {"name": type_.name, "guidance": type_.guidance, "omits": type_.name in OMISSIONS}
            for type_ in types.types
        ],
        "severities": SEVERITIES,
        "serious": SERIOUS_SEVERITIES,
        "sentences": list(sentence_places(answer)),
        "standing": reported,
    }


def _reported_rows(decision: Decision) -> list[Data]:
    return [
        {name: getattr(issue, name) for name in ("start", "end", "text", "note")}
        | {"type": issue.label, "severity": issue.severity or "", **named_evidence(issue)}
        for issue in decision.reported
    ]


def shown_name(run: Run | None, index: int) -> str:
    """Name the answer of iteration ``index`` (from 0) of a run, or of the case without a run."""
    return answer_name(index + 1 if run else None, drafted=bool(run and run.draft))


def serious_issues(run: Run | None, index: int) -> tuple[Issue, ...]:
    """Return the open issues of severity critical or high, critical ones first."""
    issues = [issue for issue in run.iterations[index].issues if issue.major] if run else []
    return tuple(sorted(issues, key=lambda issue: issue.severity != "critical"))


def serious_rows(run: Run | None, index: int) -> list[Data]:
    """Return the serious issues as the question before a decision lists them.

    Issues about the same words are one row, with the number that they have in the answer and all
    of their words, so that none hides a safety issue. ``ids`` are the issues of a row.
    """
    rows: list[Data] = []
    for number, group in enumerate(numbered_issues(run.iterations[index]) if run else (), 1):
        serious = [issue for issue in group if issue.major]
        if serious:
            words = dict.fromkeys(rule_word(issue.rule) for issue in serious)
            rows.append(
                {
                    "ids": [issue.id for issue in serious],
                    "number": number,
                    "labels": [label(word) for word in words],
                    "severity": SEVERITIES[worst_of(serious)],
                    "text": shorten(serious[0].description, EXCERPT),
                }
            )
    return rows


def unconfirmed_rows(iteration: Iteration | None) -> list[Data]:
    """Return the claims of an answer as the question before an approval lists them.

    There are none if the audit confirmed at least one claim. ``key`` is that of the claim's label,
    or "" if the claim has no place in the answer.
    """
    claims = iteration.claims if iteration else ()
    if any(check.verified for check in claims):
        return []
    return [
        {
            "ids": [],
            "key": ""
            if check.claim.start is None or check.claim.end is None
            else target_key("claim", check.claim.start, check.claim.end),
            "number": "",
            "labels": [label(VERDICT[check.verdict])],
            "severity": "",
            "text": shorten(check.claim.text, EXCERPT),
        }
        for check in claims
    ]


def revision_of(run: Run | None, text: str) -> int | None:
    """Return the index of the revision whose answer is a text, apart from blanks, or None."""
    revisions = list(enumerate(run.iterations))[1:] if run else []
    return next((at for at, made in revisions if is_unchanged(text, made.answer)), None)


def audited_issues(run: Run | None, text: str) -> Data | None:
    """Return the issues that the audit of a revision leaves, or None if a text is no revision."""
    index = revision_of(run, text)
    if run is None or index is None:
        return None
    groups = numbered_issues(run.iterations[index])
    return {
        "name": shown_name(run, index),
        "issues": [rule_word(group[0].rule).text for group in groups],
        "serious": serious_rows(run, index),
    }


def label_base(run: Run | None, index: int) -> str:
    """Return the key of an iteration's labels in the draft; labels are about its words only."""
    return f"{run.id}/{index + 1}" if run else ""


def _audit_correction(answer: str, case: Case, settings: Settings | None) -> CitationAudit:
    return audit_citations(answer, case.evidence, settings, citations=citations_kept(case, answer))


def doubts(
    corrected: str,
    shown: str,
    case: Case,
    original: str,
    settings: Settings | None = None,
    *,
    blind: bool = False,
) -> Iterator[str]:
    """Yield reasons to believe that a correction of the answer shown has a slip in it.

    ``blind`` leaves out what is true of the answer shown, because that would be a finding of a
    hidden audit.
    """
    before, after = (
        _audit_correction(shown, case, settings),
        _audit_correction(corrected, case, settings),
    )
    if is_unchanged(corrected, original):
        yield "it equals the original answer"
    known = before.invalid_citations if blind else ()
    found = (*after.invalid_citations, *_outside_brackets(corrected, case, after))
    invalid = [name for name in dict.fromkeys(found) if name not in known][:OFFENDERS_NAMED]
    if invalid:
        cited = ", ".join(f"“{shorten(reference, 60)}”" for reference in invalid)
        yield f"it cites {cited}, which names no evidence"
    index = evidence_index(case.evidence)
    status = {
        without_markers(sentence.text, index): sentence.status for sentence in before.sentences
    }
    for sentence in after.uncited_claims:
        original_sentence = get_close_matches(sentence, status, 1, cutoff=0.5)
        if original_sentence and status[original_sentence[0]] == "cited":
            yield f"“{shorten(sentence, 80)}” has lost its citation"
            return


def _outside_brackets(answer: str, case: Case, audit: CitationAudit) -> list[str]:
    """Return the evidence ids next to half a pair of brackets, such as ``c2`` in ``[c1]c2]``."""
    return [
        words
        for at, words in half_bracketed_ids(answer, [chunk.id for chunk in case.evidence])
        if not any(citation.start <= at < citation.end for citation in audit.citations)
    ]


def check(
    answer: str,
    case: Case,
    settings: Settings | None = None,
    shown: str | None = None,
    *,
    blind: bool = False,
) -> Data:
    """Check the citations of a corrected answer, and list its changes to the answer ``shown``.

    ``blind`` counts only what the correction adds, because what is wrong with the answer shown is a
    finding of a hidden audit.
    """
    audit = _audit_correction(answer, case, settings)
    audit_before = None if shown is None else _audit_correction(shown, case, settings)
    before = audit_before.citations if audit_before else ()
    invalid, uncited = list(audit.invalid_citations), list(audit.uncited_claims)
    if blind and audit_before:
        invalid = _leave_out_known(invalid, audit_before.invalid_citations)
        uncited = _leave_out_known(uncited, audit_before.uncited_claims)
    # only citations with a marker in the text, not those attached to the answer
    cited_before, cited_after = (
        Counter(
            citation.evidence_id
            for citation in citations
            if citation.evidence_id and citation.marker_start < citation.marker_end
        )
        for citations in (before, audit.citations)
    )
    return {
        "references": len(audit.citations),
        "beside": _kept_citations_text(
            len(citations_kept(case, answer)), len(case.given_citations)
        ),
        "changed": list(_changed_words(shown, answer)) if shown is not None else [],
        "dropped": [reference for reference in cited_before if not cited_after[reference]],
        "cited_less": [
            {"reference": reference, "before": count, "after": cited_after[reference]}
            for reference, count in cited_before.items()
            if 0 < cited_after[reference] < count
        ],
        "fabricated": [
            shorten(reference, 60) for reference in list(dict.fromkeys(invalid))[:OFFENDERS_NAMED]
        ],
        "fabricated_count": len(invalid),
        "uncited": [shorten(claim, 160) for claim in uncited[:OFFENDERS_NAMED]],
        "uncited_count": len(uncited),
        "only_added": blind,
    }


def _leave_out_known(after: Iterable[str], before: Iterable[str]) -> list[str]:
    """Return the texts that occur more often than before, as often as they are added."""
    left = Counter(before)
    added = []
    for text in after:
        if left[text]:
            left[text] -= 1
        else:
            added.append(text)
    return added


def shortened_changes(before: str | None, after: str | None) -> list[tuple[str, str]]:
    """Return the changes from one text to another with a few words around each.

    The whole second text if there is no first, and nothing if there is no second.
    """
    if after is None or before is None:
        return [("same", after)] if after else []
    return list(_changed_words(before, after))


def _changed_words(shown: str, corrected: str) -> Iterator[tuple[str, str]]:
    """Yield the changes of a correction with a few words around them, so that slips are noticed."""
    changes = word_changes(shown, corrected)
    if all(change.kind == "same" or not change.text.strip() for change in changes):
        return
    for place, change in enumerate(changes):
        words = re.findall(r"\s*\S+\s*", change.text)  # words with the spaces around them
        if change.kind == "same" and len(words) > 2 * NEIGHBOURS:
            before = "".join(words[:NEIGHBOURS]) if place else ""
            after = "".join(words[-NEIGHBOURS:]) if place < len(changes) - 1 else ""
            yield change.kind, f"{before.rstrip()} … {after.lstrip()}" if before else f"…{after}"
        else:
            yield change.kind, change.text


def correction(decision: Decision, run: Run | None, case: Case) -> list[tuple[str, str]]:
    """Return the differences between the answer of a decision and its correction.

    Returns:
        Pairs of kind ("same", "out" or "in") and words. Empty if the decision corrects nothing.

    """
    if decision.corrected_answer is None:
        return []
    same_run = run is not None and run.id == decision.run_id
    answer = (
        run.iterations[(decision.iteration or 1) - 1].answer
        if run and same_run
        else case.answer or ""
    )
    return [
        (change.kind, change.text) for change in word_changes(answer, decision.corrected_answer)
    ]


def _kept_citations_text(kept: int, total: int) -> str:
    """Say how many citations attached to the original answer still apply to its correction."""
    if not total:
        return ""
    share = (
        f"{kept:,} of {count_noun(total, 'citation')} attached to the original answer"
        f" {'is' if kept == 1 else 'are'} kept"
    )
    return f"{share}: those of unchanged sentences." if kept < total else f"{share}."


def reasons(iteration: Iteration | None) -> dict[str, list[Data]]:
    """Return the reasons for each verdict, with those that the issues of an iteration suggest."""
    rules = {issue.rule for issue in iteration.issues} if iteration else set()
    return {
        verdict: [
            {
                "code": reason.code,
                "text": reason.text,
                "suggested": reason.code in suggest_reasons(verdict, rules),
            }
            for reason in reasons_for(verdict, sees_issues=iteration is not None)
        ]
        for verdict in DECIDE
    }


def history(
    entries: Sequence[LogEntry], case: Case | None = None, run: Run | None = None
) -> list[Data]:
    """Return the log entries of a case as rows of its history, in the same order.

    ``run`` is the audit that the person sees; it and the case name the cause of labelled faults.
    """
    undone = {
        entry.decision.undoes for entry in entries if entry.decision and entry.decision.undoes
    }
    words = entry_texts(entries)
    return [
        _history_row(entry, words[entry.id], entry.id in undone)
        | _describe_labels(entry.decision, case, run)
        for entry in entries
    ]


def _describe_labels(decision: Decision | None, case: Case | None, run: Run | None) -> Data:
    """Return the labels of a decision in words, and its reported issues with their details."""
    lines = label_lines(decision, case, run)
    reported = _reported_rows(decision) if decision else []
    details = [line.details for line in lines if line.reports]
    return {
        "labels": [line._asdict() for line in lines if not line.reports],
        "reported": [row | {"details": more} for row, more in zip(reported, details, strict=True)],
    }


def with_audits(rows: list[Data], runs: Sequence[RunSummary]) -> list[Data]:
    """Return the history of a case with its finished audits added, newest first."""
    finished = [run for run in runs if run.ended_at and run.state == "finished"]
    audits = [
        {
            **_history_row(
                None, Word("Audited" if run is finished[-1] else "Audited again", "calm"), False
            ),
            "id": run.id,
            "at": run.ended_at,
            "when": moment_utc(run.ended_at or ""),
            "who": run.asked_by,
        }
        for run in finished
    ]
    return sorted([*rows, *audits], key=lambda row: str(row["at"]), reverse=True)


def _history_row(entry: LogEntry | None, what: Word, undone: bool) -> Data:
    decision = entry.decision if entry else None
    return {
        "id": entry.id if entry else "",
        "at": entry.at if entry else "",
        "when": moment_utc(entry.at) if entry else "",
        "who": decision.reviewer if decision else "",
        "what": what.text,
        "tone": what.tone,
        "why": (
            (decision.reason or ", ".join((*decision.assignees, *decision.tags)))
            if decision
            else ""
        ),
        "note": decision.note if decision else "",
        "undone": undone,
        "outcome": decision_outcome(decision) if decision else "",
        "labels": [],
        "reported": [],
    }
