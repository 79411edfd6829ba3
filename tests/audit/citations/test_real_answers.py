"""The citation engine finds planted references in real answers, and flags nothing else."""

from __future__ import annotations

import hashlib
import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from masis.audit.citations import audit_citations
from masis.audit.sentences import split_sentences
from masis.schema.audit import Citation
from masis.schema.case import Evidence

FABRICATED = {
    "[99]": ["99"],
    "[chunk_99]": ["chunk_99"],
    "[97, 99]": ["97", "99"],
    "[97; 99]": ["97", "99"],
    "[97][99]": ["97", "99"],
    "[97-99]": ["97-99"],
    "[97–98]": ["97–98"],
    "[97 and 99]": ["97", "99"],
    "[97 & 99]": ["97", "99"],
    "[97, 98, and 99]": ["97", "98", "99"],
    "[chunk_98, chunk_99]": ["chunk_98", "chunk_99"],
    "【99†source】": ["99"],
    "【99:0†source】": ["99"],
    "[^99]": ["99"],
    "(Source 99)": ["99"],
    "[Source 99]": ["99"],
    "(Sources 97 and 99)": ["97", "99"],
    "[Doc 99]": ["99"],
    "[doc-99]": ["doc-99"],
    "[ref 99]": ["99"],
    "[source](https://nowhere.example/made-up)": ["https://nowhere.example/made-up"],
    "[0]": ["0"],
    "[ID:99]": ["99"],
    "[来源99]": ["99"],
    "<cite>chunk_99</cite>": ["chunk_99"],
    "[99: p. 4]": ["99"],
    "[Source: Document 99]": ["99"],
    "〔99〕": ["99"],
    "[^99^]": ["99"],
    "##99$$": ["99"],
}


class Answer(NamedTuple):
    id: str
    text: str
    evidence: tuple[Evidence, ...]


def read_rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def answers(folder: Path, name: str) -> tuple[Answer, ...]:
    return tuple(
        Answer(row["id"], row["answer"], tuple(Evidence(**chunk) for chunk in row["evidence"]))
        for row in read_rows(folder / name)
    )


@cache
def citations_of(answer: Answer) -> tuple[Citation, ...]:
    return audit_citations(answer.text, answer.evidence).citations


def insert_marker(
    answer: Answer, marker: str, random_source: random.Random
) -> tuple[str, int, int]:
    """Return the answer with a marker inserted before or after the stop of a sentence, and its span."""
    units = [unit for unit in split_sentences(answer.text) if unit.kind in ("prose", "item")]
    unit = random_source.choice(units)
    position = unit.end
    if random_source.random() < 0.5 and answer.text[position - 1] in ".!":
        position -= 1
    addition = f"{random_source.choice(['', ' ']) if marker[0] != '(' else ' '}{marker}"
    return (
        answer.text[:position] + addition + answer.text[position:],
        position,
        position + len(addition),
    )


def citation_key(citation: Citation) -> tuple[str, str | None, str]:
    return citation.reference, citation.evidence_id, citation.status


@pytest.mark.parametrize("marker", FABRICATED)
def test_a_planted_marker_in_500_real_answers_is_the_only_one_flagged(
    public_data: Path, marker: str
) -> None:
    pool = answers(public_data, "expertqa_cases.jsonl") + answers(
        public_data, "pubmedqa_cases.jsonl"
    )
    if "://" in marker:  # links are citations only if evidence has addresses
        pool = tuple(
            answer
            for answer in pool
            if any("://" in (chunk.source or "") for chunk in answer.evidence)
        )
    if marker == "[0]":  # PubMedQA's chunks are numbered from 0
        pool = tuple(
            answer
            for answer in pool
            if not any(chunk.id.endswith("-0") for chunk in answer.evidence)
        )
    random_source = random.Random(20240)
    for answer in (
        random_source.choices(pool, k=500) if len(pool) < 500 else random_source.sample(pool, 500)
    ):
        text, start, end = insert_marker(answer, marker, random_source)
        before = citations_of(answer)
        after = audit_citations(text, answer.evidence).citations
        planted_citations = [citation for citation in after if start <= citation.start < end]
        assert [c.reference for c in planted_citations if c.status == "invalid"] == FABRICATED[
            marker
        ], (
            answer.id,
            text[start - 60 : end],
        )
        assert [citation_key(c) for c in after if c not in planted_citations] == [
            citation_key(c) for c in before
        ], answer.id


@pytest.mark.parametrize("chunk", ["{}", "chunk_{}"])
def test_texts_without_citations_yield_no_references(public_data: Path, chunk: str) -> None:
    evidence = [Evidence(id=chunk.format(number)) for number in range(1, 6)]
    texts = [row["summary"] for row in read_rows(public_data / "summedits.jsonl")]
    texts += [row["claim"] for row in read_rows(public_data / "wice_claims.jsonl")]
    texts += [row["answer"] for row in read_rows(public_data / "pubmedqa_cases.jsonl")]
    for text in texts:
        assert audit_citations(text, evidence).citations == (), text
    abstracts = [str(row["abstract"]) for row in read_rows(public_data / "study_types_val.jsonl")]
    marked = sum(bool(audit_citations(abstract, evidence).citations) for abstract in abstracts)
    # Brackets enclose statistics, chemistry and powers, and a few abstracts do cite.
    assert marked <= 0.01 * len(abstracts)


def is_held_out(question: str) -> bool:
    """Return whether a question is in the half that wasn't used to write the exemptions."""
    return hashlib.sha256(question.encode()).digest()[0] % 2 == 1


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_sentences_that_experts_would_cite_are_rarely_exempt(public_data: Path) -> None:
    exempt_counts = {"Yes": 0, "No": 0}
    counts = {"Yes": 0, "No": 0}
    for row in read_rows(public_data / "expertqa_cases.jsonl"):
        if not is_held_out(row["query"]):
            continue
        audit = audit_citations(row["answer"], [Evidence(**chunk) for chunk in row["evidence"]])
        for claim in row["labels"]["claims"]:
            is_worthy = claim["cite_worthy"]
            if is_worthy not in counts or re.search(r"\[\d", claim["text"]):
                continue
            counts[is_worthy] += 1
            claim_text = without_spaces_and_stars(claim["text"])
            overlapping = [
                s
                for s in audit.sentences
                if without_spaces_and_stars(s.text)
                and (
                    without_spaces_and_stars(s.text) in claim_text
                    or claim_text in without_spaces_and_stars(s.text)
                )
            ]
            if overlapping and all(sentence.status == "exempt" for sentence in overlapping):
                exempt_counts[is_worthy] += 1
    assert counts == {"Yes": 52, "No": 58}
    assert exempt_counts["Yes"] <= 6  # announcements and hedges, which docs/audits.md counts
    assert exempt_counts["No"] >= 10


def without_spaces_and_stars(text: str) -> str:
    return re.sub(r"[\s*]+", "", text)
