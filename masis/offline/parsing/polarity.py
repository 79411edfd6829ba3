"""Negation, direction and strength: what turns a sentence into its opposite while its words stay the same."""

import re
from collections.abc import Sequence
from functools import lru_cache

from masis.offline.text.number_words import NUMBER_WORDS
from masis.offline.text.tokens import Token

_NEGATIONS = frozenset(
    """
    not no never none neither nor nobody nothing nowhere cannot without unable fail fails failed failing lack
    lacks lacked lacking absence
    """
    """
    hardly barely refuse refuses refused refusing deny denies denied denying exempt exempted exempts barred bars bar
    ban bans banned prohibit prohibits prohibited forbid forbids forbidden forbade exclude excludes excluded
    contraindicated missing insoluble unaffected except
    """.split()
)
_DENYING_PHRASES = {
    "leave": ("out",), "leaves": ("out",), "leaving": ("out",), "decline": ("to",), "declines": ("to",),
    "declined": ("to",), "other": ("than",), "apart": ("from",),
    "rule": ("out",), "rules": ("out",), "ruled": ("out",), "ruling": ("out",), "drop": ("support",),
    "drops": ("support",), "dropped": ("support",), "free": ("of", "from"),
    "advise": ("against",), "advises": ("against",), "advised": ("against",),
}  # fmt: skip
"""Words that negate what follows only in front of another word."""
_COMPARED = ("only", "just", "merely", "more", "less", "fewer", "later", "earlier", "necessarily", "least")
_ASSERTING = {
    "not": _COMPARED,
    "no": ("doubt", *_COMPARED),
    "nothing": ("but",),
    "never": ("before",),
    "none": ("in",),
    "doesn't": _COMPARED[:3],
    "don't": _COMPARED[:3],
}
_NARROW = frozenset(
    """
        without lack lacks lacked lacking absence fail fails failed failing hardly barely refuse refuses refused
        refusing deny denies denied denying exempt exempted exempts barred bars bar ban bans banned prohibit prohibits
        prohibited forbid forbids forbidden forbade exclude excludes excluded contraindicated missing insoluble
        unaffected except rule rules ruled ruling drop drops dropped free
        advise advises advised stop stops stopped stopping cease ceases ceased avoid avoids avoided
    """.split()
)
_SCOPE_ENDS = frozenset("but although though however because since while whereas which who that unless and or".split())
_SCOPE_MARKS = frozenset(",;:.!?()")
_AUXILIARIES = frozenset(
    "is are was were be been has have had will would can could may might shall should do does did".split()
)
_SCOPE_WORDS = 4
_ENDING = frozenset("stop stops stopped stopping cease ceases ceased avoid avoids avoided".split())
"""Words that deny the activity they are followed by: "stops heating"."""
_LONGER = frozenset("longer yet more".split())
"""What belongs to the negation itself in "no longer", "not yet", "no more"."""
_UNIVERSAL = frozenset(
    """
    all every always entirely never none must only everyone everybody everything completely guarantee guarantees
    guaranteed invariably
    """
    """
        certainly definitely any universally without proven proves eliminates eliminate cures cure wholly solely
        exclusively
    """.split()
)
_TENTATIVE = re.compile(
    r"\?\s*$|\bwhether\b|\bhypothes[ie]|\b(?:un(?:known|clear|certain)|controversial|debated|presumed|assumed)\b"
    r"|\b(?:aim(?:s|ed)?|objectives?|purposes?|goals?)\b[^.]{0,60}\b(?:was|were|is|are|to|of)\b"
    r"|\b(?:limited|conflicting|scarce|sparse|insufficient|little|few|scant) (?:\w+ ){0,3}"
    r"(?:data|evidence|information|studies|reports) (?:\w+ )?(?:exists?|available|concerning|regarding|on)\b"
    r"|\blittle (?:\w+ )?(?:is|was) known\b|\bpoorly (?:understood|known|defined)\b|\brais(?:es?|ed|ing) the question\b"
    r"|\bwe (?:\w+ ){0,2}(?:studied|compared|evaluated|investigate\w*|assessed|examined|analy[sz]ed|reviewed|collected"
    r"|performed|conducted|measured|tested)\b|\bdata on\b[^.]{0,160}\bcollected\b"
    r"|(?:^|\b(?:sought|attempted|designed|conducted|undertaken|performed|wanted|order|us) )to (?:determine|investigate"
    r"|assess|evaluate|examine|test|identify|study|explore|compare|look|analy[sz]e|estimate|describe|establish"
    r"|characteri[sz]e|clarify|review|report|find|verify|validate|measure|present)\b",
    re.IGNORECASE,
)
"""What asks, supposes or states an aim, and so asserts nothing that could be contradicted."""


_ENDED = frozenset(
    """
    withdrawn withdrew ended ends end closed cancelled canceled abolished rejected reject rejects avoided avoid removed
    stopped ban discontinued expired expires lost lifted lift lifts overrode overturned repealed vetoed dropped failed
    failure stop unavailable unable impossible gone disappeared vanished
    """.split()
)


def ended(words: Sequence[Token], place: int, near: int) -> bool:
    """Return whether something near the word says that it is over, refused or undone: "the ban was lifted"."""
    beside = [*words[max(0, place - near) : place], *words[place + 1 : place + near + 1]]
    return any(word.text.lower() in _ENDED for word in beside)


@lru_cache(maxsize=1024)
def tentative(text: str) -> bool:
    """Return whether a passage asks, supposes or states a purpose rather than asserts."""
    return bool(_TENTATIVE.search(text))


def negation_cues(words: Sequence[Token]) -> list[int]:
    """Return the indices of the words that negate. "not only" asserts, so it doesn't count; "no longer" does."""
    cues = []
    for i, word in enumerate(words):
        lower = word.text.lower()
        following = words[i + 1].text.lower() if i + 1 < len(words) else ""
        if following in _DENYING_PHRASES.get(lower, ()) or (lower in _ENDING and following.endswith("ing")):
            cues.append(i)
        if lower not in _NEGATIONS and lower[-3:] not in ("n't", "n’t"):
            continue
        if (lower == "missing" and not _lacks(words, i)) or _until(words, i):
            continue
        second = words[i + 2].text if i + 2 < len(words) else "than"
        if lower == "no" and following in _COMPARED[3:5] and second.isalpha() and second != "than":
            cues.append(i)  # "no more frequent than"
        elif following not in _ASSERTING.get(lower, ()):
            cues.append(i)
    return cues


_PAST = frozenset("was were did had wasn't weren't didn't hadn't wasn’t weren’t didn’t hadn’t".split())


def _lacks(words: Sequence[Token], i: int) -> bool:
    # "is still missing" denies; "missing three meetings" doesn't.
    following = words[i + 1].text.lower() if i + 1 < len(words) else ""
    return following not in NUMBER_WORDS and following not in ("a", "the", "one")


def _until(words: Sequence[Token], i: int) -> bool:
    # "were not informed until April": they were informed.
    if words[i].text.lower() not in ("not", "never") and words[i].text.lower()[-3:] not in ("n't", "n’t"):
        return False
    past = {word.text.lower() for word in words[max(0, i - 1) : i + 1]} & _PAST
    return bool(past) and any(word.text.lower() == "until" for word in words[i + 1 : i + 6])


def negated(text: str, words: Sequence[Token], cues: Sequence[int]) -> dict[int, int]:
    """Return the words in the scope of a negation, each with the index of its cue, the negated head first: up to four
    content words to its right, none beyond a mark, a conjunction or a further auxiliary.
    """
    scope: dict[int, int] = {}
    for cue in cues:
        content, most = 0, 2 if words[cue].text.lower() in _NARROW else _SCOPE_WORDS
        subject = _of_subject(words, cue)
        for i in range(cue + 1, len(words)):
            lower = words[i].text.lower()
            if any(mark in _SCOPE_MARKS for mark in text[words[i - 1].end : words[i].start]):
                break
            if content and (lower in _SCOPE_ENDS or (lower in _AUXILIARIES and not subject)):
                break
            subject = subject and lower not in _AUXILIARIES
            if words[i].weight > 0 and not (i == cue + 1 and lower in _LONGER):
                scope[i] = cue
                content += 1
                if content == most:
                    break
    return scope


def _of_subject(words: Sequence[Token], cue: int) -> bool:
    # "No referendum was held", "not all copies were sold": the negation goes on to the verb.
    lower, following = words[cue].text.lower(), words[cue + 1].text.lower() if cue + 1 < len(words) else ""
    return cue <= 1 and (lower in ("no", "nobody") or following in ("all", "every", "everyone"))


def universal(words: Sequence[Token]) -> list[int]:
    """Return the indices of the words that leave no exception ("all", "always", "must")."""
    return [i for i, word in enumerate(words) if word.text.lower() in _UNIVERSAL]
