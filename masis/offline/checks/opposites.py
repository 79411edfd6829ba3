"""Finds sentences of the evidence that are the plain negation of a claim.

A claim contradicts a sentence of the evidence only if both have the same words in the same order
and one of them negates the main verb: "did not pay" for "paid", "cannot" for "can", "no longer
lends" for "lends", "is forbidden" for "is allowed". Two negations cancel each other out: "is not
unsafe" equals "is safe".

Any other opposite is left open, because both sentences can be true: "low blood pressure" and "high
blood pressure", "patients (not) taking aspirin", "may" and "may not", "some did" and "some did
not". A claim with one of these isn't a copy, so it isn't confirmed either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from masis.audit.text.comparison import NUMBER_WORDS
from masis.offline.text.tokens import IRREGULAR

FEWEST_WORDS = 4
"""Minimum number of words of a sentence besides its negation; shorter ones depend on their context.
"""
MOST_WORDS = 60
"""Sentences with more words aren't compared; they state several things."""

_PREDICATES = """
    allowed permitted authorized / forbidden prohibited banned disallowed
    legal lawful / illegal unlawful
    required mandatory compulsory obligatory / optional voluntary
    recommended advisable / inadvisable contraindicated
    safe / unsafe
    effective / ineffective
    possible / impossible
    likely / unlikely
    common / uncommon
    sufficient / insufficient
    adequate / inadequate
    necessary / unnecessary
    appropriate / inappropriate
    suitable / unsuitable
    able / unable
    aware / unaware
    reversible / irreversible
    available / unavailable
    stable / unstable
    valid / invalid
    complete / incomplete
    correct accurate / incorrect inaccurate
    related / unrelated
    affected / unaffected
    changed / unchanged
"""
PREDICATES = {
    word: (side[0].split()[0], sign)
    for side in (line.split("/") for line in _PREDICATES.strip().splitlines())
    for sign, words in ((1, side[0]), (-1, side[1]))
    for word in words.split()
}
"""Predicates with an opposite: the name of their pair, and 1 for its first side or -1.

Words of one side count as the same word, so that "banned" and "prohibited" don't differ.
"""
_BE = frozenset("is are was were become becomes became remain remains remained".split())
_DO = frozenset("do does did".split())
_HAVE = frozenset("have has had".split())
# Auxiliaries whose negation excludes the statement. "May not" and "could not" don't: both "the
# drug may help" and "the drug may not help" can be true.
_NEGATED = _DO | frozenset("is are was were has have had can will would must should shall".split())
_OBLIGATIONS = frozenset("must should shall will".split())
_FINITE = _NEGATED | frozenset("am may might could".split())
_CONTRACTED = {"won't": "will", "can't": "can", "shan't": "shall", "cannot": "can"}
# Words that a sentence and its negation may have or lack. After a negation "always" counts.
_FILLERS = frozenset(
    "always also please however therefore thus moreover furthermore indeed".split()
)
# Words under which a statement and its negation can both be true: some improve, some don't.
_PARTIAL = frozenset(
    """
        some several many few most others other another someone somebody something may might could
        partly sometimes often frequently rarely seldom usually generally mostly typically half
        part parts certain only just merely necessarily always occasionally once twice various
        percent
    """.split()
)
# Words that open a clause or a phrase. A negation after them may leave the main statement as it
# is: "patients who do not smoke", "if it is not raining", "the fact that".
_SUBORDINATORS = frozenset(
    """
        if when whenever where wherever while who whose whom which what whatever whichever whoever
        that why how because although though since unless whether until till as than before after
        once lest provided providing assuming suppose supposing event case with without despite
        except
    """.split()
)
# Verbs of a speaker: "experts say coffee is not harmful" and "experts say coffee is harmful" can
# both be true.
_REPORTING = frozenset(
    """
        say says said claim claims claimed believe believes believed think thinks thought suggest
        suggests suggested argue argues argued report reports show shows showed state states stated
        find finds found know knows knew hope hopes hoped fear fears feared assume assumes assumed
        warn warns warned tell tells according
    """.split()
)
_PRONOUNS = frozenset("i we he she they it this these those that him her them one".split())
_SUBJECTS = frozenset("i we you he she they it".split())
_DETERMINERS = frozenset(
    "the a an this that these those my your his her its our their all both every each".split()
)
# Words before a determiner within one phrase: "the end of the lease", "all the shops".
_BEFORE_DETERMINERS = frozenset(
    """
        of in on at by for from to into under over within outside inside between among during
        against through near about above below and or all both
    """.split()
)
# Tenses of single events, which happen to some patients and not to others.
_EPISODIC = frozenset("was were did has have had".split())
_PLURALS = frozenset(
    "people children men women data everything everyone everybody anything anyone all".split()
)
_PAST_FORMS = frozenset("put cut set let hit cost hurt shut spread quit bet read".split())
"""Verbs whose past tense has the form of the infinitive."""
# Words after "no" with which it doesn't deny the sentence: "no doubt", "no more than ten".
_AFTER_NO = frozenset(
    "one doubt longer more fewer less later sooner matter wonder earlier better worse".split()
)
_MONTHS = frozenset(
    """
        january february march april May june july august september october november december
    """.split()
)
_WORD = re.compile(r"[^\s.,;:!?()\"“”–—…]+(?:[.,:][^\s.,;:!?()\"“”–—…]+)*")
_YEAR = re.compile(r"[12]\d{3}")


class _Word(NamedTuple):
    key: str
    start: int
    end: int


class Statement(NamedTuple):
    """A sentence without its negation.

    Attributes:
        words: Its words, in lower case unless they are acronyms, and predicates by their pair.
        sign: 1, or -1 if it is negated.
        start: The start of the words that negate it, with the word before and after them.
        end: The end of these words.
        at: The index of its main verb, or of the noun after "no". -1 if no word of it shows it.
        auxiliary: The auxiliary that is negated, "no" or an empty string.

    """

    words: tuple[_Word, ...]
    sign: int
    start: int
    end: int
    at: int
    auxiliary: str


class Opposite(NamedTuple):
    """The spans of the words that make a claim the opposite of a sentence of the evidence."""

    claim_start: int
    claim_end: int
    evidence_start: int
    evidence_end: int


def find_opposite(claim: str, sentences: Iterable[str]) -> tuple[int, Opposite] | None:
    """Return the first sentence that a claim plainly negates, by its index, and the words.

    None if no sentence is one, if one says the same, or if the claim asks a question.
    """
    ours = read_statement(claim)
    if claim.rstrip().endswith("?") or not FEWEST_WORDS <= len(ours.words) <= MOST_WORDS:
        return None
    found = None
    for index, sentence in enumerate(sentences):
        theirs = read_statement(sentence)
        if sentence.rstrip().endswith("?") or not _have_same_words(ours, theirs):
            continue
        if ours.sign == theirs.sign:
            return None
        at = max(ours.at, theirs.at)
        # "The firm does not." has no verb that the other sentence could affirm.
        has_verb = at < min(len(ours.words), len(theirs.words))
        denials = [one for one in (ours, theirs) if one.at >= 0]
        if found is None and has_verb and all(map(_is_denied, denials)):
            found = index, Opposite(*_said_by(ours, at), *_said_by(theirs, at))
    return found


@lru_cache(maxsize=4096)
def read_statement(text: str) -> Statement:
    """Return a sentence without the negation of its first auxiliary, with offsets into it."""
    words = _words(text)
    keys = [word.key for word in words]
    sign, at, auxiliary, start, end = 1, -1, "", -1, -1
    for index in range(len(keys)):
        length = _negation_length(keys, index)
        if not length:
            continue
        is_determiner = keys[index] == "no" and length == 1
        auxiliaries = _HAVE if is_determiner else _NEGATED
        first = index - 1 if index and keys[index - 1] in auxiliaries else index
        if first == index and not _negates_alone(text, words, index, length):
            continue
        auxiliary = keys[first] if first < index else "no" if is_determiner else ""
        after = words[min(index + length, len(words) - 1)]
        sign, start, end = -1, words[first].start, after.end
        # "Did" goes with its negation; "is" stays, and the statement is "is safe".
        removed_from = first if auxiliary in _DO else index
        del words[removed_from : index + length]
        at = first
        break
    keys = [word.key for word in words]
    predicate = _predicate_at(keys)
    if predicate >= 0 and at in (-1, predicate - 1, predicate - 2):
        pair, own_sign = PREDICATES[keys[predicate]]
        word = words[predicate]
        words[predicate] = _Word(pair, word.start, word.end)
        if at < 0:
            at = predicate - (2 if keys[predicate - 1] == "be" else 1)
            auxiliary, start, end = keys[at], words[at].start, word.end
        sign *= own_sign
    return Statement(tuple(words), sign, start, end, at, auxiliary)


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    for match in _WORD.finditer(text):
        word, span = match.group().replace("’", "'"), match.span()
        keeps_case = sum(map(str.isupper, word)) > 1 or (word == "May" and words)
        key = word if keeps_case else word.lower()
        follows_negation = bool(words) and words[-1].key in ("not", "never")
        if not words and key in ("no", "yes") and text[span[1] : span[1] + 1] == ",":
            continue
        if key in _FILLERS and not follows_negation:
            continue
        if key in _CONTRACTED or key.endswith("n't"):
            words += [_Word(_CONTRACTED.get(key, key[:-3]), *span), _Word("not", *span)]
        else:
            words.append(_Word(key, *span))
    return words


def _negation_length(keys: Sequence[str], index: int) -> int:
    """Return the number of words of the negation at an index, or 0."""
    if keys[index] in ("not", "never"):
        return 1
    if keys[index] != "no":
        return 0
    return 2 if keys[index + 1 : index + 2] == ["longer"] else 1


def _negates_alone(text: str, words: Sequence[_Word], index: int, length: int) -> bool:
    """Return whether a negation without an auxiliary before it denies the sentence.

    "Never" and "no longer" do before an imperative and a verb in -s; other forms may be participles
    ("children never vaccinated"). "No" does at the beginning and after "there is".
    """
    if index + length >= len(words) or words[index].key == "not":
        return False
    following = words[index + length]
    if words[index].key == "no" and length == 1:
        return (
            following.key not in _AFTER_NO
            and not text[words[index].end : following.start].strip()
            and (index == 0 or _is_existential([word.key for word in words[:index]]))
        )
    is_verb_in_s = following.key.endswith("s") and not following.key.endswith("ss")
    return is_verb_in_s if index else words[index].key == "never"


def _is_existential(keys: Sequence[str]) -> bool:
    """Return whether a sentence begins with "there is" and has nothing else."""
    return len(keys) == 2 and keys[0] == "there" and keys[1] in _BE


def _predicate_at(keys: Sequence[str]) -> int:
    """Return the index of the first predicate with an opposite, or -1.

    "There are safe ways" and "there are unsafe ways" can both be true, and so can statements with
    "can be".
    """
    if keys[:1] == ["there"]:
        return -1
    for index in range(1, len(keys)):
        if keys[index] in PREDICATES and (
            keys[index - 1] in _BE
            or (keys[index - 1] == "be" and index > 1 and keys[index - 2] in _OBLIGATIONS)
        ):
            return index
    return -1


def _have_same_words(ours: Statement, theirs: Statement) -> bool:
    claim, evidence = ([word.key for word in one.words] for one in (ours, theirs))
    if claim == evidence:
        # "They do not pay" and "they did not pay" have the same words without the auxiliary.
        tenses = {one.auxiliary for one in (ours, theirs) if one.auxiliary in _DO}
        return len(tenses) < 2 and (tenses != {"did"} or _have_same_tense(ours, theirs))
    for negated, plain in ((ours, theirs), (theirs, ours)):
        negated_keys, plain_keys = ([word.key for word in one.words] for one in (negated, plain))
        at = negated.at
        if negated.auxiliary == "no" or negated.auxiliary in _HAVE:
            # "There is no risk" denies "there is a risk".
            article = at if negated.auxiliary == "no" else at + 1
            if plain_keys[article : article + 1] in (["a"], ["an"]):
                return plain_keys[:article] + plain_keys[article + 1 :] == negated_keys
        elif (
            negated.auxiliary in _DO
            and plain.auxiliary not in _DO
            and at < min(len(plain_keys), len(negated_keys))
            and plain_keys[:at] == negated_keys[:at]
            and plain_keys[at + 1 :] == negated_keys[at + 1 :]
        ):
            return _inflects(negated_keys[at], plain_keys[at], negated.auxiliary)
    return False


def _have_same_tense(ours: Statement, theirs: Statement) -> bool:
    """Return whether two statements with the same words are both in the past."""
    return ours.auxiliary == theirs.auxiliary or any(
        one.words[one.at].key in _PAST_FORMS
        for one in (ours, theirs)
        if one.auxiliary == "did" and one.at < len(one.words)
    )


def _inflects(base: str, form: str, auxiliary: str) -> bool:
    """Return whether a verb form replaces an auxiliary and the infinitive: "paid", "did pay"."""
    if auxiliary == "do":
        return form == base
    if auxiliary == "does":
        return form in (f"{base}s", f"{base}es", f"{base[:-1]}ies") or (base, form) == (
            "have",
            "has",
        )
    regular = (f"{base}ed", f"{base}d", f"{base[:-1]}ied", f"{base}{base[-1]}ed")
    irregular = IRREGULAR.get(form) == base and not form.endswith(("ing", "s"))
    return form in regular or irregular or (base, form) in (("have", "had"), ("get", "got"))


def _said_by(statement: Statement, at: int) -> tuple[int, int]:
    """Return the span of the words that affirm or deny a statement with its main verb at `at`."""
    if statement.at >= 0:
        return statement.start, statement.end
    first = statement.words[at]
    last = statement.words[min(at + 1, len(statement.words) - 1)]
    return first.start, last.end if first.key in _FINITE | {"a", "an"} else first.end


def _is_denied(statement: Statement) -> bool:
    """Return whether a statement and its negation exclude each other.

    The rules are strict, because there is no grammar: a doubt about the clause of the negation, or
    about who or how many it concerns, leaves the statement open.
    """
    keys = [word.key for word in statement.words]
    if not _PARTIAL.isdisjoint(keys) or _counts_something(keys):
        return False
    if statement.auxiliary == "no":
        return True
    subject, rest = keys[: statement.at], keys[statement.at + 1 :]
    if not (_SUBORDINATORS | _REPORTING | _FINITE).isdisjoint(subject):
        return False
    if not _SUBJECTS.isdisjoint(subject[1:]):  # "the people we did not invite came"
        return False
    if any(
        (word in _DETERMINERS and before not in _BEFORE_DETERMINERS)
        or (_is_plural(before) and word not in _BEFORE_DETERMINERS)
        for before, word in pairwise(subject)
    ):  # "items the firm did not pack were lost", "the books children do not read were lost"
        return False
    while rest and rest[0] in _FINITE | {"be", "been", "being"}:
        rest = rest[1:]
    for word in rest:
        if word in _SUBORDINATORS:
            break
        if word in _FINITE:  # the main verb may be this one
            return False
    return _is_about_all(subject, statement.auxiliary, rest)


def _is_about_all(subject: Sequence[str], auxiliary: str, rest: Sequence[str]) -> bool:
    """Return whether a subject is the same in both sentences.

    Pronouns can refer to different things, "a patient did" and "a patient did not" concern two, and
    "patients did" and "patients did not" two groups.
    """
    if not subject:
        return True
    if subject[0] in _PRONOUNS:
        return subject == ["it"] and bool({"to", "that"} & set(rest[:2]))
    if subject[0] in ("a", "an"):
        return auxiliary not in _EPISODIC | {"can"}
    if subject[0] in _DETERMINERS or auxiliary not in _EPISODIC:
        return True
    phrase_end = next(
        (i for i, word in enumerate(subject) if word in _BEFORE_DETERMINERS), len(subject)
    )
    return phrase_end == 0 or not _is_plural(subject[phrase_end - 1])


def _is_plural(word: str) -> bool:
    """Return whether a word may be a plural or stand for several things."""
    return word in _PLURALS or (
        word.endswith("s")
        and not word.endswith(("ss", "us", "is", "'s"))
        and word not in _DETERMINERS
    )


def _counts_something(keys: Sequence[str]) -> bool:
    """Return whether a sentence has a number besides years, dates and percentages.

    "The train stops at 3 stations" and "the train does not stop at 3 stations" can both be true,
    and so can two statements about 12% of the patients.
    """
    for index, key in enumerate(keys):
        if not any(map(str.isdigit, key)) and key not in NUMBER_WORDS:
            continue
        before, after = keys[max(0, index - 1) : index], keys[index + 1 : index + 2]
        if key.endswith("%") and after != ["of"]:
            continue
        beside = {*before, *after}
        if not _YEAR.fullmatch(key) and _MONTHS.isdisjoint(beside):
            return True
    return False
