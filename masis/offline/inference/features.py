"""The features from which support is predicted, in one fixed order: `NAMES`.

A claim of several sentences is measured sentence by sentence; shares are averaged by weight and also kept at their
worst, counts and contradictions at their largest: one false sentence makes a summary false, however well the others are
covered.
"""

import math
from collections.abc import Mapping, Sequence

from masis.offline.inference.semantic_features import NAMES as SEMANTIC
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match, inversions, neighbourhoods, runs
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree
from masis.offline.text.lexicon import antonyms, synonym_keys

AVERAGED = (
    "cover_one",
    "cover_window",
    "cover_three",
    "cover_all",
    "exact_one",
    "exact_window",
    "exact_all",
    "idf_window",
    "run_share",
    "in_two",
    "in_three",
    "inverted",
    "clause_min",
    "absent",
    "names_window",
    "names_all",
    "numbers_window",
    "numbers_all",
    "displaced",
    "pairs",
    "triples",
    "absent_plain",
    "absent_specific",
    *SEMANTIC,
)
WORST_LOW = (
    "cover_window",
    "cover_all",
    "exact_all",
    "clause_min",
    "in_two",
    "cos_window",
    "soft_mean",
    "soft_low",
)
LARGEST = (
    "absent_words",
    "absent_rare",
    "names_missing",
    "numbers_missing",
    "substituted",
    "names_displaced",
    "opposed",
    "denied",
    "undenied",
    "universal",
    "s_number",
    "s_date",
    "s_direction",
)
SUMMED = (
    "kin",
    "synonyms",
    "absent_named",
    "absent_numeric",
    "absent_verbal",
    "absent_plain_words",
    "absent_polar",
    "polar",
    "elsewhere_named",
    "cues",
)
NAMES = (
    *AVERAGED,
    *(f"{name}_low" for name in WORST_LOW),
    *LARGEST,
    *SUMMED,
    "claim_words",
    "sentences",
    "passages",
    "documents",
    "top_margin",
)

_VERBAL = ("ing", "ed", "ly", "es", "ize", "ise", "ate", "ify")


def sentence_features(
    match: Match, signals: Sequence[Signal], semantic: Mapping[str, float], idf: dict[str, float], unseen: float
) -> dict[str, float]:
    """Return the measurements of one sentence of a claim.

    `signals` are what the evidence seems to have otherwise (`masis.offline.contradictions`), `semantic` what the
    encoder measures; `idf` weighs stems by rarity in the evidence, `unseen` those it lacks.
    """
    all_exact, all_loose = match.covered(list(match.score))
    window_exact, window_loose = match.covered(match.window)
    window = [match.passages[i] for i in match.window]
    words, total, count = match.words, match.total, max(1, len(match.words))
    longest, in_two, in_three = runs(words, window)
    missing = [b for b in range(len(match.bits)) if not (all_exact | all_loose) >> b & 1]
    names, cues = match.sentence.names, match.sentence.cues
    numbers = [fact for fact in match.sentence.facts if fact.kind != "name"]
    pairs, triples = _together(match)
    synonym_groups = synonym_keys()
    plain = sum(
        match.weights[b]
        for b in missing
        if words[match.bits[b]].stem in synonym_groups and words[match.bits[b]].text.islower()
    )
    absent = sum(match.weights[b] for b in missing)
    strength: dict[str, float] = {}
    for signal in signals:
        strength[signal.kind] = max(strength.get(signal.kind, 0.0), signal.strength)
    best = match.coverage(match.top[:1])
    values = {
        "cover_one": best,
        "cover_window": match.value(window_exact, window_loose) / total,
        "cover_three": _three(match),
        "cover_all": match.value(all_exact, all_loose) / total,
        "exact_one": max((match.value(match.exact.get(i, 0)) for i in match.top[:3]), default=0.0) / total,
        "exact_window": match.value(window_exact) / total,
        "exact_all": match.value(all_exact) / total,
        "idf_window": _idf_share(match, window_exact, window_loose, idf, unseen),
        "run_share": longest / count,
        "in_two": in_two / count,
        "in_three": in_three / count,
        "inverted": inversions(words, window[0]) if window else 0.0,
        "clause_min": _clause_min(match),
        "absent": absent / total,
        "absent_plain": plain / total,
        "absent_specific": (absent - plain) / total,
        "displaced": match.value(all_exact & ~(window_exact | window_loose)) / total,
        "pairs": pairs,
        "triples": triples,
        "names_displaced": min(
            3.0,
            sum(
                1
                for name in names
                if not (mask := match.mask(name.start, name.end)) & window_exact and mask & all_exact
            ),
        ),
        "opposed": min(3.0, _opposed(match, window)),
        "denied": float(bool(cues) and not any(passage.cues for passage in window)),
        "undenied": float(not cues and any(passage.cues for passage in window[:1])),
        "universal": min(2.0, len(match.sentence.universal)),
        "names_window": _held(match, names, window_exact),
        "names_all": _held(match, names, all_exact),
        "numbers_window": _numbers_held(numbers, match, match.window),
        "numbers_all": _numbers_held(numbers, match, match.top),
        "absent_words": min(4.0, sum(match.weights[b] >= 1 for b in missing)),
        "absent_rare": max((len(words[match.bits[b]].text) * match.weights[b] for b in missing), default=0.0) / 10,
        "names_missing": min(3.0, sum(1 for name in names if not match.mask(name.start, name.end) & all_exact)),
        "numbers_missing": min(3.0, sum(1 for number in numbers if not _number_held(number, match, match.top))),
        "substituted": min(3.0, _substituted(match)),
        "top_margin": best - (match.coverage(match.top[1:2]) if len(match.top) > 1 else 0.0),
    }
    values |= _kinds(match, all_exact, all_loose, window_exact | window_loose)
    values |= semantic
    values["cues"] = float(len(cues))
    for kind in ("number", "date", "direction"):
        values[f"s_{kind}"] = strength.get(kind, 0.0)
    return values


def combine_features(
    parts: Sequence[tuple[float, dict[str, float]]], words: int, passages: int, documents: int
) -> dict[str, float]:
    """Return the measurements of a whole claim from those of its sentences, each with its weight; in the order of
    `NAMES`.
    """
    total = sum(weight for weight, _ in parts)
    values = {name: sum(weight * part[name] for weight, part in parts) / total for name in AVERAGED}
    values |= {f"{name}_low": min(part[name] for _, part in parts) for name in WORST_LOW}
    values |= {name: max(part[name] for _, part in parts) for name in LARGEST}
    values |= {name: min(6.0, sum(part[name] for _, part in parts)) for name in SUMMED}
    values["claim_words"] = math.log1p(words)
    values["sentences"] = min(4.0, float(len(parts)))
    values["passages"] = math.log1p(passages)
    values["documents"] = math.log1p(documents)
    values["top_margin"] = sum(weight * part["top_margin"] for weight, part in parts) / total
    return values


def _kinds(match: Match, exact: int, loose: int, window: int) -> dict[str, float]:
    """Count the claim's words by how the evidence has them: related by prefix or synonym, or absent and of which kind.

    A paraphrase brings in synonyms and verbs; an alteration brings in numbers, names, plain nouns, and words that have
    an opposite.
    """
    values = dict.fromkeys(SUMMED, 0.0)
    opposites, groups = antonyms(), synonym_keys()
    for b, i in enumerate(match.bits):
        word = match.words[i]
        named, numeric = word.text[0].isupper() and i > 0, word.text[0].isdigit() or word.stem[0].isdigit()
        if window >> b & 1:
            if not exact >> b & 1:
                values["synonyms" if word.stem in groups else "kin"] += 1
            continue
        if exact >> b & 1:
            values["elsewhere_named"] += named or numeric
        elif loose >> b & 1:
            values["synonyms" if word.stem in groups else "kin"] += 1
        elif numeric:
            values["absent_numeric"] += 1
        elif named:
            values["absent_named"] += 1
        else:
            verbal = word.text.endswith(_VERBAL)
            values["absent_verbal" if verbal else "absent_plain_words"] += 1
            values["absent_polar"] += word.stem in opposites
        values["polar"] += word.stem in opposites
    return values


def _together(match: Match) -> tuple[float, float]:
    """Return the shares of neighbouring pairs and triples of content words that a single passage has."""
    pairs = triples = 0
    for mask in match.exact.values():
        two = mask & mask >> 1
        pairs |= two
        triples |= two & mask >> 2
    count = len(match.bits)
    return pairs.bit_count() / max(1, count - 1), triples.bit_count() / max(1, count - 2)


def _opposed(match: Match, window: Sequence[Passage]) -> float:
    """Count the words of the claim that the window lacks while it has their antonym."""
    opposites, count = antonyms(), 0
    mine = {word.stem for word in match.words}
    for word in match.words:
        others = opposites.get(word.stem)
        if others and not any(word.stem in passage.positions for passage in window):
            count += any(other in passage.positions for other in others if other not in mine for passage in window)
    return float(count)


def _three(match: Match) -> float:
    # The three passages that together cover most, in any position; chosen greedily.
    exact = loose = 0
    value = 0.0
    for _ in range(3):
        best, best_masks = value, (exact, loose)
        for i in match.top:
            masks = (exact | match.exact.get(i, 0), loose | match.loose.get(i, 0))
            if (gained := match.value(*masks)) > best:
                best, best_masks = gained, masks
        value, (exact, loose) = best, best_masks
    return value / match.total


def _idf_share(match: Match, exact: int, loose: int, idf: dict[str, float], unseen: float) -> float:
    covered = total = 0.0
    for b, i in enumerate(match.bits):
        rarity = idf.get(match.words[i].stem, unseen)
        total += rarity
        if exact >> b & 1:
            covered += rarity
        elif loose >> b & 1:
            covered += 0.65 * rarity
    return covered / total if total else 0.0


def _clause_min(match: Match) -> float:
    """Return the coverage of the claim's least covered clause by its best neighbourhood."""
    wide = [match.covered(neighbourhoods(match.passages, i)[-1]) for i in match.top[:3]]
    lowest = 1.0
    for mask in match.sentence.clause_masks:
        whole = match.value(mask)
        best = max((match.value(exact & mask, loose & mask) for exact, loose in wide), default=0.0)
        lowest = min(lowest, best / whole)
    return lowest


def _held(match: Match, names: Sequence[Fact], exact: int) -> float:
    whole = covered = 0.0
    for name in names:
        mask = match.mask(name.start, name.end)
        whole += match.value(mask)
        covered += match.value(mask & exact)
    return covered / whole if whole else 1.0


def _number_held(number: Fact, match: Match, where: Sequence[int]) -> bool:
    return any(
        agree(number, other) for i in where for other in match.passages[i].facts if other.kind == number.kind
    ) or any(
        match.mask(number.start, number.end) == match.exact.get(i, 0) & match.mask(number.start, number.end) != 0
        for i in where
    )


def _numbers_held(numbers: Sequence[Fact], match: Match, where: Sequence[int]) -> float:
    return sum(_number_held(number, match, where) for number in numbers) / len(numbers) if numbers else 1.0


def _substituted(match: Match) -> float:
    """Count the content words that the window lacks although both their neighbours are matched there, close
    together.
    """
    exact, loose = match.covered(match.window)
    window = [match.passages[i] for i in match.window]
    count = 0
    for b in range(1, len(match.bits) - 1):
        if (exact | loose) >> b & 1 or not (exact >> (b - 1) & 1 and exact >> (b + 1) & 1):
            continue
        left, right = match.words[match.bits[b - 1]].stem, match.words[match.bits[b + 1]].stem
        count += any(
            0 < q - p <= 5
            for passage in window
            for p in passage.positions.get(left, ())
            for q in passage.positions.get(right, ())
        )
    return float(count)
