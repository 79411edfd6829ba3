"""The clauses of a sentence, cut where the subject changes, and the predicate of each.

"Judge Paulsen gave the leading opinion; Judge Imhof dissented" has two clauses, each with its actor. A clause without a
subject of its own has that of the one before: "ceded the port and kept the mines". In the passive the actor follows
"by".
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.offline.text.tokens import IRREGULAR, Token

_OPENERS = frozenset(
    "but while whereas although though because since unless if when before after which who whom whose where".split()
)
_PRONOUNS = frozenset("it he she they this that these those which who whom".split())
_VERBS = frozenset(
    """
    accept act add admit agree allow appear apply argue ask become begin belong bring build buy call carry cause change
    charge choose claim close collect come complain complete confirm connect consider consist contain continue control
    cost count cover create decide deliver demand deny depend describe design destroy develop die differ disagree drive
    earn employ enable end enter exceed exist expect expire explain export extend face fail fall favour feed fill find
    finish fit follow forbid form gain get give go govern grow handle happen harm have head help hold host import
    improve include increase inform inhabit insure keep know lack last launch lead leave lie like limit live lose lower
    maintain make manage mean measure meet melt move need occupy occur offer open operate oppose order own pay perform
    permit point prefer prevent produce prohibit propose protect provide publish put raise reach receive recommend
    record reduce refuse reject release remain remove rent replace report represent require resemble restrict return
    rise rule run say sell send serve show sit stand start stay stop store suffer suggest supply support survive take
    tell test think thrive trade train treat try turn use vary want warn win work write yield
    """.split()
)
_AUXILIARIES = frozenset(
    "is are was were be been has have had will would can could may might shall should must does do did".split()
)
_NO_SUBJECT = frozenset("in on at by from to of with for under since until during within into".split())
_LONGEST_ACTOR = 5
_INSERTED = 5
_SOON = 6
"""Words between an actor and its verb, at most: "the tunnel at the upper end of the valley is"."""
_MARKS = frozenset(",;:()–—")
_SUBJECTS = frozenset("the a an this that these those its his her their our it he she they we i in on at by".split())
_SAYING = frozenset("says said according wrote writes argued argues told reports reported".split())


class Clause(NamedTuple):
    """Indices of the words of one clause and of those that name its actor.

    `own`: it names the actor itself. `acts`: a verb follows the actor, as far as one can tell, or "by" leads to it.
    """

    words: tuple[int, ...]
    actor: tuple[int, ...]
    own: bool
    acts: bool


def split_clauses(text: str, words: Sequence[Token]) -> tuple[Clause, ...]:
    """Return the clauses of a sentence, in order."""
    found: list[Clause] = []
    for piece in _pieces(text, words):
        actor = _actor(text, words, piece) if words[piece[0]].text.lower() != "nor" else ()
        before = found[-1].actor if found and found[-1].acts else ()
        acts = _acts(words, piece, actor) if actor else bool(before)
        found.append(Clause(tuple(piece), actor or before, bool(actor), acts))
    return tuple(found)


def _acts(words: Sequence[Token], piece: Sequence[int], actor: Sequence[int]) -> bool:
    before, after = actor[0] - 1, actor[-1] + 1
    if any(is_verb(words[i]) for i in range(after, min(after + _SOON, piece[-1] + 1))):
        return True
    return any(words[i].text.lower() == "by" for i in range(max(piece[0], before - 3), before + 1))


def _pieces(text: str, words: Sequence[Token]) -> list[list[int]]:
    pieces: list[list[int]] = []
    for i in range(len(words)):
        if not pieces or _opens(text, words, i):
            if len(pieces) > 1 and is_verb(words[i]) and _inserted(text, words, pieces[-1]):
                inserted = pieces.pop()
                pieces[-1].extend(inserted)
            else:
                pieces.append([])
        pieces[-1].append(i)
    return [piece for piece in pieces if any(words[i].weight > 0 for i in piece)]


def _inserted(text: str, words: Sequence[Token], piece: Sequence[int]) -> bool:
    # "The tunnel at Skarnes, 2,870 m long, is": a few words between commas without a verb.
    before = text[words[piece[0] - 1].end : words[piece[0]].start]
    return len(piece) <= _INSERTED and "," in before and not any(is_verb(words[i]) for i in piece)


def _opens(text: str, words: Sequence[Token], i: int) -> bool:
    gap, lower = text[words[i - 1].end : words[i].start], words[i].text.lower()
    if gap != " " and (any(mark in gap for mark in ";–—\n") or ": " in gap or _initial(gap, words[i - 1])):
        return True
    if gap != " " and "," in gap and "(" not in gap:
        return (
            lower in _OPENERS or (lower in ("and", "or") and _clause_follows(words, i)) or not _apposed(text, words, i)
        )
    if lower in _OPENERS:
        return True
    return lower == "and" and _clause_follows(words, i)


def _initial(gap: str, before: Token) -> bool:
    # "on ward C. Ward B": taken for an initial where sentences were split
    return ". " in gap and len(before.text) == 1


def _clause_follows(words: Sequence[Token], i: int) -> bool:
    # "and the second ...", "and kept ...", "and Deborah spoke": a subject or a verb of its own.
    if i + 1 >= len(words):
        return False
    after, before = words[i + 1], words[i - 1]
    return (
        after.text.lower() in _SUBJECTS
        or is_verb(after)
        or (after.text[0].isupper() and not before.text[0].isupper())
        or (after.text[0].isdigit() and not before.text[0].isdigit())
    )


def is_verb(word: Token) -> bool:
    """Return whether the word is an auxiliary, looks like a verb in the past, or is a common one in the present
    ("holds").
    """
    return word.text.islower() and _is_verb(word.text)


@lru_cache(maxsize=8192)
def _is_verb(lower: str) -> bool:
    if lower in _AUXILIARIES or lower in IRREGULAR or (lower.endswith("ed") and len(lower) > 4):
        return True
    return (lower.endswith("s") and (lower[:-1] in _VERBS or lower[:-2] in _VERBS)) or (
        lower.endswith("ies") and lower[:-3] + "y" in _VERBS
    )


def _actor(text: str, words: Sequence[Token], piece: Sequence[int]) -> tuple[int, ...]:
    for at, i in enumerate(piece):
        if words[i].text.lower() == "by":
            agent = _named(words, piece[at + 1 :]) or _agent(words, piece, at)
            if agent:
                return agent
    start = 0
    while start < len(piece) and words[piece[start]].weight == 0.0:
        lower = words[piece[start]].text.lower()
        if lower in ("one", "ones", "that", "those") and _placed(words, piece[start + 1 :]):
            return tuple(_placed(words, piece[start + 1 :]))
        if lower in _PRONOUNS or lower in _AUXILIARIES:
            return ()
        if lower in _NO_SUBJECT:
            return _behind_lead(text, words, piece[start:])
        start += 1
    return _phrase(words, piece[start:])


def _agent(words: Sequence[Token], piece: Sequence[int], at: int) -> tuple[int, ...]:
    # "is elected by the assembly"; "the treasurer by the board"
    led = at + 2 < len(piece) and words[piece[at + 1]].text.lower() in ("the", "a", "an", "its", "their")
    return _phrase(words, piece[at + 2 :]) if led else ()


def _behind_lead(text: str, words: Sequence[Token], piece: Sequence[int]) -> tuple[int, ...]:
    # "In its first year 412,000 people came", "Under clause 7.3, rails must": the actor follows the mark, if any.
    for at in range(1, min(len(piece), 9)):
        i = piece[at]
        if "," in text[words[i - 1].end : words[i].start]:
            rest = piece[at:]
            if words[rest[0]].text.lower() in _NO_SUBJECT or words[rest[0]].text.lower() in _PRONOUNS:
                return ()
            while rest and words[rest[0]].weight == 0.0:
                rest = rest[1:]
            return _phrase(words, rest)
    return ()


def _phrase(words: Sequence[Token], piece: Sequence[int]) -> tuple[int, ...]:
    """Return the words up to the first verb or preposition: at most a few, and only if something follows."""
    if not piece or (is_verb(words[piece[0]]) and not _described(words, piece)):
        return ()
    phrase: list[int] = []
    for i in piece[:_LONGEST_ACTOR]:
        named = bool(phrase) and words[phrase[-1]].text[0].isupper() and words[phrase[-1]].start > 0
        letter = bool(phrase) and words[i].text == "A"  # "class A rails"
        if named and words[i].text.islower() and i + 1 < len(words) and words[i + 1].text[0].isupper():
            phrase.append(i)  # "Ji-woo Han", "Piet van Roon"
            continue
        if (
            (words[i].weight == 0.0 and not letter)
            or (is_verb(words[i]) and phrase)
            or (named and words[i].text.islower())
        ):
            break
        phrase.append(i)
    return tuple(phrase + _placed(words, piece[len(phrase) :])) if phrase else ()


def _described(words: Sequence[Token], piece: Sequence[int]) -> bool:
    # "the written paper": a participle between article and noun
    led = piece[0] > 0 and words[piece[0] - 1].text.lower() in ("the", "a", "an")
    return led and len(piece) > 1 and words[piece[1]].weight > 0


def _placed(words: Sequence[Token], rest: Sequence[int]) -> list[int]:
    # "The tunnel at Moen", "the city of Hollum": the name tells which.
    if len(rest) < 2 or words[rest[0]].text.lower() not in ("of", "at", "in", "for"):
        return []
    name: list[int] = []
    for i in rest[1:5]:
        if not words[i].text[0].isupper():
            break
        name.append(i)
    return name


def _named(words: Sequence[Token], piece: Sequence[int]) -> tuple[int, ...]:
    """Return the name that follows within a few words: "by the farmer Nils Aune"."""
    for at, i in enumerate(piece[:4]):
        if words[i].text[0].isupper() and words[i].weight > 0:
            name = [i]
            for k in piece[at + 1 :]:
                if k != name[-1] + 1 or not words[k].text[0].isupper():
                    break
                name.append(k)
            return tuple(name)
    return ()


def _apposed(text: str, words: Sequence[Token], i: int) -> bool:
    listed = words[i].text[0].isupper() and words[i - 1].text[0].isupper()
    return listed or words[i].text.lower() in _SAYING or _set_off(text, words, i, 1) or _set_off(text, words, i - 1, -1)


def _set_off(text: str, words: Sequence[Token], i: int, step: int) -> bool:
    # Up to four capitalised words that end at another comma.
    for k in range(i, i + 4 * step, step):
        if not 0 <= k < len(words) or not words[k].text[0].isupper():
            return False
        end = text[words[k].end : words[k].end + 1] if step > 0 else text[max(0, words[k].start - 2) : words[k].start]
        if end.strip() == ",":
            return True
    return False
