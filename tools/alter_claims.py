"""Alters claims known to be true and measures which alterations the offline auditor finds, and what it flags untouched.

    python tools/alter_claims.py --data FOLDER

Takes the supported claims of the fit halves (our cases, HAGRID, WiCE, SummEdits) and half of the PubMedQA authors' own
conclusions, drawn by a hash. Each is held against its evidence as it stands and altered once a kind: a number, a date,
a name, a negation, a direction, a quantifier. Prints recall by kind and false alarms by set, for two halves of what it
takes, so that a rule made on one can be watched on the other. Deterministic: draws depend on the text alone.
"""

import argparse
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from masis.bench.rows import half_of, in_half
from masis.bench.tasks import TASKS
from masis.offline.matching.evidence_index import Assessment, EvidenceIndex
from masis.offline.parsing.facts import Fact, extract

CASES = Path(__file__).parents[1] / "data" / "cases"
FILES = {
    "Demo gold": "*.jsonl",
    "HAGRID": "hagrid_claims.jsonl",
    "WiCE": "wice_claims.jsonl",
    "SummEdits": "summedits.jsonl",
}
LONGEST = 400
"""Characters; longer summaries are measured as they stand and not altered."""

_OPPOSITES = """
rise|fall rises|falls rose|fell rising|falling increase|decrease increased|decreased increases|decreases
increasing|decreasing grow|shrink grew|shrank more|less higher|lower longer|shorter above|below before|after
approved|rejected accepted|rejected allows|forbids allowed|forbidden permitted|prohibited opened|closed opens|closes
open|closed includes|excludes included|excluded won|lost wins|loses first|last earliest|latest minimum|maximum
mandatory|optional compulsory|voluntary begins|ends began|ended starts|stops started|stopped larger|smaller
largest|smallest highest|lowest better|worse best|worst improved|worsened gained|lost supports|opposes
supported|opposed agreed|refused granted|refused dismissed|allowed upheld|overturned safe|unsafe likely|unlikely
possible|impossible effective|ineffective public|private internal|external early|late earlier|later north|south
northern|southern east|west eastern|western upper|lower inside|outside success|failure successful|unsuccessful
majority|minority most|least faster|slower stronger|weaker profit|loss bought|sold permanent|temporary
positive|negative able|unable
"""
_OPPOSED: dict[str, str] = {}
for _pair in _OPPOSITES.split():
    _left, _right = _pair.split("|")
    _OPPOSED.setdefault(_left, _right)
    _OPPOSED.setdefault(_right, _left)
_QUANTIFIED = {"all": "none", "every": "no", "both": "neither", "most": "few", "many": "few", "always": "never"}
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|may|will|must|should|has|have|had|does|do|did|could|would)\b(?! not)")
_INSERTED = ("{} not", "{} never", "{} no longer")
_DROPPED = (
    (re.compile(r"\b(is|are|was|were|may|will|must|should|has|have|had|could|would) not\b"), r"\1"),
    (re.compile(r"\bcannot\b"), "can"),
    (re.compile(r"\b(?:does|do|did) not "), ""),
    (re.compile(r"\bnever "), ""),
    (re.compile(r"\bwithout\b"), "with"),
    (re.compile(r"\bno (?!longer|more|less|doubt)"), "a "),
    (re.compile(r"\bnone of\b"), "all of"),
    (re.compile(r"\bneither\b"), "both"),
)


class Known(NamedTuple):
    """A claim known to be true, its evidence, the set it is from, and the half of this measurement it belongs to."""

    source: str
    claim: str
    evidence: tuple[tuple[str, str], ...]
    half: str


def known(data: Path) -> Iterator[Known]:
    """True claims of the fit halves, and of the PubMedQA conclusions that a hash draws."""
    for task in TASKS:
        if task.name not in FILES:
            continue
        folder = CASES if task.name == "Demo gold" else data
        lines = [line for path in sorted(folder.glob(FILES[task.name])) for line in path.read_text("utf-8").split("\n")]
        rows = in_half([row for line in lines if line.strip() for row in task.rows(json.loads(line))], "fit")
        for row, group in rows:
            if not row.positive and row.planted is None and not row.cites_nothing:
                yield Known(task.name, row.claim, row.evidence, half_of(f"altered:{group}"))
    for line in (data / "pubmedqa_cases.jsonl").read_text("utf-8").split("\n"):
        case = json.loads(line) if line.strip() else {}
        if case.get("answer") and half_of(case["id"]) == "fit":
            evidence = tuple((chunk["id"], chunk["text"]) for chunk in case["evidence"])
            yield Known("PubMedQA", case["answer"], evidence, half_of(f"altered:{case['id']}"))


def _drawn(claim: str, kind: str) -> random.Random:
    return random.Random(int(hashlib.sha256(f"{kind}:{claim}".encode()).hexdigest(), 16))


def _put(claim: str, fact: Fact, text: str) -> str:
    return claim[: fact.start] + text + claim[fact.end :]


def _digits(text: str, draw: random.Random) -> str:
    places = [i for i, c in enumerate(text) if c.isdigit()]
    pairs = [(a, b) for a, b in pairwise(places) if text[a] != text[b] and text[b] != "0"]
    if pairs and draw.random() < 0.5:
        a, b = draw.choice(pairs)
        return text[:a] + text[b] + text[a + 1 : b] + text[a] + text[b + 1 :]
    at = draw.choice(places)
    return text[:at] + draw.choice([d for d in "123456789" if d != text[at]]) + text[at + 1 :]


def number(known: Known, draw: random.Random) -> str | None:
    """Another number: digits exchanged or replaced, or another magnitude."""
    facts = [fact for fact in extract(known.claim) if fact.kind == "number" and any(c.isdigit() for c in fact.text)]
    if not facts:
        return None
    fact = draw.choice(facts)
    for one, other in (("million", "billion"), ("billion", "million"), (" mg", " g")):
        if one in fact.text and draw.random() < 0.4:
            return _put(known.claim, fact, fact.text.replace(one, other))
    return _put(known.claim, fact, _digits(fact.text, draw))


def date(known: Known, draw: random.Random) -> str | None:
    """Another year, month or day."""
    facts = [fact for fact in extract(known.claim) if fact.kind == "date"]
    if not facts:
        return None
    fact = draw.choice(facts)
    months = "January February March April May June July August September October November December".split()
    here = next((month for month in months if month in fact.text), None)
    if here and draw.random() < 0.4:
        return _put(known.claim, fact, fact.text.replace(here, draw.choice([m for m in months if m != here])))
    year = re.search(r"\d{4}", fact.text)
    if year:
        moved = str(int(year.group()) + draw.choice([-10, -3, -2, -1, 1, 2, 3, 10]))
        return _put(known.claim, fact, fact.text.replace(year.group(), moved))
    day = re.search(r"\d+", fact.text)
    return _put(known.claim, fact, fact.text.replace(day.group(), str(int(day.group()) % 28 + 1))) if day else None


def name(known: Known, draw: random.Random) -> str | None:
    """Two names of the sentence exchanged, or a name replaced by another of the evidence."""
    mine = [fact for fact in extract(known.claim) if fact.kind == "name" and len(fact.text) > 2]
    if len(mine) >= 2 and draw.random() < 0.5:
        one, other = sorted(draw.sample(mine, 2), key=lambda fact: fact.start)
        if not set(one.value) & set(other.value):  # type: ignore[arg-type]
            between = known.claim[one.end : other.start]
            return known.claim[: one.start] + other.text + between + one.text + known.claim[other.end :]
    if not mine:
        return None
    fact = draw.choice(mine)
    said = known.claim.casefold()
    length = len(fact.text.split())
    theirs = sorted({
        other.text
        for _, text in known.evidence
        for other in extract(text[:20_000])
        if other.kind == "name" and len(other.text) > 2 and other.text.casefold() not in said
        and len(other.text.split()) == length and other.text.isupper() == fact.text.isupper()
    })  # fmt: skip
    return _put(known.claim, fact, draw.choice(theirs)) if theirs else None


def negation(known: Known, draw: random.Random) -> str | None:
    """A negation dropped where there is one, else one put behind an auxiliary."""
    for pattern, instead in _DROPPED:
        if pattern.search(known.claim):
            return pattern.sub(instead, known.claim, count=1)
    places = list(_AUXILIARY.finditer(known.claim))
    if not places:
        return None
    place = draw.choice(places)
    put = draw.choice(_INSERTED).format(place.group())
    return known.claim[: place.start()] + put + known.claim[place.end() :]


def _replaced(claim: str, table: dict[str, str], draw: random.Random) -> str | None:
    places = [word for word in re.finditer(r"\b[a-z]+\b", claim) if word.group() in table]
    if not places:
        return None
    place = draw.choice(places)
    return claim[: place.start()] + table[place.group()] + claim[place.end() :]


def direction(known: Known, draw: random.Random) -> str | None:
    """A word replaced by its opposite."""
    return _replaced(known.claim, _OPPOSED, draw)


def quantifier(known: Known, draw: random.Random) -> str | None:
    """All for none, most for few."""
    return _replaced(known.claim, _QUANTIFIED, draw)


KINDS: dict[str, Callable[[Known, random.Random], str | None]] = {
    kind.__name__: kind for kind in (number, date, name, negation, direction, quantifier)
}


def main() -> int:
    """Alter, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public sets")
    parser.add_argument("--most", type=int, default=150, help="claims taken of each set (default 150)")
    parser.add_argument("--show", default="", help="print misses of this kind, or 'clean' for false alarms")
    parser.add_argument("--set", default="", help="only this set")
    chosen = parser.parse_args()
    taken: Counter[str] = Counter()
    hits: Counter[tuple[str, ...]] = Counter()
    seen: Counter[tuple[str, ...]] = Counter()
    for one in known(chosen.data):
        if taken[one.source] >= chosen.most or chosen.set not in ("", one.source):
            continue
        taken[one.source] += 1
        index = EvidenceIndex(one.evidence)
        plain = index.assess(one.claim)
        _count(hits, seen, ("clean", one.source, one.half), plain)
        if chosen.show == "clean" and plain.verdict == "contradicted":
            _print(one, one.claim, plain)
        if len(one.claim) > LONGEST or plain.verdict == "contradicted":
            continue
        for kind, alter in KINDS.items():
            altered = alter(one, _drawn(one.claim, kind))
            if altered is None or altered == one.claim:
                continue
            found = index.assess(altered)
            _count(hits, seen, (kind, one.source, one.half), found)
            if chosen.show == kind and found.verdict != "contradicted":
                _print(one, altered, found)
    for key in ("clean", *KINDS):
        for source in (*FILES, "PubMedQA"):
            print(f"{key:10} {source:10} {_line(hits, seen, key, source)}")
    return 0


def _count(hits: Counter[tuple[str, ...]], seen: Counter[tuple[str, ...]], key: tuple[str, ...], a: Assessment) -> None:
    seen[key] += 1
    hits[key] += a.verdict == "contradicted"


def _line(hits: Counter[tuple[str, ...]], seen: Counter[tuple[str, ...]], key: str, source: str) -> str:
    halves = [(hits[key, source, half], seen[key, source, half]) for half in ("fit", "report")]
    return "   ".join(f"{hit:3}/{of:<4}{100 * hit / of:5.1f}%" for hit, of in halves if of)


def _print(one: Known, claim: str, found: Assessment) -> None:
    print(f"\n[{one.source}] {claim}" + ("" if claim == one.claim else f"\n   true: {one.claim}"))
    texts = dict(one.evidence)
    for signal in found.signals[:2]:
        print(f"   {signal.kind} {signal.strength}: {signal.reason}")
        text = texts[signal.evidence_id]
        print("      in:", text[max(0, signal.evidence_start - 160) : signal.evidence_end + 100].replace("\n", " "))
    for bearing in found.supporting[:2]:
        print("      >>", texts[bearing.evidence_id][bearing.start : bearing.end].replace("\n", " ")[:300])


if __name__ == "__main__":
    sys.exit(main())
