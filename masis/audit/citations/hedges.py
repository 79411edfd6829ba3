"""Recognises a sentence that says what the evidence does not tell, and asserts nothing else.

The spec exempts three wordings (MASIS-CRITIC-HEDGES): ``insufficient evidence``, ``not provided``,
``cannot provide``. People and models say it in many more, in several languages. A sentence that hedges and asserts as
well (``The margin is not provided, but revenue rose 12%``) is no hedge.
"""

from __future__ import annotations

import re

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
_TOLD = (
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
    rf"\b{_DOCUMENTS}(?: \w+){{0,5}}? (?:is|are|was|were){_NOT}(?: \w+ly| yet)? {_TOLD}\b(?! (?:until|to)\b)",
    (
        rf"\b(?:is|are|was|were|been){_NOT}(?: \w+ly| yet)? {_TOLD}(?: \w+)? (?:in|by|within|anywhere in) "
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
