"""Sentences that need no citation, each with the reason in plain words.

The aim is the reader's: a sentence that asserts something about the world and carries no citation is uncited; one that
asks, announces, greets, labels, lists its sources or says what is not known is exempt. In doubt a sentence is uncited.
"""

from __future__ import annotations

import re

from masis.audit.sentences import BlockKind

# Recognises a sentence that says what the evidence does not tell, and asserts nothing else.
#
# The spec exempts three wordings (MASIS-CRITIC-HEDGES): ``insufficient evidence``, ``not provided``,
# ``cannot provide``. People and models say it in many more, in several languages. A sentence that hedges and asserts as
# well (``The margin is not provided, but revenue rose 12%``) is no hedge.

_DOCUMENTS = (
    r"(?:information|evidence|context|data|details?|documents?|documentation|passages?|sources?|texts?|excerpts?|"
    r"chunks?|materials?|abstracts?|articles?|snippets?|search results|references?|reports?|records?|filings?|"
    r"manuals?|pages?)"
)
_SAY = (
    r"(?:mention|say|state|specify|provide|give|contain|include|address|discuss|cover|describe|indicate|disclose|offer|"
    r"reveal|explain|tell|answer|clarify|detail|list|quantify|allow|name|go into|speak|touch)s?\b"
)
_FIND = (
    r"(?:find|provide|determine|answer|say|give|locate|identify|confirm|verify|tell|offer|access|conclude|"
    r"establish|help|"
    r"comment|judge|assess|be certain|be sure)\b"
)
_FOUND = (
    r"(?:determined|answered|found|established|provided|given|verified|confirmed|concluded|inferred|"
    r"ascertained|assessed|"
    r"derived|deduced|quantified|drawn|made)"
)
_STATED = (
    r"(?:provided|mentioned|specified|stated|available|given|included|disclosed|addressed|discussed|covered|described|"
    r"found|reported|indicated|contained|listed|named|quantified|explained|defined)"
)
_NOT = r"(?: not|n['’]t)"
_CANNOT = r"(?:can ?not|can['’]t|could not|couldn['’]t)"
_THE = r"(?:the|these|this|those|any|my|our) (?:\w+ ){0,3}"
_CLAUSE_END = r"\s*(?:[.,;:!?)]|$|here\b)"

_ENGLISH = [
    # the documents say nothing
    rf"\b{_DOCUMENTS}(?: \w+){{0,3}}? (?:do|does|did){_NOT}(?: \w+ly| yet| even)? {_SAY}",
    rf"\b{_DOCUMENTS}(?: \w+){{0,3}}? {_CANNOT} (?:provide|give|offer|tell|say|answer|clarify|determine|confirm)\b",
    rf"\b{_DOCUMENTS}(?: \w+){{0,5}}? (?:is|are|was|were){_NOT}(?: \w+ly| yet)? {_STATED}\b(?! (?:until|to)\b)",
    (
        rf"\b(?:is|are|was|were|been){_NOT}(?: \w+ly| yet)? {_STATED}(?: \w+)? (?:in|by|within|anywhere in) "
        rf"{_THE}{_DOCUMENTS}\b"
    ),
    (
        rf"\b(?:is|are|was|were|been){_NOT}(?: \w+ly| yet)? (?:provided|mentioned|specified|stated|disclosed|"
        rf"given){_CLAUSE_END}"
    ),
    rf"\bnor (?:do|does|did|is|are|was|were|has|have|can|could) (?:\w+ ){{0,3}}{_DOCUMENTS}\b",
    rf"\bnothing in {_THE}?{_DOCUMENTS}\b",
    rf"\b(?:none|neither) of {_THE}{_DOCUMENTS} (?:\w+ )?{_SAY}",
    rf"\b{_DOCUMENTS} (?:\w+ ){{0,3}}(?:is|are|remains?) (?:\w+ )?silent\b",
    rf"\b(?:outside|beyond) the scope of {_THE}(?:{_DOCUMENTS}|answer|question|response)\b",
    # there is too little of them
    rf"\b(?:insufficient|inadequate) (?:\w+ ){{0,2}}{_DOCUMENTS}\b",
    rf"(?:\bnot?|n['’]t|lacks?|without) (?:\w+ ){{0,3}}(?:enough|sufficient|adequate) (?:\w+ ){{0,2}}{_DOCUMENTS}\b",
    (
        rf"\b{_DOCUMENTS} (?:\w+ ){{0,4}}(?:is|are|remains?) (?:\w+ )?(?:insufficient|inadequate|lacking|missing|"
        rf"inconclusive|"
        r"limited|not (?:sufficient|enough|conclusive))\b"
    ),
    (
        rf"\b{_DOCUMENTS} (?:\w+ )?lacks? (?:any |sufficient |enough |specific )?(?:information|details?|data|"
        rf"evidence|context)\b"
    ),
    (
        r"\bno (?:\w+ ){0,2}(?:information|details?|data|mention|indication|figures?|answer|statement) (?:\w+ "
        r"){0,3}(?:on|about|"
        rf"regarding|for|of|in|to|available|provided|given|found|made)\b|\bno (?:\w+ ){{0,2}}information{_CLAUSE_END}"
    ),
    rf"\bno (?:\w+ ){{0,2}}evidence (?:\w+ ){{0,6}}(?:in|from|by) (?:the|these|my) (?:\w+ ){{0,2}}(?:{_DOCUMENTS})\b",
    (
        r"\bwithout (?:further|more|additional|specific|specified|any) (?:\w+ ){0,2}(?:information|context|"
        r"details?|data)\b"
    ),
    (
        r"\b(?:would|will|may|might)(?: be)? (?:\w+ )?(?:need(?:ed)?|required?) (?:\w+ ){0,4}(?:information|"
        r"details?|context|data)\b"
    ),
    (
        r"\b(?:further|more|additional) (?:research|information|evidence|data|details?|context|studies) (?:is|are|"
        r"would be|will "
        r"be|may be) (?:\w+ )?(?:needed|required|necessary)\b"
    ),
    # whoever answers can't say
    (
        rf"\b(?:i|we) (?:\w+ly )?(?:{_CANNOT}|(?:was|were|am|are) (?:not able|unable) to|did{_NOT}) (?:\w+ "
        rf"){{0,2}}?{_FIND}"
    ),
    rf"\b(?:{_CANNOT}|unable to) (?:provide|give|offer) (?:\w+ ){{0,4}}(?:answer|information|response|details?)\b",
    rf"\b(?:not possible|impossible) to (?:\w+ )?{_FIND}",
    rf"\b(?:answer|question|this|that|it|conclusions?|information) (?:\w+ )?(?:{_CANNOT}) be (?:\w+ )?{_FOUND}\b",
    rf"\b{_CANNOT} be (?:\w+ )?{_FOUND}(?:{_CLAUSE_END}|.{{0,40}}\b{_DOCUMENTS}\b)",
    r"\bi(?: do not|['’]?m not| am not| don['’]t)(?: \w+)? (?:know|sure|aware|certain|have)\b",
    r"\b(?:i['’]?m|i am|we are) (?:\w+ )?(?:unsure|uncertain)\b",
    r"\b(?:i['’]?d|i would) need (?:to know )?more\b",
    # it is not known
    r"\b(?:is|are|remains?|was) (?:\w+ )?(?:unknown|unclear|unspecified|uncertain)\b",
    rf"\b(?:is|are){_NOT}(?: \w+)? (?:known|clear)(?: (?:whether|how|why|what|when|if|which)\b|{_CLAUSE_END})",
    r"\bmay not (?:be (?:complete|exhaustive|accurate|up to date)|have a definitive answer)\b",
    r"\bn/a\b|^unknown\W*$",
]
_GERMAN = [
    r"\bich wei(?:ß|ss) (?:es |das )?nicht\b",
    (
        r"\b(?:nicht|keine?n?) (?:\w+ ){0,4}(?:genug|ausreichend\w*|genügend|angegeben|erwähnt|enthalten|"
        r"verfügbar|bekannt|beantworte\w*|"
        r"gefunden|finden|hervor|genannt|möglich|belegt|entnehmen|sagen|beurteilen|angaben|informationen|hinweise|"
        r"belege|auskunft)\b"
    ),
    r"\b(?:reichen|reicht) (?:\w+ ){0,4}nicht aus\b",
    r"\b(?:unzureichend\w*|unklar|unbekannt)\b",
    r"\bkeine (?:\w+ ){0,2}(?:angaben|informationen|hinweise|belege|auskunft|antwort|daten)\b",
    (
        r"\b(?:nennen|nennt|erwähnen|erwähnt|enthalten|enthält|sagen|sagt|liefern|liefert|geben|gibt) (?:\w+ "
        r"){0,6}(?:nicht|nichts|keine?n?)\b"
    ),
]
_FRENCH = [
    (
        r"\b(?:ne|n['’])\s?(?:\w+ ){0,3}?(?:mentionne|précise|contien|fourni|indique|permet|permett|parle|donne|"
        r"dispose|sais|sait|peux|peut|trouve|"
        r"figure|suffi|est|sont|abord)\w*(?: \w+)? (?:pas|rien|aucune?|point)\b"
    ),
    (
        r"\b(?:aucune?|pas d['’]|pas de|pas assez d['’e]|manque d['’e]) ?(?:\w+ ){0,2}(?:information|informations|"
        r"mention|preuve|preuves|indication|données|réponse|élément|éléments)\b"
    ),
    r"\b(?:informations?|preuves?|données|éléments) (?:\w+ ){0,2}insuffisant\w*",
]
_SPANISH = [
    (
        r"\bno (?:\w+ ){0,3}?(?:menciona\w*|especifica\w*|proporciona\w*|contiene\w*|indica\w*|incluye\w*|"
        r"ofrece\w*|dice\w*|hay|existe\w*|aparece\w*|"
        r"puedo|puede|se sabe|sé|encontr\w*|dispong\w*|está\w* disponible\w*)\b"
    ),
    r"\b(?:información|evidencia|pruebas?|datos) (?:\w+ )?insuficiente\w*|\binsuficiente (?:información|evidencia)\b",
    r"\b(?:falta|faltan|sin) (?:\w+ ){0,2}(?:información|evidencia|datos|pruebas)\b",
]

_CUE = re.compile(
    r"n['’]t\b|\bno[tr]?\b|cannot|insufficient|inadequate|lack|limited|without|unable|impossible|unsure|unclear|"
    r"unknown|uncertain|"
    r"unspecified|unavailable|need|requir|scope|nothing|none|neither|missing|silent|n/a|inconclusive|"
    r"nicht|kein|unzureichend|unklar|unbekannt|\bne\b|n['’]|aucun|pas d|manque|insuffisant|insuficiente|falta|\bsin\b"
)
_HEDGES = [re.compile(pattern) for pattern in (*_ENGLISH, *_GERMAN, *_FRENCH, *_SPANISH)]

_TURN = re.compile(
    r";|:\s|\s[–—-]\s|,?\s\b(?:but|however|although|though|whereas|yet|nevertheless|nonetheless|except|even "
    r"though|despite|aber|jedoch|obwohl|"
    r"mais|cependant|pero|aunque|sin embargo)\b,?|,\s(?:and|so|which|while|because|since|as|und|et|y)\b|,"
)
_OPENING_TURN = re.compile(
    r"(?:however|therefore|thus|unfortunately|so|but|and|yet|also|overall|hence|leider|malheureusement|"
    r"lamentablemente)\b,?\s*"
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|must|should|do|does|did|fell|rose|grew|"
    r"shows?|says?|"
    r"states?|suggests?|reports?|indicates?|means?|includes?|causes?|increases?|decreases?|reduces?|improves?|ships?|"
    r"ist|sind|war|hat|haben|wird|est|sont|ont|fue|tiene|\w{2,}ed)\b"
)
_ATTRIBUTION = re.compile(
    r"(?:based on|according to|from|given|in|within|among|with|for|to|as|if|about|regarding|on|of|by|specifically|"
    r"such as|including|"
    r"laut|nach|selon|d['’]après|según|en)\b"
)


def hedges(sentence: str) -> bool:
    """Whether the sentence only says what is not known, not stated or not found."""
    low = _OPENING_TURN.sub("", sentence.casefold().strip(), count=1)
    if not _CUE.search(low):
        return False
    clauses = [clause.strip() for clause in _TURN.split(low)]
    return _hedged(low) and not any(_asserts(clause) for clause in clauses)


def _hedged(text: str) -> bool:
    return any(pattern.search(text) for pattern in _HEDGES)


def _asserts(clause: str) -> bool:
    """Whether a clause says something of its own beside the hedge."""
    if len(clause.split()) < 3 or _ATTRIBUTION.match(clause):
        return False
    return _FINITE.search(clause) is not None and not _hedged(clause)


_BULLET = re.compile(r"\A(?:[-*+•‣▪◦●○·–]\s+|[(]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})[.)]\s+|>\s*|#{1,6}\s+)+")
_EMPHASIS = re.compile(r"[*_`~]+")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")

_SOURCE_LINE = re.compile(
    r"(?:sources?|references?|citations?|bibliography|works cited|quellen?|quellenangaben|literatur|références|"
    r"fuentes|bibliografía)"
    r"(?: (?:used|cited|consulted))?\s*(?::|$)"
)
_SOURCE_HEADING = re.compile(
    r"(?:sources?|references?|citations?|bibliography|works cited|footnotes|notes|quellen|literatur|références|"
    r"fuentes|further reading)"
    r"(?: (?:used|cited|consulted))?\s*:?\s*$"
)
_GREETING = re.compile(
    r"(?:hello|hi|hey|dear \w+|thanks|thank you|you['’]re welcome|welcome|sure|certainly|of course|absolutely|"
    r"okay|ok|great question|"
    r"good question|great|hope (?:this|that)|i hope|glad to|happy to|best regards|kind regards|hallo|danke|gerne|"
    r"bonjour|merci|hola|gracias)\b"
)
_META = re.compile(
    r"(?:i hope (?:this|that|it)|let me know|feel free|please (?:let me|feel free|note that (?:this|these|i)|"
    r"provide|clarify)|"
    r"if you (?:have|need|want|would like) (?:\w+ ){0,3}(?:question|information|help|detail|clarif|more)|"
    r"as an ai\b|i(?:['’]m| am) (?:an ai|a language model|glad|happy|sorry|afraid)|"
    r"i (?:have )?(?:searched|looked|found some|will|can|would|['’]ll|need)\b|i['’]ll\b|"
    r"(?:below|here|following|the following) (?:is|are)\b|here['’]s\b|let['’]s\b|"
    r"these are (?:just |only )?(?:some|a few) (?:of the )?(?:\w+ ){0,3}(?:points|examples|ways|options|tips|"
    r"suggestions|ideas)\b|this (?:is|was) (?:only |just )?(?:a (?:brief |short |simplified |"
    r"general )*(?:summary|overview|answer|list|outline)|based on)|"
    r"(?:some |more |further |additional )?(?:information|details?) (?:\w+ ){0,8}(?:can be found|(?:is|are) "
    r"(?:provided|given|available|found|listed)) (?:in|below|above)|"
    r"(?:however,? |but )?(?:it is (?:also )?important to |please )?note that (?:this|these|the) (?:\w+ "
    r")?(?:suggestions?|recommendations?|"
    r"summary|answer|response|list|algorithm|overview|information|advice|guide(?:lines)?|examples?)\b|"
    r"i['’]?d (?:be happy|recommend asking)|to (?:answer|summari[sz]e)(?: \w+){0,4}[:,]?$|in summary[:,]?$|in "
    r"conclusion[:,]?$)"
)
_LIST_NOUN = (
    r"(?:ways?|reasons?|methods?|factors?|steps?|strateg(?:y|ies)|options?|types?|kinds?|points?|examples?|"
    r"aspects?|things|approaches|tips|"
    r"benefits|advantages|disadvantages|challenges|causes?|effects?|differences|similarities|features|key \w+|"
    r"considerations|techniques|measures|"
    r"arguments|results|findings|suggestions|recommendations|possibilities|theories|criteria|components|elements|"
    r"stages|phases)"
)
_SEVERAL = (
    r"(?:several|some|a few|a number of|many|various|different|multiple|numerous|a variety of|two|three|four|five|six)"
)
_ANNOUNCING = re.compile(
    rf"(?:(?:however|overall|additionally|in addition|also|in general|generally),? )?(?:there (?:are|is|were|could "
    rf"be|may be)|here are|consider|we can (?:list|name)) "
    rf"(?:also )?{_SEVERAL} (?:\w+ ){{0,3}}{_LIST_NOUN}\b"
)
_TRANSITION = re.compile(
    r"(?:(?:first|second|third)(?:ly)?|finally|next|in other words|that (?:being )?said|with that in mind|to "
    r"begin with|"
    r"on the (?:one|other) hand|(?:but )?(?:it|that) depends|this raises (?:a|the|another) (?:\w+ )?question|as "
    r"follows|"
    r"(?:moving on|turning|now)(?: to(?: \w+){1,4})?|let us (?:\w+ ){0,4}\w+|"
    r"as (?:noted|mentioned|discussed|stated|described) (?:above|earlier|before|below))\W*"
)
_ADVICE = re.compile(
    r"(?:please |always |so |therefore,? |you should (?:always )?|you may want to |we recommend (?:that you )?|i "
    r"recommend (?:that you )?|"
    r"(?:it is|it['’]s) (?:\w+ )?(?:important|best|advisable|recommended|essential|crucial|wise|a good idea)(?: "
    r"to)? |if (?:in doubt|unsure),? |for \w+ advice,? )?"
    r"(?:to )?(?:always )?(?:consult|see|speak (?:to|with)|talk (?:to|with)|contact|ask|seek|check "
    r"with)\b(?:\W+\w+){0,8}\W+"
    r"(?:doctors?|physicians?|professionals?|lawyers?|attorneys?|pharmacists?|experts?|advis[oe]rs?|providers?|"
    r"specialists?|counsel|veterinarian|"
    r"help|advice|accountant)\b"
)
_LABEL = re.compile(r"\s*(?:\*\*|__)[^*_]{1,80}(?:\*\*|__):?\s*")
_FIGURE = re.compile(r"\d ?%|\b(?:1[5-9]|20)\d\d\b|[$€£]\d")  # an announcement with a figure asserts it
_BARE_ANSWER = frozenset({"yes", "no", "maybe", "true", "false", "ja", "nein", "oui", "non", "sí", "si"})
_QUESTION_END = "?？؟"
_STOPS = ".!?…。！？｡:।؟"

_FIXED_KINDS: dict[BlockKind, str] = {
    "code": "a code block",
    "heading": "a heading",
    "rule": "a rule between parts",
    "note": "a source list entry",
}


def bare_text(sentence: str) -> str:
    """The sentence without its bullet and its emphasis."""
    text = (
        _BULLET.sub("", sentence)
        if sentence[:1] in "-*+•‣▪◦●○·–>#(" or sentence[1:4].find(")") >= 0 or "." in sentence[:4]
        else sentence
    )
    return _EMPHASIS.sub("", text).strip() if ("*" in text or "_" in text or "`" in text) else text.strip()


def source_list_opens(sentence: str, kind: BlockKind) -> str | None:
    """``line`` if the sentence is a list of sources, ``heading`` if one follows, else None."""
    low = bare_text(sentence[:200]).casefold()
    if kind in ("heading", "prose", "item") and _SOURCE_HEADING.match(low):
        return "heading"
    return "line" if _SOURCE_LINE.match(low) else None


def why_exempt(sentence: str, kind: BlockKind, *, alone: bool, list_follows: bool, more_follows: bool) -> str | None:
    """Why an uncited sentence needs no citation, or None if it does.

    ``alone``: it is the whole of its block; ``list_follows``: the next block is a list, a table or code;
    ``more_follows``: it is not the answer's last sentence.
    """
    if kind in _FIXED_KINDS:
        return _FIXED_KINDS[kind]
    text = bare_text(sentence)
    words = len(_WORD.findall(text[:2000]))
    if words == 0 or (words == 1 and text.strip(" .)(").isdecimal()):
        return "no words"
    low = text.casefold().strip("\"'“”‘’ ")
    last = text.rstrip("\"'”’)»* ")[-1:]
    if last in _QUESTION_END:
        return "a question"
    if why := _says_nothing(low, words, more_follows):
        return why
    if (last == ":" and more_follows and not _FIGURE.search(low)) or (
        list_follows and low.endswith(("following", "as follows", "include", "are"))
    ):
        return "announces what follows"
    if _ANNOUNCING.match(low) and (list_follows or words <= 14) and not any(map(str.isdecimal, low)):
        return "announces what follows"
    if more_follows and words <= 6 and _LABEL.fullmatch(_BULLET.sub("", sentence)):
        return "a title"
    if (
        alone
        and more_follows
        and kind != "row"
        and last not in _STOPS
        and words <= 8
        and (kind != "item" or sentence.rstrip().endswith("**"))
    ):
        return "a title"
    if len(text) <= 1500 and hedges(text):
        return "says what is not known"
    return None


def _says_nothing(low: str, words: int, more_follows: bool) -> str | None:
    if words <= 2 and more_follows and low.strip(".!, ") in _BARE_ANSWER:
        return "a bare answer, which the next sentences carry"
    if words <= 8 and _GREETING.match(low):
        return "a greeting"
    if words <= 40 and _META.match(low):
        return "speaks about the answer itself"
    if words <= 8 and _TRANSITION.fullmatch(low):
        return "a transition"
    if words <= 30 and _ADVICE.match(low) and not _FIGURE.search(low):
        return "advises to ask a professional"
    return None
