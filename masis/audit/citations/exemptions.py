"""Recognizes sentences that need no citation, and gives the reason in plain words.

A sentence that asserts something about the world and has no citation is uncited. One that asks,
announces, greets, labels, lists sources or says what is not known is exempt. If in doubt, a
sentence is uncited.
"""

from __future__ import annotations

import re

from masis.audit.citations.hedges import hedges
from masis.audit.languages import QUESTION_MARKS
from masis.audit.sentences import BlockKind
from masis.audit.stops import SENTENCE_ENDS

# One or more bullets, numbers, quote marks and headings of Markdown: "> - (a) ## text".
_BULLET = re.compile(
    r"\A(?:[-*+•‣▪◦●○·–]\s+|[(]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})[.)]\s+|>\s*|#{1,6}\s+)+"
)
# "**", "_", "`", "~~".
_EMPHASIS = re.compile(r"[*_`~]+")
# A word with inner apostrophes, hyphens and full stops: "it's", "e.g", "well-known".
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")

# "Sources: [1], [2]", or "References used" alone on its line.
_SOURCE_LINE = re.compile(
    r"(?:sources?|references?|citations?|bibliography|works cited|quellen?|quellenangaben|"
    r"literatur|références|fuentes|bibliografía)(?: (?:used|cited|consulted))?\s*(?::|$)"
)
# A heading above a list of sources: "Works cited", "Further reading:".
_SOURCE_HEADING = re.compile(
    r"(?:sources?|references?|citations?|bibliography|works cited|footnotes|notes|quellen|"
    r"literatur|références|fuentes|further reading)(?: (?:used|cited|consulted))?\s*:?\s*$"
)
# "Sure!", "Great question", "I hope this helps": politeness of chat models.
_GREETING = re.compile(
    r"(?:hello|hi|hey|dear \w+|thanks|thank you|you['’]re welcome|welcome|sure|certainly|of course|"
    r"absolutely|okay|ok|great question|good question|great|hope (?:this|that)|i hope|glad to|"
    r"happy to|best regards|kind regards|hallo|danke|gerne|bonjour|merci|hola|gracias)\b"
)
# Sentences about the answer itself: "Let me know if ...", "As an AI", "Here is a summary", "Note
# that this list ...".
_META = re.compile(
    r"(?:i hope (?:this|that|it)|let me know|feel free|"
    r"please (?:let me|feel free|note that (?:this|these|i)|provide|clarify)|"
    r"if you (?:have|need|want|would like) (?:\w+ ){0,3}(?:question|information|help|detail|clarif|"
    r"more)|as an ai\b|i(?:['’]m| am) (?:an ai|a language model|glad|happy|sorry|afraid)|"
    r"i (?:have )?(?:searched|looked|found some|will|can|would|['’]ll|need)\b|i['’]ll\b|"
    r"(?:below|here|following|the following) (?:is|are)\b|here['’]s\b|let['’]s\b|"
    r"these are (?:just |only )?(?:some|a few) (?:of the )?(?:\w+ ){0,3}(?:points|examples|ways|"
    r"options|tips|suggestions|ideas)\b|"
    r"this (?:is|was) (?:only |just )?(?:a (?:brief |short |simplified |general )*(?:summary|"
    r"overview|answer|list|outline)|based on)|"
    r"(?:some |more |further |additional )?(?:information|details?) (?:\w+ ){0,8}(?:can be found|"
    r"(?:is|are) (?:provided|given|available|found|listed)) (?:in|below|above)|"
    r"(?:however,? |but )?(?:it is (?:also )?important to |please )?note that (?:this|these|"
    r"the) (?:\w+ )?(?:suggestions?|recommendations?|summary|answer|response|list|algorithm|"
    r"overview|information|advice|guide(?:lines)?|examples?)\b|"
    r"i['’]?d (?:be happy|recommend asking)|to (?:answer|summari[sz]e)(?: \w+){0,4}[:,]?$|"
    r"in summary[:,]?$|in conclusion[:,]?$)"
)
# Nouns that announce a list: "ways", "key points", "reasons".
_LIST_NOUN = (
    r"(?:ways?|reasons?|methods?|factors?|steps?|strateg(?:y|ies)|options?|types?|kinds?|points?|"
    r"examples?|aspects?|things|approaches|tips|benefits|advantages|disadvantages|challenges|"
    r"causes?|effects?|differences|similarities|features|key \w+|considerations|techniques|"
    r"measures|arguments|results|findings|suggestions|recommendations|possibilities|theories|"
    r"criteria|components|elements|stages|phases)"
)
# "several", "a number of", "three" before such a noun.
_SEVERAL = (
    r"(?:several|some|a few|a number of|many|various|different|multiple|numerous|a variety of|two|"
    r"three|four|five|six)"
)
# "There are several reasons", "Here are three options": the list that follows has the content.
_ANNOUNCING = re.compile(
    r"(?:(?:however|overall|additionally|in addition|also|in general|"
    r"generally),? )?(?:there (?:are|is|were|could be|may be)|here are|consider|"
    rf"we can (?:list|name)) (?:also )?{_SEVERAL} (?:\w+ ){{0,3}}{_LIST_NOUN}\b"
)
# "On the other hand", "Moving on to costs", "As noted above".
_TRANSITION = re.compile(
    r"(?:(?:first|second|third)(?:ly)?|finally|next|in other words|that (?:being )?said|"
    r"with that in mind|to begin with|on the (?:one|other) hand|(?:but )?(?:it|that) depends|"
    r"this raises (?:a|the|another) (?:\w+ )?question|as follows|"
    r"(?:moving on|turning|now)(?: to(?: \w+){1,4})?|let us (?:\w+ ){0,4}\w+|"
    r"as (?:noted|mentioned|discussed|stated|described) (?:above|earlier|before|below))\W*"
)
# "You should always consult a doctor", "Please seek professional advice".
_ADVICE = re.compile(
    r"(?:please |always |so |therefore,? |you should (?:always )?|you may want to |"
    r"we recommend (?:that you )?|i recommend (?:that you )?|"
    r"(?:it is|it['’]s) (?:\w+ )?(?:important|best|advisable|recommended|essential|crucial|wise|"
    r"a good idea)(?: to)? |if (?:in doubt|unsure),? |"
    r"for \w+ advice,? )?(?:to )?(?:always )?(?:consult|see|speak (?:to|with)|talk (?:to|with)|"
    r"contact|ask|seek|check with)\b(?:\W+\w+){0,8}\W+(?:doctors?|physicians?|professionals?|"
    r"lawyers?|attorneys?|pharmacists?|experts?|advis[oe]rs?|providers?|specialists?|counsel|"
    r"veterinarian|help|advice|accountant)\b"
)
# A short text in bold: "**Background:**".
_LABEL = re.compile(r"\s*(?:\*\*|__)[^*_]{1,80}(?:\*\*|__):?\s*")
# "5 %", "1998", "$5": an announcement with a figure asserts the figure.
_FIGURE = re.compile(r"\d ?%|\b(?:1[5-9]|20)\d\d\b|[$€£]\d")
_ONE_WORD_ANSWERS = frozenset(
    {"yes", "no", "maybe", "true", "false", "ja", "nein", "oui", "non", "sí", "si"}
)
# The Greek question mark looks like a semicolon, so it counts only after a Greek letter.
_GREEK_QUESTION = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff];\Z")
# "Colour: red". A numbered label is that of a title instead: "Step 2: Preparation", "Option B:
# leave it".
_FACT = re.compile(
    r"(?P<label>(?:[^\W\d_][^:：=\n]{0,58})?(?:[^\W\d_]{2}|[^\W\d_]\)))"
    r"(?:\s?[:：=]\s?|\s[–—]\s)(?P<value>\s*+[^\s:：])"
)
# A bold label with a value: "**Colour:** red", "__Colour__: red".
_BOLD_LABEL = re.compile(r"\s*(?:\*\*|__)[^*_]{1,60}(?::(?:\*\*|__)|(?:\*\*|__):)\s*+\S")
# The label of a numbered title: "Part IV: ...".
_ROMAN_NUMBER = re.compile(r"\b[IVX]+\Z")
_LABEL_WORDS = 6

_FIXED_KINDS: dict[BlockKind, str] = {
    "code": "a code block",
    "heading": "a heading",
    "rule": "a rule between parts",
    "note": "a source list entry",
}


def without_list_marker_and_emphasis(sentence: str) -> str:
    """Return the sentence without its bullet and emphasis."""
    text = (
        _BULLET.sub("", sentence)
        if sentence[:1] in "-*+•‣▪◦●○·–>#(" or sentence[1:4].find(")") >= 0 or "." in sentence[:4]
        else sentence
    )
    return (
        _EMPHASIS.sub("", text).strip()
        if ("*" in text or "_" in text or "`" in text)
        else text.strip()
    )


def source_list_opens(sentence: str, kind: BlockKind) -> str | None:
    """Return how a list of sources begins with this sentence, or None if it doesn't.

    The result is ``line`` if the sentence is the list ("Sources: [1], [2]") and ``heading`` if the
    list follows ("References").
    """
    folded = without_list_marker_and_emphasis(sentence[:200]).casefold()
    if kind in ("heading", "prose", "item") and _SOURCE_HEADING.match(folded):
        return "heading"
    return "line" if _SOURCE_LINE.match(folded) else None


def is_labelled_fact(sentence: str) -> bool:
    """Return whether the sentence is a label and a value, as in ``**Colour:** red``.

    A title with a label, such as ``Part IV: The war``, isn't a labeled fact.
    """
    fact = _FACT.match(without_list_marker_and_emphasis(sentence[:200]))
    if fact is None:
        return False
    label = fact["label"]
    return len(label.split()) <= _LABEL_WORDS and not _ROMAN_NUMBER.search(label)


def exemption_reason(
    sentence: str,
    kind: BlockKind,
    *,
    alone: bool,
    list_follows: bool,
    more_follows: bool,
    among_facts: bool,
) -> str | None:
    """Return the reason why an uncited sentence needs no citation, or None if it needs one.

    Args:
        sentence: Its text.
        kind: The kind of its block.
        alone: Whether it is the only sentence of its block.
        list_follows: Whether the next block is a list, a table or code.
        more_follows: Whether it isn't the answer's last sentence.
        among_facts: Whether it and a sentence next to it are labelled facts.

    """
    if kind in _FIXED_KINDS:
        return _FIXED_KINDS[kind]
    text = without_list_marker_and_emphasis(sentence)
    word_count = len(_WORD.findall(text[:2000]))
    if word_count == 0 or (word_count == 1 and text.strip(" .)(").isdecimal()):
        return "no words"
    folded = text.casefold().strip("\"'“”‘’ ")
    last_character = text.rstrip("\"'”’)»* ")[-1:]
    if last_character and (last_character in QUESTION_MARKS or _GREEK_QUESTION.search(text)):
        return "a question"
    if reason := _filler_reason(folded, word_count, more_follows):
        return reason
    if (last_character == ":" and more_follows and not _FIGURE.search(folded)) or (
        list_follows and folded.endswith(("following", "as follows", "include", "are"))
    ):
        return "announces what follows"
    if (
        _ANNOUNCING.match(folded)
        and (list_follows or word_count <= 14)
        and not any(map(str.isdecimal, folded))
    ):
        return "announces what follows"
    if more_follows and word_count <= 6 and _LABEL.fullmatch(_BULLET.sub("", sentence)):
        return "a title"
    if (
        alone
        and more_follows
        and kind != "row"
        and last_character not in SENTENCE_ENDS
        and last_character != ":"
        and word_count <= 8
        and (kind != "item" or sentence.rstrip().endswith("**"))
        and not (among_facts or (_BOLD_LABEL.match(sentence) and is_labelled_fact(sentence)))
    ):
        return "a title"
    if len(text) <= 1500 and hedges(text):
        return "says what is not known"
    return None


def _filler_reason(folded: str, word_count: int, more_follows: bool) -> str | None:
    if word_count <= 2 and more_follows and folded.strip(".!, ") in _ONE_WORD_ANSWERS:
        return "a bare answer, which the next sentences carry"
    if word_count <= 8 and _GREETING.match(folded):
        return "a greeting"
    if word_count <= 40 and _META.match(folded):
        return "speaks about the answer itself"
    if word_count <= 8 and _TRANSITION.fullmatch(folded):
        return "a transition"
    if word_count <= 30 and _ADVICE.match(folded) and not _FIGURE.search(folded):
        return "advises to ask a professional"
    return None
