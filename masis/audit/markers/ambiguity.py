"""Distinguishes citations from similar text such as years, intervals, indices and powers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from masis.audit.markers.references import Reference, are_years
from masis.audit.markers.resolution import EvidenceIds

# "1, 3", "2-5": a body without letters.
_NUMBERS_ONLY = re.compile(r"[\d\s,;–—|/+-]+")
# Words and signs before an interval: "95% CI [2, 8]", "in the range [0, 1]", "x ∈ [0, 1]".
_INTERVAL_BEFORE = re.compile(
    r"(?:\b(?:CI|CrI|IQR)\b\)?|[∈=≈±]|"
    r"\b(?:in|within|from|over|on) (?:the |a )?(?:\w+ )?(?:interval|range|scale|domain)|"
    r"\b(?:range|scale|interval)(?: of|:))\s*(?:of|from|was|is)?\s*[:=,]?\s*\Z"
)
# A statistic whose range follows in brackets: "median 4.1 [2, 8]".
_STATISTIC_BEFORE = re.compile(
    r"\b(?:median|mean|average|IQR|range|versus|vs)\b[^.;!?]{0,40}\d[\w%°/ .-]{0,12}\s\Z"
)
# Units, R, I, χ, η and "× 10" before a power that lost its superscript: "mm[2]", "R[2]", "5 ×
# 10[7]". "War I", "Type I", "Phase I", "Stage I", "Class I" and "part I" are names, which the
# lookbehinds exclude by the four characters before the "I" (a lookbehind has a fixed width).
_POWER_BEFORE = re.compile(
    r"(?:[^\w\]][kcdmµμn]?m|\b[Rr]|(?<!War )(?<!ype )(?<!ase )(?<!age )(?<!ass )(?<!art )\bI|[χη]|"
    r"[×x·*] ?10)\Z"
)
_POWER_ENDS = frozenset("mRrIχη0")
# "10" before "[6] cells", but not "110" or "1.10".
_TEN_BEFORE = re.compile(r"(?<![\d.,])10\Z")
# " cells", "mg", "%" after the bracket.
_UNIT_AFTER = re.compile(r" ?[a-zA-Zµμ/%]")
# A number with its unit: "4.1 ", "5mg ".
_NUMBER_BEFORE = re.compile(r"\d[\w%°/.-]{0,12}\s\Z")
# "in 1991 [2, 4]": a year before the bracket.
_YEAR_BEFORE = re.compile(r"(?<![\d.,])[12]\d{3}\s\Z")
# An identifier directly before the bracket, as in code: "rows[0]".
_NAME_BEFORE = re.compile(r"[A-Za-z_][\w.]*\Z")
_ARRAY_NAMES = frozenset(
    {
        "arr",
        "array",
        "list",
        "args",
        "argv",
        "data",
        "dict",
        "items",
        "matrix",
        "vec",
        "row",
        "rows",
        "col",
        "cols",
    }
    | {"nums", "values", "str", "params", "idx", "buf", "tmp"}
)
# Code after an index: "rows[0].name()", "x[0] = 1".
_CODE_AFTER = re.compile(r"\.\w+\(|\s{0,2}[-+*/]?=")
# A chemical element after its mass number: "[18]F", "[99]Tc".
_ELEMENT_AFTER = re.compile(r"[A-Z][a-z]?(?![A-Za-z])")
# "Table [S1]", "Fig. [S2]": the supplement of a paper.
_SUPPLEMENT_BEFORE = re.compile(
    r"\b(?:Tab|Fig|Suppl|Append|Movie|Video|Text)\w*\.?\s\Z", re.IGNORECASE
)
# "S1", "D2-D4": initials with numbers, which may be supplements or vitamins.
_INITIALS_ONLY = re.compile(r"[SDR]\d{1,3}(?:[\s,;–-]+[SDR]?\d{1,3})*", re.IGNORECASE)


def is_probably_not_a_citation(
    answer: str,
    start: int,
    end: int,
    body: str,
    references: Sequence[Reference],
    index: EvidenceIds,
) -> bool:
    """Return whether the context of a possible marker shows that it isn't a citation."""
    before, after = answer[start - 1 : start], answer[end : end + 1]
    has_several = len(references) > 1
    if not _NUMBERS_ONLY.fullmatch(body):
        is_checkbox = body in "xX" and answer[max(0, start - 2) : start] in ("- ", "* ", "+ ")
        if is_checkbox or (before.islower() and after.islower()):
            return True  # pyrazolo[1,5-a]pyrimidine: letters touch both
        return bool(
            _INITIALS_ONLY.fullmatch(body)
            and not all(reference.evidence_id for reference in references)
            and (after.isalpha() or _SUPPLEMENT_BEFORE.search(answer[max(0, start - 20) : start]))
        )
    if has_several and _INTERVAL_BEFORE.search(answer[max(0, start - 24) : start]):
        return True  # 95% CI [2, 8]
    if (
        before in _POWER_ENDS
        and len(body) <= 2
        and _POWER_BEFORE.search(answer[max(0, start - 6) : start])
    ):
        return True  # mm[2], R[2], 5 × 10[7]: a power whose raised digit is in brackets
    if after == "=" and before.isalnum():
        return True  # ?ids[1]=7
    is_before_element = _ELEMENT_AFTER.match(answer, end) is not None
    if before == "[" and is_before_element:
        return True  # [[3]H]ketanserin
    if all(reference.evidence_id is not None for reference in references):
        return False
    return bool(
        are_years(references, index)
        # [0, 1], [0-35]: an interval or a scale; a single [0] is a reference without evidence
        or (has_several and references[0].name == "0" and references[0].evidence_id is None)
        or _is_index(answer, start, end, references)
        or (
            has_several and _STATISTIC_BEFORE.search(answer[max(0, start - 70) : start]) is not None
        )
        # [125]I-labelled, [99][m]Tc: a mass number before its element
        or answer.startswith("[m]", end)
        or (is_before_element and before not in (".", "!", "?"))
        # 10[6] cells: a power of ten before its unit
        or (
            _UNIT_AFTER.match(answer, end) and _TEN_BEFORE.search(answer[max(0, start - 4) : start])
        )
        or (index.is_unknown and _may_be_mathematics(answer, start, len(references)))
    )


def _may_be_mathematics(answer: str, start: int, members: int) -> bool:
    """Return whether ``10[6]`` or ``4.1 [2, 8]`` may be a power or an interval.

    If the evidence is known and has five chunks, ``[6]`` is a fabrication; if it isn't known, the
    text is kept.
    """
    before = answer[max(0, start - 16) : start]
    if members == 1:
        return _TEN_BEFORE.search(before) is not None
    # An interval has two ends, and seldom follows a year: "in 1991 [2, 4]".
    return (
        members == 2
        and _NUMBER_BEFORE.search(before) is not None
        and not _YEAR_BEFORE.search(before)
    )


def _is_index(answer: str, start: int, end: int, references: Sequence[Reference]) -> bool:
    """Return whether a bracket is an index in code that isn't marked up: ``rows[0].name``."""
    name = _NAME_BEFORE.search(answer[max(0, start - 40) : start])
    if name is None or len(references) > 2:
        return False
    word = name.group()
    is_variable = (
        (len(word) == 1 and word.islower()) or "_" in word or word.casefold() in _ARRAY_NAMES
    )
    return is_variable or _CODE_AFTER.match(answer, end) is not None


# Raised numbers: long¹ is a citation; m², R², 10⁸, ¹⁸F, Ca²⁺, sin² x are not.

# "long" in "long¹".
_WORD_BEFORE = re.compile(r"[^\W\d_]+\Z")
# Words that may have an exponent: units, functions, variables. Words of one or two letters need no
# entry.
_CARRIES_EXPONENTS = frozenset(
    """
        kpc mpc hpa kpa mpa gpa kev mev gev tev khz mhz ghz thz mol mmol kmol rad deg sec min hrs
        bar day days year years week weeks metre metres meter meters feet foot inch inches yard
        yards mile miles acre acres hectare hectares centimetre centimetres centimeter centimeters
        kilometre kilometres kilometer kilometers millimetre millimetres millimeter millimeters
        second seconds minute minutes hour hours sin cos tan cot csc sinh cosh tanh coth log exp lim
        sqrt chi eta rho phi psi tau sigma omega alpha beta gamma delta theta lambda мин сек км²
        mètre mètres metro metros quadrat
    """.split()
)
# "x² + 1", "10⁸ = ...", "Ca²⁺": an operator or a charge after the raised number.
_OPERATOR_AFTER = re.compile(r"\s{0,2}[=+×*/^≈<>±·−⋅≤≥]|[⁺⁻ᵗⁿ°]|\s{0,2}-\s?\d")
# "= ", "× ", "(" before the word that has the raised number: "h × width²".
_OPERATOR_BEFORE = re.compile(r"[=+×*/^≈±·−⋅(]\s{0,2}\Z")
# The content of round brackets before a raised number: "(x + 1)²".
_ROUND_BEFORE = re.compile(r"[(（]([^()（）]{1,56})[)）]\Z")
# An operator inside such brackets.
_TERM = re.compile(r"[=+×*/^≈<>±·−⋅]")
# "Clean": four letters, or one character of a script without spaces (CJK, Hangul).
_LONG_WORD = re.compile(r"[^\W\d_]{4}|[\u2e80-\u9fff\uac00-\ud7a3]")
_PUNCTUATION = frozenset(".,;:!?…\"'”’»*_[]】。，；：！？」』")
# "step ②", "图①", "第③": words before a circled number that counts something.
_ENUMERATED = re.compile(
    r"(?:steps?|options?|points?|items?|equations?|eqs?\.|eqn\.|formulas?|figures?|figs?\.|"
    r"numbers?|parts?|types?|cases?|lines?|rules?|schritt|punkt|图|圖|式|步骤|步驟|表|条件|條件|方程|选项|選項|题|題|"
    r"問|手順|例|项|項|第|中|和|与|、)\s?\Z",
    re.IGNORECASE,
)


def is_probably_an_exponent(text: str, start: int, end: int) -> bool:
    """Return whether a raised number is an exponent, a mass number or a charge."""
    after = text[end : end + 1]
    if after.isalnum() or _OPERATOR_AFTER.match(text, end):
        return True
    before = text[max(0, start - 60) : start].rstrip(" ")
    if not before or before[-1] == "\n":
        return True  # a mass number, or the number of a footnote's text
    word = _WORD_BEFORE.search(before)
    if word is None:
        if before[-1] in ")）":
            # (x + 1)² raises a term, (the Clean Air Act)² doesn't
            bracketed = _ROUND_BEFORE.search(before)
            return (
                bracketed is None
                or _TERM.search(bracketed.group(1)) is not None
                or not _LONG_WORD.search(bracketed.group(1))
            )
        return before[-1] not in _PUNCTUATION
    letters = word.group()
    if ord(letters[-1]) > 0x2E80:
        return False  # in scripts without spaces, units aren't separate words
    if len(letters) <= 2 or letters.casefold() in _CARRIES_EXPONENTS:
        return True
    # "× width²": a factor of a formula
    return (
        _OPERATOR_BEFORE.search(before[: word.start()]) is not None
        and before[word.start() - 1] != "("
    )


def is_probably_a_list_number(text: str, start: int, end: int) -> bool:
    """Return whether a circled number numbers a step or an entry, as in ``① Open the file``."""
    before = text[max(0, start - 20) : start]
    follows_words = bool(before.strip()) and not before.rstrip(" ").endswith(
        ("\n", ":", "：", "；", ";")
    )
    after = text[end : end + 1]
    ends_clause = (
        not after
        or after in ".,;:!?)]）。，；：！？、\n"
        or (after == " " and not text[end : end + 2].strip())
    )
    return not (follows_words and ends_clause) or _ENUMERATED.search(before) is not None
