"""Find changes that make a sentence of a sound answer certainly false.

Each function checks one sentence and yields changes after which the evidence certainly doesn't
support it. The altered sentence is checked again, and a change that leaves a doubt isn't made.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from masis.offline.checks.derivations import (
    MOST_VALUES,
    Near,
    is_calculated,
    is_explained,
    near_values,
    restates,
)
from masis.offline.checks.figures import asserts_no_value
from masis.offline.faults.sentences import AnswerSentence, ReadAnswer
from masis.offline.parsing.facts import Fact, agree, extract
from masis.offline.text.tokens import STOPWORDS, stem
from masis.schema.audit import Citation
from masis.schema.faults import FaultKind


class FaultChange(NamedTuple):
    """A replacement of ``answer[start:end]`` by ``words``.

    ``evidence_ids`` are the chunks that support the original words.
    """

    start: int
    end: int
    words: str
    evidence_ids: tuple[str, ...]


Changes = Callable[[ReadAnswer, AnswerSentence, random.Random], Iterator[FaultChange]]

# Figures

# Matches a numeral with its separators ("1,234.5"), without a final point or comma.
_DIGITS = re.compile(r"\d(?:[\d.,]*\d)?")
# Matches a year from 1500 to 2099, not inside a longer number.
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_TRIES = 40
"""Values that are tried in place of one figure."""
_LEAST_OFF = 0.2
"""Smallest relative change of a figure, so that it doesn't look rounded."""
_MOST_OFF = 5.0
"""Largest factor of a change. A reviewer would notice a larger one without reading the evidence."""


def change_figure(
    read: ReadAnswer, sentence: AnswerSentence, random_source: random.Random
) -> Iterator[FaultChange]:
    """Yield replacements of cited figures by values that the evidence neither has nor implies."""
    allowed = read.cited_by(sentence)
    values_nearby = _figures_to_compute(read, allowed)
    if values_nearby is None:
        return
    for fact in sentence.parsed.facts:
        if (
            fact.others
            or fact.dimension in ("ordinal", "clock")
            or asserts_no_value(sentence.text, fact)
        ):
            continue
        holders = read.table.holders(fact, allowed)
        part = (_YEAR if fact.kind == "date" else _DIGITS).search(fact.text)
        if (
            not holders
            or part is None
            or any(agree(fact, other) for other in read.repeatable_facts)
        ):
            continue
        ids = tuple(
            dict.fromkeys(read.passages[passage_number].evidence_id for passage_number in holders)
        )
        start, end = fact.start + part.start(), fact.start + part.end()
        for _ in range(_TRIES):
            words = (
                str(int(part.group()) + random_source.choice((-1, 1)) * random_source.randint(2, 9))
                if fact.kind == "date"
                else _other_digits(part.group(), random_source)
            )
            text = sentence.text[:start] + words + sentence.text[end:]
            if _is_credible(part.group(), words, fact) and _is_absent_from_evidence(
                read, text, words, fact, values_nearby
            ):
                yield FaultChange(*sentence.to_answer_offsets(start, end), words, ids)
                break


def _figures_to_compute(read: ReadAnswer, allowed: frozenset[int] | None) -> Near | None:
    """Return the figures that a claim could be computed from, or None if there are too many."""
    cited = [passage for passage in read.passages if allowed is None or passage.document in allowed]
    for passages in (read.passages, cited):
        if sum(len(passage.facts) for passage in passages) <= MOST_VALUES:
            return near_values(passages, read.repeatable_facts)
    return None


def _other_digits(numeral: str, random_source: random.Random) -> str:
    """Return as many other digits with the same separators; a round figure stays round."""
    digits = [character for character in numeral if character.isdigit()]
    significant = len("".join(digits).rstrip("0"))
    new_digits = [random_source.choice("0123456789") for _ in digits[:significant]] + ["0"] * (
        len(digits) - significant
    )
    if digits[0] != "0":
        new_digits[0] = random_source.choice("123456789")
    digit_iterator = iter(new_digits)
    return "".join(
        next(digit_iterator) if character.isdigit() else character for character in numeral
    )


def _is_credible(before: str, after: str, fact: Fact) -> bool:
    """Return whether a changed figure is clearly wrong but still believable."""
    if fact.kind == "date":
        return True
    old, new = (float("".join(filter(str.isdigit, words))) for words in (before, after))
    if not old or not new or abs(new - old) < _LEAST_OFF * old:
        return False
    if fact.dimension == "percent" and abs(fact.value) <= 100 < abs(fact.value) * new / old:
        return False
    return max(old, new) <= _MOST_OFF * min(old, new)


def _is_absent_from_evidence(
    read: ReadAnswer, text: str, words: str, old_fact: Fact, values_nearby: Near
) -> bool:
    """Return whether the evidence lacks the altered sentence's figure in every reading."""
    new_fact = next((fact for fact in extract(text) if fact.start == old_fact.start), None)
    if (
        new_fact is None
        or new_fact.others
        or (new_fact.kind, new_fact.dimension) != (old_fact.kind, old_fact.dimension)
    ):
        return False
    if read.table.holders(new_fact, None) or any(
        agree(new_fact, other) for other in (*read.repeatable_facts, *read.own_figures)
    ):
        return False
    if words.replace(",", "") in read.numerals:
        return False
    return not (
        restates(text, new_fact, values_nearby)
        or is_calculated(text, new_fact, values_nearby)
        or is_explained(text, new_fact, values_nearby)
    )


# Negations


class NegationWords(NamedTuple):
    """The words with which one language negates.

    ``pairs`` maps verbs to their negations and ``negative`` has the words that negate. A sentence
    with a ``limiting`` word isn't changed, because it's unclear what "all were not treated" denies
    and whether a condition holds.
    """

    pairs: Mapping[str, str]
    negative: frozenset[str]
    limiting: frozenset[str]


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _verbs_before(verbs: str, word: str) -> dict[str, str]:
    return {verb: f"{verb} {word}" for verb in verbs.split()}


def _verbs_after(verbs: str, word: str) -> dict[str, str]:
    return {verb: f"{word} {verb}" for verb in verbs.split()}


NEGATIONS: Mapping[str, NegationWords] = {
    "en": NegationWords(
        _verbs_before("is are was were will would should", "not") | {"can": "cannot"},
        _word_set(
            "not no never none nobody nothing neither nor cannot without hardly scarcely rarely"
            " seldom n't"
        ),
        _word_set(
            """all every each any some both either only always often sometimes usually if unless
            whether although though until except may might could but than"""
        ),
    ),
    "de": NegationWords(
        _verbs_before("ist sind war waren wird wurde wurden", "nicht"),
        _word_set(
            "nicht kein keine keinen keiner keinem keines nie niemals niemand nichts weder ohne"
            " kaum selten"
        ),
        _word_set(
            "alle alles jeder jede jedes manche einige nur immer oft manchmal wenn falls ob obwohl"
            " sondern aber"
        ),
    ),
    "nl": NegationWords(
        _verbs_before("is was waren wordt werd werden", "niet"),
        _word_set("niet geen nooit niemand niets noch zonder nauwelijks zelden"),
        _word_set(
            "alle elke elk ieder sommige alleen altijd vaak soms als indien of hoewel tenzij maar"
        ),
    ),
    "fr": NegationWords(
        {
            "est": "n'est pas",
            "sont": "ne sont pas",
            "était": "n'était pas",
            "étaient": "n'étaient pas",
            "a été": "n'a pas été",
            "ont été": "n'ont pas été",
        },
        _word_set("ne n' pas plus jamais rien personne aucun aucune ni sans guère non"),
        _word_set("tous toutes tout chaque seulement toujours souvent parfois si quoique mais que"),
    ),
    "es": NegationWords(
        _verbs_after("es son era eran fue fueron está están", "no"),
        _word_set("no nunca jamás nada nadie ninguno ninguna ningún ni sin tampoco apenas"),
        _word_set("todos todas todo cada sólo solo siempre a_veces si aunque salvo pero se le lo"),
    ),
    "it": NegationWords(
        _verbs_after("è sono era erano fu furono", "non"),
        _word_set("non no mai nulla niente nessuno nessuna né senza appena"),
        _word_set("tutti tutte tutto ogni solo sempre spesso talvolta se benché ma ci si ne"),
    ),
    "pt": NegationWords(
        _verbs_after("é são era eram foi foram está estão", "não"),
        _word_set("não nunca jamais nada ninguém nenhum nenhuma nem sem tampouco"),
        _word_set("todos todas todo cada só apenas sempre se embora salvo mas lhe"),
    ),
}
"""The languages in which a negation can be added or removed by rule, by their two-letter code."""

# Matches a run of letters: two in "don't", none in "42".
_WORD = re.compile(r"[^\W\d_]+")
# Matches the contracted "not" in "isn't" and "can’t".
_NOT_SHORTENED = re.compile(r"n['’]t\b", re.IGNORECASE)
_POSSIBLE_DENIAL = 0.6
"""Share of a sentence's content that a passage needs to be a possible denial of it."""


def change_negation(
    read: ReadAnswer, sentence: AnswerSentence, random_source: random.Random
) -> Iterator[FaultChange]:
    """Yield a near copy of the evidence with its verb negated, or with its negation removed."""
    words = NEGATIONS.get(read.language or "")
    source = read.source_of(sentence)
    if words is None or source is None or sentence.text.rstrip().endswith("?"):
        return
    negations = _count_negations(sentence.text, words)
    if (
        negations > 1
        or negations != _count_negations(source.text, words)
        or words.limiting & _lower_words(sentence.text)
    ):
        return
    content = sentence.parsed.content
    for passage in read.passages:
        # If one chunk denies the other, it's unknown which is right, so the change isn't certain.
        if (
            len(content & passage.content) >= _POSSIBLE_DENIAL * len(content)
            and _count_negations(passage.text, words) != negations
        ):
            return
    pairs = [
        (negated, plain) if negations else (plain, negated)
        for plain, negated in words.pairs.items()
    ]
    for before, after in random_source.sample(pairs, len(pairs)):
        # The verb must be followed by a word: in "weil er krank war" it ends its clause, and the
        # negation belongs before it.
        match = re.search(rf"(?<![\w'’-]){re.escape(before)}(?= [\w\"“«])", sentence.text)
        if match is not None:
            yield FaultChange(
                *sentence.to_answer_offsets(*match.span()), after, (source.evidence_id,)
            )


def _lower_words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _count_negations(text: str, words: NegationWords) -> int:
    """Count the words that negate. French "ne ... pas" is one negation of two words."""
    negations = [word for word in _WORD.findall(text.lower()) if word in words.negative]
    if "pas" in words.negative:
        negations = [word for word in negations if word != "pas"] or negations
        negations += ["ne"] * len(re.findall(r"\bn['’](?=[^\W\d_])", text.lower()))
    return len(negations) + len(_NOT_SHORTENED.findall(text))


# Citations

_SUPPORTING_PASSAGE = 0.4
"""Share of a sentence's content that a passage needs to support it."""
_SUPPORTING_CHUNK = 0.5
"""The same for all passages of a chunk together."""
_MOST_TARGETS = 6
"""Chunks that are tried for a moved reference. Each trial audits the answer's citations."""
# Matches the last number of a reference or chunk id: "12" in "chunk_3_12]".
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


def change_citation(
    read: ReadAnswer, sentence: AnswerSentence, random_source: random.Random
) -> Iterator[FaultChange]:
    """Yield references to chunks that are unrelated to the sentence or don't exist."""
    citations = read.citations_in(sentence)
    if (
        len(citations) != 1
        or citations[0].evidence_id is None
        or citations[0].start < sentence.start
    ):
        return  # with a second reference, the sentence might still be supported
    citation = citations[0]
    targets = [*_unrelated_chunks(read, sentence, citation), None]
    for target in random_source.sample(targets, min(len(targets), _MOST_TARGETS)):
        for words in _references_to(read, citation, target):
            if _refers_to(
                read.replace_words(citation.start, citation.end, words), citation.start, target
            ):
                yield FaultChange(
                    citation.start, citation.end, words, (citation.evidence_id or "",)
                )
                break


def _unrelated_chunks(
    read: ReadAnswer, sentence: AnswerSentence, citation: Citation
) -> Iterator[str]:
    """Yield the chunks that certainly don't say a sentence that the cited one does say."""
    if read.source_of(sentence) is None:
        return
    for chunk in read.evidence:
        if chunk.id != citation.evidence_id and chunk.text.strip():
            number = read.number_of[chunk.id]
            _, share = read.nearest(sentence, frozenset({number}))
            content = sentence.parsed.content
            chunk_content = frozenset().union(
                *(passage.content for passage in read.passages if passage.document == number)
            )
            if share < _SUPPORTING_PASSAGE and len(
                content & chunk_content
            ) < _SUPPORTING_CHUNK * len(content):
                yield chunk.id


def _references_to(read: ReadAnswer, citation: Citation, target: str | None) -> Iterator[str]:
    """Yield notations of a reference to another chunk, or to a missing one if it's None."""
    if target is None:
        numbers = [
            int(match.group())
            for chunk in read.evidence
            if (match := _LAST_NUMBER.search(chunk.id))
        ]
        missing = max([len(read.evidence), *(number for number in numbers if number < 10_000)]) + 1
        yield _LAST_NUMBER.sub(str(missing), citation.text, count=1)
        return
    if citation.text.casefold() == (citation.evidence_id or "").casefold():
        yield target
    if _LAST_NUMBER.search(citation.text):
        target_number = _LAST_NUMBER.search(target)
        for number in dict.fromkeys(
            [target_number.group() if target_number else "", str(read.number_of[target] + 1)]
        ):
            yield _LAST_NUMBER.sub(number, citation.text, count=1)


def _refers_to(altered: ReadAnswer, start: int, target: str | None) -> bool:
    """Return whether the reference at `start` resolves to the chunk, or to none if it's None."""
    citation = next((item for item in altered.audit.citations if item.start == start), None)
    if citation is None:
        return False
    return citation.evidence_id == target and citation.status == (
        "invalid" if target is None else "valid"
    )


# Names

NAMED_LANGUAGES = frozenset({"en", "fr", "es", "it", "pt", "nl"})
"""Languages in which only names are capitalized within a sentence and names aren't inflected."""
# Matches a word, with hyphens but without digits at the start: "Oslo", "Jean-Luc", "A320". The
# caller checks the capital.
_NAME_WORD = re.compile(r"[^\W\d_][^\W_]*(?:-[^\W_]+)*")
_SUPPORTING_OTHER_NAME = 0.5
"""Share of the rest of a sentence that a passage needs to support it for another name."""
_CALENDAR = frozenset(
    stem(word)
    for word in """
        january february march april may june july august september october november december monday
        tuesday wednesday thursday friday saturday sunday
    """.split()
)


class _Name(NamedTuple):
    """A name with its place in a text, and the word before it."""

    words: str
    start: int
    end: int
    before: str


def change_name(
    read: ReadAnswer, sentence: AnswerSentence, draw: random.Random
) -> Iterator[FaultChange]:
    """Yield replacements of a name by another name for which no evidence supports the sentence."""
    source = read.source_of(sentence)
    if read.language not in NAMED_LANGUAGES or source is None:
        return
    source_names = {name.words for name in _names_in(source.text)}
    names = [name for name in _names_in(sentence.text) if name.words in source_names]
    others = {name.words: name for chunk in read.evidence for name in _names_in(chunk.text)}
    preceding = _words_before(read)
    known = _lower_words(f"{sentence.text} {read.question} {source.text}")
    for name in draw.sample(names, len(names)):
        fits = [
            other
            for other in others.values()
            if name.words.count(" ") == other.words.count(" ")
            and len(other.words) > 2  # an initial alone isn't a name
            and preceding[name.words] & preceding[other.words]
            and not _lower_words(other.words) & known
        ]
        for other in draw.sample(fits, len(fits)):
            if not _may_be_true_of(read, sentence, name, other):
                yield FaultChange(
                    *sentence.to_answer_offsets(name.start, name.end),
                    other.words,
                    (source.evidence_id,),
                )
                break


def _words_before(read: ReadAnswer) -> dict[str, set[str]]:
    """Return the words before each name. Names that share one, as in "in Oslo", are of one kind."""
    preceding: dict[str, set[str]] = defaultdict(set)
    for text in (
        *(chunk.text for chunk in read.evidence),
        *(sentence.text for sentence in read.sentences),
    ):
        for name in _names_in(text):
            preceding[name.words] |= {name.before} - {""}
    return preceding


def _names_in(text: str) -> list[_Name]:
    """Return the runs of capitalized words in a text, except for the first word of a sentence."""
    names: list[_Name] = []
    last = None
    for match in _NAME_WORD.finditer(text):
        word = match.group()
        before = "" if last is None else last.group().lower()
        between = "" if last is None else text[last.end() : match.start()]
        begins = last is None or any(mark in between for mark in '.!?:;\n"“«(')
        last = match
        # A word in capitals may be a unit, role or method (EUR, CEO, MRI) instead of a name.
        is_name = word[0].isupper() and not word.isupper()
        if not is_name or word.lower() in STOPWORDS or stem(word.lower()) in _CALENDAR:
            continue
        if names and names[-1].end == match.start() - 1 and text[match.start() - 1] == " ":
            joined = names.pop()
            names.append(joined._replace(words=f"{joined.words} {word}", end=match.end()))
        elif not begins:
            names.append(_Name(word, match.start(), match.end(), before))
    return names


def _may_be_true_of(read: ReadAnswer, sentence: AnswerSentence, name: _Name, other: _Name) -> bool:
    """Return whether a passage with the other name may support the sentence with that name."""
    name_stems = {stem(word) for word in _lower_words(name.words)}
    rest = sentence.parsed.content - name_stems
    other_stems = {stem(word) for word in _lower_words(other.words)}
    return any(
        other_stems & passage.content
        and len(rest & passage.content) >= _SUPPORTING_OTHER_NAME * len(rest)
        for passage in read.passages
    )


CHANGES: Mapping[FaultKind, Changes] = {
    "figure": change_figure,
    "negation": change_negation,
    "citation": change_citation,
    "name": change_name,
}
"""The function that makes each kind of fault."""

NOTHING_CERTAIN: Mapping[FaultKind, str] = {
    "figure": (
        "the answer has no figure that is also in the cited evidence and can certainly be falsified"
    ),
    "negation": (
        "the answer has no near copy of the evidence whose negation can be changed by rule"
    ),
    "citation": "the answer has no sentence with exactly one reference that can be changed",
    "name": (
        "the answer has no name that can be replaced by another one for which the evidence doesn't"
        " support the sentence"
    ),
}
"""Why a kind of fault can't be planted in an answer."""


def languages_of(kind: FaultKind) -> Sequence[str] | None:
    """Return the codes of the languages that a kind of fault supports, or None for all."""
    return {"negation": tuple(NEGATIONS), "name": tuple(sorted(NAMED_LANGUAGES))}.get(kind)
