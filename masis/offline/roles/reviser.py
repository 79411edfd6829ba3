"""The reviser without a model: it re-attributes, corrects, hedges or drops, and explains each change.

It changes only what was found wrong: claims that the evidence contradicts or does not support, the part of a claim
known to be wrong, references that name no chunk or the wrong one. What is supported stays word for word, and so does
what could not be confirmed. What it inserts is in the evidence: the value that a chunk has, a passage word for word,
the id of a chunk that a verdict says supports it; never a chunk that instructs its reader.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from masis.audit.assertions import citations_by_sentence, sentence_claim
from masis.audit.citations import audit_citations
from masis.audit.claims import severity
from masis.audit.context import AuditContext
from masis.offline.matching.key_points import JUDGED_BY, lead_of, plain_text
from masis.offline.parsing.facts import Day, extract
from masis.offline.roles.drafter import NOTHING_FOUND, cited_sentence
from masis.offline.roles.verifier import OfflineVerifier
from masis.offline.text.tokens import STOPWORDS
from masis.schema.audit import (
    Change,
    ChangeKind,
    Citation,
    CitationAudit,
    Claim,
    ClaimCheck,
    Contradiction,
    Critique,
    Issue,
    Revision,
    Sentence,
)
from masis.schema.case import Evidence
from masis.schema.wording import shortened

# Edits to an answer: applied together, and clauses that can go.

_LEAD = re.compile(r"[ \t]*(?:[-*•–+]|\d{1,3}[.)]|[a-z][.)])[ \t]+$")
_JOINTS = re.compile(r"[,;]\s+|\s+[–—]\s+|\s+(?=\()|\s+(?:while|whereas|because|although)\s+")
_IN_OR_ON = re.compile(r"\b(in|on)\s+$", re.IGNORECASE)
MOST_JOINTS = 12
LEAST_LEFT = 6
"""Words that must be left of a sentence for a cut to be worth it."""


class Edit(NamedTuple):
    """``answer[start:end]`` becomes ``text``; ``sentences`` are the numbers of the sentences it touches."""

    start: int
    end: int
    text: str
    sentences: tuple[int, ...]


def apply_edits(answer: str, edits: Iterable[Edit]) -> str:
    """Return the answer with all edits made, including the blanks and bullets around removed sentences."""
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        start, end = (
            (edit.start, edit.end) if edit.text or edit.start == edit.end else _room(answer, edit.start, edit.end)
        )
        answer = answer[:start] + edit.text + answer[end:]
    return re.sub(r"\n{3,}", "\n\n", answer).strip()


def _room(answer: str, start: int, end: int) -> tuple[int, int]:
    """Return the span to remove with a sentence: its bullet and one of the blanks around it included."""
    line = answer.rfind("\n", 0, start) + 1
    alone = end >= len(answer) or answer[end] == "\n"
    if alone and (not answer[line:start].strip() or _LEAD.fullmatch(answer[line:start])):
        return line, min(end + 1, len(answer))
    while end < len(answer) and answer[end] in " \t":
        end += 1
    if end >= len(answer) or answer[end] == "\n":
        while start > line and answer[start - 1] in " \t":
            start -= 1
    return start, end


def trimmed_claim(check: ClaimCheck, is_supported: Callable[[str], bool]) -> str | None:
    """Return the claim less what follows one of its commas, if that part holds all uncovered words and the evidence
    supports the rest.

    None where no cut helps. Only ends are cut: what is left begins as the sentence began.
    """
    claim_text = plain_text(check.claim)
    if not check.uncovered:
        return None
    first_bare = check.uncovered[0][0]
    for joint in list(_JOINTS.finditer(claim_text))[:MOST_JOINTS]:
        shorter = claim_text[: joint.start()].rstrip()
        if joint.end() <= first_bare and len(shorter.split()) >= LEAST_LEFT and is_supported(shorter):
            return shorter + "."
    return None


def replace_values(text: str, values: Sequence[Contradiction]) -> str:
    """Return the text with the evidence's value in place of each contradicted one."""
    for value in sorted(values, key=lambda v: -v.claim_start):
        text = _led(text[: value.claim_start], value) + value.evidence_text + text[value.claim_end :]
    return text


def _led(before: str, value: Contradiction) -> str:
    """Return the text before a value, with the preposition that the new one needs: "in 1887", "on 31 March 1889"."""
    lead = _IN_OR_ON.search(before) if value.kind == "date" else None
    days = [fact.value for fact in extract(value.evidence_text) if isinstance(fact.value, Day)] if lead else []
    if lead is None or not days:
        return before
    wanted = "on" if days[0].day else "in"
    return before[: lead.start(1)] + (wanted.capitalize() if lead[1][0].isupper() else wanted) + before[lead.end(1) :]


# Writing citations in the manner of the answer they go into.

Shape = Literal["square", "lenticular", "round", "footnote"]
_DIGITS = re.compile(r"\d+$")


class MarkerStyle(NamedTuple):
    """How an answer cites: the shape of its markers, and how it names each chunk."""

    shape: Shape
    names: dict[str, str]

    def write(self, evidence_ids: Iterable[str]) -> str:
        """Return one marker for these chunks, in this style; empty for none."""
        names = [self.names[evidence_id] for evidence_id in evidence_ids]
        if not names:
            return ""
        if self.shape == "lenticular":
            return "".join(f"【{name}†source】" for name in names)
        if self.shape == "footnote":
            return "".join(f"[^{name}]" for name in names)
        if self.shape == "round":
            return f"(Source {names[0]})" if len(names) == 1 else f"(Sources {', '.join(names)})"
        return f"[{', '.join(names)}]"


def marker_style(answer: str, audit: CitationAudit, evidence: Sequence[Evidence]) -> MarkerStyle:
    """Return the style most of the answer's valid markers have; ``[id]`` where there is none or it would not be
    understood.
    """
    valid = [citation for citation in audit.citations if citation.status == "valid"]
    shapes = Counter(_shape(answer, citation) for citation in valid)
    numbered = Counter(c.resolved_by for c in valid if c.reference.strip().isdigit())
    by_position = numbered.get("position", 0) > 0
    plain = MarkerStyle("square", {chunk.id: chunk.id for chunk in evidence})
    if not valid:
        return plain
    names = {
        chunk.id: _number(chunk.id, place, by_position) if numbered else chunk.id
        for place, chunk in enumerate(evidence, 1)
    }
    style = MarkerStyle(shapes.most_common(1)[0][0], names)
    return style if _understood(style, evidence) else plain


def _shape(answer: str, citation: Citation) -> Shape:
    marker = answer[citation.marker_start : citation.marker_end]
    if marker.startswith("【"):
        return "lenticular"
    if marker.startswith("[^"):
        return "footnote"
    return "round" if marker.startswith("(") else "square"


def _number(evidence_id: str, place: int, by_position: bool) -> str:
    ending = _DIGITS.search(evidence_id)
    return ending.group() if ending and not by_position else str(place)


def _understood(style: MarkerStyle, evidence: Sequence[Evidence]) -> bool:
    for chunk in evidence:
        read = audit_citations(f"It is so {style.write([chunk.id])}.", evidence)
        if [citation.evidence_id for citation in read.citations] != [chunk.id]:
            return False
    return True


HEDGE = "There is insufficient evidence that"
LONGEST_PASSAGE = 60
"""Words; a longer passage of evidence is not put into an answer."""
ADDED_MOST = 2
INSTRUCTION = "instruction"
"""What the rules begin with that find text which instructs a reader, a model or a tool."""


class OfflineReviser:
    """Revises by rule; never states what no chunk states."""

    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        """Return the answer with its faulty sentences repaired; the same answer where nothing can be repaired."""
        builder = _RevisionBuilder(context, issues)
        for number in range(len(context.citation_audit.sentences)):
            builder.revise_sentence(number)
        builder.add_missing()
        answer = apply_edits(context.answer, builder.edits)
        if not answer.strip():
            answer = NOTHING_FOUND
        touched = {number for edit in builder.edits for number in edit.sentences}
        return Revision(
            revised_answer=answer,
            changes_explanation=_explained(builder.changes),
            updated_confidence=None,
            issues_addressed=tuple(dict.fromkeys(issue for change in builder.changes for issue in change.issue_ids)),
            preserved_content=tuple(
                sentence.text for n, sentence in enumerate(context.citation_audit.sentences) if n not in touched
            ),
            changes=tuple(builder.changes),
            judged_by=JUDGED_BY,
        )


def hedged(claim_text: str) -> str:
    """Return a claim as something the evidence does not show; its first word loses its capital where that is no
    name's.
    """
    words = " ".join(claim_text.split()).rstrip(".!;: ")
    first = words.split(" ", 1)[0]
    lowered = words[:1].lower() + words[1:] if first.lower() in STOPWORDS and first != "I" else words
    return f"{HEDGE} {lowered}."


@dataclass
class _RevisionBuilder:
    """The edits gathered so far, sentence by sentence."""

    context: AuditContext
    issues: Sequence[Issue]
    edits: list[Edit] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evidence = _trusted(self.context.evidence, self.issues)
        self.citable = {chunk.id for chunk in self.evidence}
        audit = self.context.citation_audit
        self.style: MarkerStyle = marker_style(self.context.answer, audit, self.context.evidence)
        self.inside = citations_by_sentence(audit)
        self.checks = self._sentence_checks()
        self.issues_at = _issues_by_sentence(self.issues, audit.sentences)

    def _sentence_checks(self) -> dict[int, ClaimCheck]:
        """Return one check a sentence: the given one where it covers the whole sentence, else our own.

        A verifier may judge the parts of a sentence; a correction of a part can't replace the sentence.
        """
        sentences = self.context.citation_audit.sentences
        found: dict[int, ClaimCheck] = {}
        for check in self.context.claims:
            number = check.claim.sentence
            if number is None or number in found:
                continue
            sentence = sentences[number]
            if (check.claim.start, check.claim.end) == (sentence.start, sentence.end):
                found[number] = check
            else:
                whole = sentence_claim(number, sentence, self.inside[number])
                found[number] = OfflineVerifier().verify([whole], self.context.evidence)[0]
        return found

    def revise_sentence(self, number: int) -> None:
        sentence = self.context.citation_audit.sentences[number]
        check = self.checks.get(number)
        verdict = check.verdict if check is not None else "unverifiable"
        if any(issue.rule == "unsafe_advice" and issue.major for issue in self.issues_at[number]):
            self._drop(
                number,
                sentence,
                "The evidence is not found to give this advice, and it can do harm.",
                ("unsafe_advice",),
            )
        elif any(issue.rule.startswith(INSTRUCTION) for issue in self.issues_at[number]):
            self._drop(number, sentence, "It instructs its reader instead of answering.", ())
        elif check is None or verdict in ("unverifiable", "unscored"):
            self._remove_fabricated(number, sentence)
        elif verdict == "contradicted":
            self._correct(number, sentence, check)
        elif verdict == "unsupported" and (grade := severity(check)) != "low":
            if grade == "high":
                self._drop(number, sentence, check.issue or "No evidence supports this.", _BASELESS)
            else:
                self._hedge(number, sentence, check)
        elif verdict == "partial" and (shorter := trimmed_claim(check, self._is_supported)) is not None:
            self._trim(number, sentence, check, shorter)
        elif verdict == "supported":
            self._recite(number, sentence, check)
        else:
            self._remove_fabricated(number, sentence)

    def add_missing(self) -> None:
        """Add what the question asks for and no sentence covers, word for word from the evidence."""
        end = len(self.context.answer.rstrip())
        for point in self.context.missing[:ADDED_MOST]:
            if point.evidence_id not in self.citable or len(point.description.split()) > LONGEST_PASSAGE:
                continue
            added = self._cited(point.description, point.evidence_id)
            self._record(
                Edit(end, end, f" {added}", ()),
                "added",
                "The question asks for it and the evidence says it.",
                ("missing_information",),
                before="",
                after=added,
                issues=[
                    i for i in self.issues if i.rule == "missing_information" and point.description in i.description
                ],
            )

    def _check(self, text: str) -> ClaimCheck:
        return OfflineVerifier().verify([Claim(text=text)], self.evidence)[0]

    def _is_supported(self, text: str) -> bool:
        return self._check(text).verdict == "supported"

    def _correct(self, number: int, sentence: Sentence, check: ClaimCheck) -> None:
        """The evidence's values in place of the claim's; else the evidence's own sentence; else nothing."""
        if values := self._correction(check):
            whole, claim_text = (
                replace_values(check.claim.text, values),
                replace_values(plain_text(check.claim), values),
            )
            why = "; ".join(value.reason for value in values)
            chunks = self._supporting(number, self._check(claim_text)) or self._kept_chunks(number, values)
            after = self._with_marker(self._bare(number, whole), chunks)
            self._replace(number, sentence, after, "corrected", why, _DENIED)
            return
        why = check.issue or "The evidence contradicts this."
        source = check.contradictions[0].evidence_id if check.contradictions else None
        passage = next((quote for quote in check.quotes if quote.evidence_id == source), None)
        if passage is not None and source in self.citable and len(passage.text.split()) <= LONGEST_PASSAGE:
            after = lead_of(sentence.text) + self._cited(passage.text, passage.evidence_id)
            self._replace(number, sentence, after, "rewritten", why, _DENIED)
        else:
            self._drop(number, sentence, why, _DENIED)

    def _correction(self, check: ClaimCheck) -> list[Contradiction]:
        """Return the fewest values to change so that nothing accuses the claim; empty where that is impossible."""
        claim_text = plain_text(check.claim)
        known = {(c.claim_start, c.claim_end): c for c in reversed(check.contradictions) if _replaceable(c)}
        values = sorted(known.values(), key=lambda c: -c.strength)
        tries = [[value] for value in values] + ([values] if len(values) > 1 else [])
        return next((chosen for chosen in tries if self._mends(check, replace_values(claim_text, chosen))), [])

    def _mends(self, check: ClaimCheck, corrected: str) -> bool:
        """Return whether a corrected claim is supported, or at least nearer to it and no longer accused."""
        after = self._check(corrected)
        if after.verdict == "unverifiable":
            return after.support is not None and after.support > (check.support or 0.0)
        return after.verdict == "supported"

    def _kept_chunks(self, number: int, values: Sequence[Contradiction]) -> list[str]:
        """Return the chunks that a corrected sentence cited, and those that its new values are from."""
        cited = (citation.evidence_id for citation in self.inside[number] if citation.status == "valid")
        found = [chunk for chunk in cited if chunk is not None]
        return list(dict.fromkeys(found or [value.evidence_id for value in values]))

    def _hedge(self, number: int, sentence: Sentence, check: ClaimCheck) -> None:
        after = lead_of(sentence.text) + hedged(plain_text(check.claim))
        self._replace(number, sentence, after, "hedged", check.issue or "", _BASELESS)

    def _trim(self, number: int, sentence: Sentence, check: ClaimCheck, shorter: str) -> None:
        whole = self._with_marker(self._bare(number, shorter), self._supporting(number, self._check(shorter)))
        self._replace(
            number, sentence, whole, "dropped", check.issue or "This part was not found in any evidence.", _BASELESS
        )

    def _recite(self, number: int, sentence: Sentence, check: ClaimCheck) -> None:
        """Keep a supported sentence word for word and correct its references."""
        wrong = {r.evidence_id for r in check.references if r.finding in ("misattributed", "redundant")}
        fabricated = self._fabricated(number)
        uncited = sentence.status == "uncited"
        chunks = self._supporting(number, check)
        if not (wrong or fabricated or (uncited and chunks)):
            return
        after = self._with_marker(self._bare(number, sentence.text), chunks)
        kind: ChangeKind = "cited" if uncited and not fabricated else "reattributed"
        reasons = [r.reason for r in check.references if r.evidence_id in wrong]
        reasons += [f"{citation.reference} names no evidence" for citation in fabricated]
        why = "; ".join(reasons) or "The evidence supports this; the sentence cited none."
        self._replace(number, sentence, after, kind, why, _REFERENCES)

    def _bare(self, number: int, text: str) -> str:
        lead = lead_of(text)
        for marker in self._markers(number):
            text = text.replace(f" {marker}", "").replace(marker, "")
        return lead + " ".join(text.removeprefix(lead).split())

    def _supporting(self, number: int, check: ClaimCheck) -> list[str]:
        """Return the chunks to cite for a claim: only such that a verdict says support it.

        Those that the sentence cites come first, then those named as the better source, then the best of all.
        """
        if check.verdict != "supported":
            return []
        cited = {citation.evidence_id for citation in self.inside[number]}
        own = [r.evidence_id for r in check.references if r.finding in ("supports", "partly_supports")]
        better = [r.better for r in check.references if r.finding == "misattributed" and r.better]
        sources = [source for source in check.sources if source in self.citable]
        found = own or [s for s in sources if s in cited and not check.references]
        found = found or [chunk for chunk in better if chunk in self.citable]
        return list(dict.fromkeys(found or self._alone(check, sources)))

    def _alone(self, check: ClaimCheck, sources: Sequence[str]) -> list[str]:
        """Return the first of these chunks that supports the claim by itself, else the first two together."""
        chunks = {chunk.id: chunk for chunk in self.evidence}
        claim = Claim(text=plain_text(check.claim))
        for source in sources:
            if OfflineVerifier().verify([claim], [chunks[source]])[0].verdict == "supported":
                return [source]
        return list(sources[:2])

    def _remove_fabricated(self, number: int, sentence: Sentence) -> None:
        if not self._fabricated(number):
            return
        valid = dict.fromkeys(c.evidence_id for c in self.inside[number] if c.evidence_id is not None)
        after = self._with_marker(self._bare(number, sentence.text), list(valid))
        self._replace(
            number, sentence, after, "uncited_marker_removed", "The reference names no evidence.", _REFERENCES
        )

    def _with_marker(self, text: str, evidence_ids: list[str]) -> str:
        marker = self.style.write(evidence_ids)
        if not marker:
            return text
        bare = text.rstrip(".!?;: ")
        stop = text[len(bare) :].strip() or "."
        return f"{bare} {marker}{stop}"

    def _cited(self, passage: str, evidence_id: str) -> str:
        return cited_sentence(passage, evidence_id).replace(f"[{evidence_id}]", self.style.write([evidence_id]))

    def _drop(self, number: int, sentence: Sentence, why: str, rules: tuple[str, ...]) -> None:
        edit = Edit(sentence.start, sentence.end, "", (number,))
        self._record(edit, "dropped", why, rules, before=sentence.text, after="", issues=self.issues_at[number])

    def _replace(
        self, number: int, sentence: Sentence, after: str, kind: ChangeKind, why: str, rules: tuple[str, ...]
    ) -> None:
        if after != sentence.text:
            edit = Edit(sentence.start, sentence.end, after, (number,))
            self._record(edit, kind, why, rules, before=sentence.text, after=after, issues=self.issues_at[number])

    def _record(
        self,
        edit: Edit,
        kind: ChangeKind,
        why: str,
        rules: tuple[str, ...],
        *,
        before: str,
        after: str,
        issues: Sequence[Issue],
    ) -> None:
        self.edits.append(edit)
        ids = tuple(issue.id for issue in issues if kind == "dropped" or issue.rule in (*rules, *_REFERENCES))
        self.changes.append(Change(kind=kind, before=before, after=after, why=why, issue_ids=ids))

    def _fabricated(self, number: int) -> list[Citation]:
        return [citation for citation in self.inside[number] if citation.status == "invalid"]

    def _markers(self, number: int) -> list[str]:
        answer = self.context.answer
        inside = (answer[c.marker_start : c.marker_end] for c in self.inside[number])
        return list(dict.fromkeys(marker for marker in inside if marker))  # a citation beside the answer has none


def _issues_by_sentence(issues: Sequence[Issue], sentences: Sequence[Sentence]) -> dict[int, list[Issue]]:
    """Return the issues that touch each sentence; sentences come in order and don't overlap."""
    ends = [sentence.end for sentence in sentences]
    found: dict[int, list[Issue]] = defaultdict(list)
    for issue in issues:
        if issue.start is None or issue.end is None:
            continue
        for number in range(bisect_right(ends, issue.start), len(sentences)):
            if sentences[number].start >= issue.end:
                break
            found[number].append(issue)
    return found


_BASELESS = ("unsupported_claim", "partly_supported_claim", "uncited_sentence", "conclusion_without_ground")
_DENIED = ("contradicted_claim",)
_LEFT_OUT = ("missing_information",)
_REFERENCES = ("fabricated_reference", "misattributed_reference", "redundant_reference", "uncited_sentence")


def _trusted(evidence: Sequence[Evidence], issues: Sequence[Issue]) -> list[Evidence]:
    """Return the chunks that may be cited: none in which an issue has found an instruction."""
    flagged = {chunk for issue in issues if issue.rule.startswith(INSTRUCTION) for chunk in issue.evidence_ids}
    return [chunk for chunk in evidence if chunk.id not in flagged]


def _replaceable(found: Contradiction) -> bool:
    return bool(found.evidence_text) and found.kind in ("number", "unit", "date", "name")


def _explained(changes: Sequence[Change]) -> str:
    if not changes:
        return "Nothing could be improved."
    verbs = {
        "reattributed": "cited another chunk for",
        "corrected": "corrected",
        "hedged": "hedged",
        "dropped": "dropped",
        "added": "added",
        "cited": "added a citation to",
        "uncited_marker_removed": "removed a fabricated reference from",
        "rewritten": "replaced by what the evidence says",
    }
    lines = []
    for number, change in enumerate(changes, 1):
        words = shortened(" ".join((change.before or change.after).split()), 120)
        lines.append(f"{number}. {verbs[change.kind].capitalize()} “{words}” ({change.why.rstrip('.')}).")
    return "\n".join(lines)
