"""Looking for wordings in an abstract: patterns with a guard against their denial ("not blinded", "non-randomised")."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.schema.screening import Abstract, ItemState, Words

_DONE = (
    r"(?:possible|feasible|done|performed|used|applied|attempted|maintained|stated|reported|described|assessed"
    r"|evaluated|measured|recorded|available|undertaken|carried out|specified|included|made|concealed|conducted"
    r"|examined|appraised|monitored|considered|implemented|ensured|achieved|searched|employed|adopted|provided|given|kept)"
)
_ADJECTIVE = (
    r"(?:an?|any|the|concurrent|separate|formal|parallel|appropriate|matched|untreated|true|proper|adequate|independent"
    r"|external|contemporaneous|active|placebo|systematic|real|such|other|randomi[sz]ed|patient|participant|assessor) "
)
_METHOD = (
    r"(?:includ|us|employ|hav|had|incorporat|contain|featur|involv|compar|perform|conduct|undertak|report|appl|attempt)"
)
_DENIED = re.compile(
    r"(?:\b(?:not|never)(?: be| been| being| fully| formally| strictly| truly)?(?: an?| any)?"
    rf"|\b(?:no|without|neither|nor|lack(?:ed|s|ing)?(?: of)?|absence of|absent|non|quasi)(?: {_ADJECTIVE[:-1]}){{0,3}}"
    r"|(?:\b(?:could|can|did|do|does|was|were|is|had|have) ?(?:not|n.t|never))"
    rf" (?:{_METHOD}\w*)(?: (?:by|with|to|in|{_ADJECTIVE[:-1]})){{0,3}}"
    r"|\bnot (?:formed|assigned|allocated|chosen|selected|determined|made|decided) (?:by|through|using|via|at)"
    r"|\b(?:im|not )possible to|\bnot feasible to|\bunable to|\bfailed to)[- ]$|\b(?:un|non)$",
    re.I,
)
_NOBODY = re.compile(r"\b(?:no|none of the|neither) (?:[\w-]+ ){0,2}$", re.I)
_NOBODY_WAS = re.compile(
    r"\b(?:(?:no|neither)(?: [\w-]+){1,2}|(?:nobody|no one|none(?: of)?)(?: [\w-]+){0,5}"
    r"|neither [^.;,]{1,60} nor [^.;,]{1,60})"
    r"(?:, (?:including|even|not even) [^.;,]{1,60},)? (?:was|were|is|are) $",
    re.I,
)
"""The denial in the subject: "no patients were randomised". Counts only before a verb."""
_DENIED_AFTER = re.compile(
    r"[\w ]{0,20}?(?: (?:of|for|to) (?:\w+ ){1,3})? ?"
    rf"(?:(?:was|were|is|are) (?:(?:not|never) (?:\w+ly )?{_DONE}|impossible|infeasible|lacking|absent|unavailable)"
    rf"|(?:could not|cannot|did not) be {_DONE}|proved impossible|did not take place)\b",
    re.I,
)
_COMPARING = re.compile(r"compared|versus|vs|[a-z]+ (?:[\w-]+ ){0,6}than", re.I)
"""A comparison, which only "not compared with" denies: "no difference versus placebo" has a comparator."""
_NOT_COMPARED = re.compile(
    r"\b(?:not|never)(?: be| been| directly)? $|\b(?:records|entries|codes|charts|files) (?:was|were) $", re.I
)
_WITH_ITSELF = re.compile(
    r" ?(?:(?:the|their|its|our|data|those|values|from|in|paper|medical|hospital) ){0,3}(?:baseline|before|admission"
    r"|pre-?(?:treat\w*|operat\w*|interven\w*|test\w*|therapy|study|surg\w*|admission|implement\w*|exercise|dos\w+)"
    r"|year before|source|original|reference|published|expected|norms?|normative|normal (?:values?|range|limits?)"
    r"|records?|files?|registry|database|literature)\b"
    r"| ?[\d.,%]+(?: [\w%/]+)? (?:at|before|in) (?:baseline|treatment|inclusion|admission|the year before)\b",
    re.I,
)
"""What is compared is no other group: "compared with baseline", "8.1% versus 9.4% at baseline", "with the source"."""
_PLANNED = re.compile(
    r"\b(?:will|should|would|could|must|may|to) be (?:\w+ly )?$|\b(?:future|further|larger"
    r"|ongoing) (?:[\w-]+,? ){0,3}$"
    r"|\b(?:should|must|(?:need|ha|remain|ought)s?(?:ve)? to) be \w+"
    r" (?:by|in|with|through|against) (?:[\w-]+,? ){0,8}$",
    re.I,
)
"""What is planned, wished for or done elsewhere was not done here: "should be randomised", "future blinded"
" trials", "must be tested in a randomised, blinded trial"."""
_PLANNED_AFTER = re.compile(
    r"[\w ,-]{0,60}?\b(?:is|are|would be|will be) (?:\w+ )?"
    r"(?:needed|required|warranted|necessary|planned|awaited|desirable|called for|under ?way|lacking|scarce|few"
    r"|absent)\b|[\w ,-]{0,40}?\b(?:trials?|study|studies) (?:should|must|could|may|might|will|would)\b",
    re.I,
)
_OTHERS = re.compile(
    r"\b(?:earlier|previous|prior|past|recent|published|existing|other|several|most|few|many|large)"
    r" (?:[\w-]+,? (?:and )?){0,3}$",
    re.I,
)
_STUDIES = re.compile(r"[\w ,-]{0,40}?\b(?:trials|studies|reports)\b", re.I)
"""What other studies did, "earlier double-blind trials", was not done in this one."""
_VERB = re.compile(r"(?:was|were|are|be|is)\b", re.I)
_LOOK_BACK = 120
LONGEST_READ = 20_000
"""Characters of a text or title that are read: a record with more is no abstract."""
_TRIES = 8


def read_word_lists(path: Path) -> dict[str, list[str]]:
    """Return the lists of a file: ``name: words``, where a line that begins with a blank goes on with the list."""
    lists: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", " ")):
            name, _, line = line.partition(":")
        if line and not line.startswith("#"):
            lists.setdefault(name, []).extend(line.split())
    return lists


def read_tables(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def joined_forms(forms: Iterable[str], names: Mapping[str, str] | None = None) -> str:
    """Return forms as one pattern of which any may match; a line break in a form is dropped with the blanks behind it.

    ``%NAME%`` stands for the form of that name in ``names``, which may itself name those above it.
    """
    pattern = "|".join(re.sub(r"\n\s*", "", form) for form in forms)
    for name, form in reversed(list((names or {}).items())):
        pattern = pattern.replace(f"%{name}%", form)
    return pattern


MentionState = Literal["stated", "denied", "planned"]


class Mention(NamedTuple):
    """An occurrence of a wording, and what is said there."""

    start: int
    end: int
    state: MentionState


class Wording:
    """A pattern, searched without regard to case, whose denied occurrences don't count.

    Of a ``result`` only the reporting can be denied: "no adverse events" reports them, "were not recorded" doesn't.

    Every repetition in a pattern is bounded: a search takes time linear in the text. Where lowering a text keeps its
    length, as it nearly always does, the lowered text is searched, which is twice as fast as ignoring case.
    """

    def __init__(self, pattern: str, *, result: bool = False) -> None:
        self._pattern = re.compile(pattern, re.I | re.A)
        self._lowered = re.compile(pattern.lower(), re.A)
        self._result = result

    def search(self, text: str) -> tuple[int, int] | None:
        """Return where it first occurs undenied; None where it doesn't."""
        return next(((each.start, each.end) for each in self.mentions(text) if each.state == "stated"), None)

    def mentions(self, text: str) -> Iterator[Mention]:
        """Yield where it occurs, and whether that is stated, denied or only planned."""
        lowered = text.lower()
        pattern, searched = (self._lowered, lowered) if len(lowered) == len(text) else (self._pattern, text)
        for tried, found in enumerate(pattern.finditer(searched, 0, LONGEST_READ)):
            yield Mention(*found.span(), _state(text, *found.span(), result=self._result))
            if tried >= _TRIES:
                return


def _state(text: str, start: int, end: int, *, result: bool = False) -> MentionState:
    """Return whether the words at these places are stated, only planned, or denied or said of nobody."""
    before, after = text[max(0, start - _LOOK_BACK) : start], text[end : end + _LOOK_BACK]
    if _COMPARING.match(text, start, end):
        return "denied" if _NOT_COMPARED.search(before) or _WITH_ITSELF.match(after) else "stated"
    if _DENIED_AFTER.match(after):
        return "denied"
    subject = _VERB.match(text, start) and _NOBODY.search(before)
    if not result and (_DENIED.search(before) or _NOBODY_WAS.search(before) or subject):
        return "denied"
    elsewhere = _OTHERS.search(before) and _STUDIES.match(after)
    return "planned" if elsewhere or _PLANNED.search(before) or _PLANNED_AFTER.match(after) else "stated"


def mentioned(
    wording: Wording, abstract: Abstract, *, title: bool = True, text: bool = True
) -> tuple[ItemState, tuple[Words, ...]]:
    """Return how an abstract speaks of something, and in which words: stated anywhere, else its first mention.

    The words of the text come before those of the title; either can be left out.
    """
    other: tuple[ItemState, tuple[Words, ...]] = ("not_stated", ())
    places: tuple[tuple[Literal["text", "title"], str, bool], ...] = (
        ("text", abstract.text, text),
        ("title", abstract.title, title),
    )
    for place, source, asked in places:
        for each in wording.mentions(source) if asked else ():
            words = Words(start=each.start, end=each.end, text=source[each.start : each.end], place=place)
            if each.state == "stated":
                return "stated", (words,)
            if other[0] == "not_stated":
                other = each.state, (words,)
    return other


def first(wording: Wording, abstract: Abstract, *, title: bool = True, text: bool = True) -> tuple[Words, ...]:
    """Return the first words of an abstract that state a wording; or none."""
    state, words = mentioned(wording, abstract, title=title, text=text)
    return words if state == "stated" else ()
