"""Recognises a sentence that says what the evidence does not tell, and asserts nothing else.

The spec exempts three wordings (``specs/masis-critic.md``, Problem 4): ``insufficient evidence``, ``not provided``,
``cannot provide``. People and models say it in many more, in several languages. A sentence that hedges and asserts as
well (``The margin is not provided, but revenue rose 12%``) is no hedge.
"""

from __future__ import annotations

import re

_KNOWN = (
    r"(?:information|evidence|context|data|details?|documents?|passages?|sources?|texts?|excerpts?|chunks?|materials?|"
    r"abstracts?|articles?|reports?|records?|search results|results|references|studies|answer)"
)
_NO = r"(?:not|n['’]t|never|no longer)"
_SAY = (
    r"(?:mention|say|state|specify|provide|give|contain|include|address|discuss|cover|describe|indicate|report|"
    r"disclose|offer|reveal|explain|tell|answer|clarify|support|allow|establish|confirm|detail|list|quantify|show|"
    r"explicitly|directly|specifically|clearly)"
)
_FIND = (
    r"(?:find|provide|determine|answer|say|give|locate|identify|confirm|verify|tell|offer|access|conclude|"
    r"establish|help)"
)

_ENGLISH = [
    (
        rf"\b(?:insufficient|inadequate|not enough|no(?:t any)?|lack of|limited|without (?:further|more|additional|"
        rf"specific|any|specified)) "
        rf"(?:\w+ ){{0,4}}{_KNOWN}\b"
    ),
    rf"\b(?:do|does|did|is|are|was|were|has|have)(?: {_NO}|n['’]t)(?: \w+){{0,2}} {_SAY}\b",
    (
        r"\b(?:is|are|was|were|been|be)?(?: not|n['’]t) (?:\w+ly )?(?:provided|mentioned|specified|stated|"
        r"available|given|included|"
        r"disclosed|addressed|discussed|covered|known|described|found|reported|clear|indicated|contained|"
        r"listed)\b(?! (?:with|to have)\b)"
    ),
    (
        rf"\b(?:can ?not|can['’]t|could not|couldn['’]t|unable to|am not able to|was not able to|is not possible "
        rf"to|impossible to|"
        rf"not possible to|did not|didn['’]t|cannot be|can['’]t be|could not be) (?:\w+ ){{0,3}}?{_FIND}(?:ed|d|n)?\b"
    ),
    (
        r"\b(?:can ?not|can['’]t|could not|couldn['’]t) be (?:\w+ )?(?:determined|answered|found|established|"
        r"provided|given|verified|confirmed|concluded|inferred)\b"
    ),
    r"\bi(?: do not|['’]?m not| am not| don['’]t)(?: \w+)? (?:know|sure|aware|certain|have)\b",
    r"\b(?:i['’]?m|i am|we are) (?:\w+ )?(?:unsure|uncertain)\b",
    r"\b(?:is|are|remains?) (?:\w+ )?(?:unknown|unclear|unspecified|uncertain|unavailable)\b",
    (
        r"\b(?:would|will|may|might) (?:\w+ )?(?:need|require) (?:\w+ ){0,4}(?:information|details?|context|data|"
        r"evidence)\b"
    ),
    r"\b(?:outside|beyond) the scope\b",
    (
        r"\b(?:further|more|additional) (?:research|information|evidence|data|details?|context) (?:is|are|would "
        r"be|may be) (?:\w+ )?(?:needed|required|necessary)\b"
    ),
    r"\b(?:i['’]?d|i would) need (?:to know )?more\b",
    (
        r"\bno (?:\w+ ){0,3}(?:mention|indication|reference|answer|figure|statement) (?:\w+ ){0,3}(?:in|of|to|"
        r"for|from|about)\b"
    ),
    rf"\bnothing in (?:the|these|this|my) (?:\w+ ){{0,2}}{_KNOWN}\b",
    rf"\b(?:none|neither) of the (?:\w+ ){{0,2}}{_KNOWN}\b",
    r"\bmay not (?:be (?:complete|exhaustive|accurate|up to date)|have a definitive answer)\b",
    (
        r"\b(?:evidence|information|context|data|sources?) (?:is|are|remains?) (?:\w+ )?(?:insufficient|lacking|"
        r"limited|missing|inconclusive|silent)\b"
    ),
    r"\bnor (?:do|does|did|is|are|was|were|has|have|can|could)\b",
    r"\bn/a\b|^unknown\W*$",
]
_GERMAN = [
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
    r"ist|sind|war|hat|haben|wird|est|sont|a|ont|es|son|fue|tiene|\w{2,}ed)\b"
)
_ATTRIBUTION = re.compile(
    r"(?:based on|according to|from|given|in|within|among|with|for|to|as|if|about|regarding|on|of|by|specifically|"
    r"such as|including|"
    r"laut|nach|selon|d['’]après|según|en)\b"
)


def hedges(sentence: str) -> bool:
    """Whether the sentence only says what is not known, not told or not found."""
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
