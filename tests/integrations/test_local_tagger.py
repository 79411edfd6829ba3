"""Taggers of words: which words of an answer they mark, and that they never confirm a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE, WordPiece
from tokenizers.pre_tokenizers import ByteLevel, Whitespace
from tokenizers.processors import TemplateProcessing

from masis import Settings, run_audit, verify_claims
from masis.audit.acceptance import claim_reasons
from masis.audit.escalation import EscalatingVerifier
from masis.errors import StepError
from masis.integrations.local import scoring
from masis.integrations.local.tagger import (
    MOST_PARTS,
    LocalTagger,
    context_of,
    language_of,
    prompts,
    remove_stretches,
)
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import Evidence
from masis.schema.run import Run
from masis.schema.wording import describe_marked_words
from tests.cases import case_of
from tests.integrations.tiny_models import NLI_WORDS, SPECIAL, save_model, save_tagger

EVIDENCE = "The bridge is 120 metres long. It opened in 1931, for 69 million."
ANSWER = "The bridge is 120 metres long [1]. It opened in 1850 for 69 million [1]."
MADE_UP = (0.0, 4.0)


@pytest.fixture(autouse=True)
def _empty_caches() -> None:
    scoring._load_scorer.cache_clear()


def role(folder: Path) -> LocalTagger:
    return LocalTagger(scoring.load(str(folder)), Settings())


def marks(check: ClaimCheck) -> list[str]:
    """The marked words, which lie where the check says they do."""
    assert check.verdict == "unverifiable"
    for words in check.marked:
        assert check.claim.text[words.claim_start : words.claim_end] == words.claim_text
    return [words.claim_text for words in check.marked]


def one_by_one(folder: Path, *claims: str, evidence: str = EVIDENCE) -> list[list[str]]:
    found = role(folder).verify(
        [Claim(text=text) for text in claims], [Evidence(id="1", text=evidence)]
    )
    return [marks(check) for check in found]


def test_an_audit_shows_marked_words_and_isnt_accepted(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP, "million": MADE_UP, "69": MADE_UP})
    run = run_audit(
        case_of(ANSWER, {"1": EVIDENCE}), Settings(verifier=f"local:{folder}", max_iterations=1)
    )
    first, second = run.iterations[0].claims
    assert (marks(first), marks(second)) == ([], ["1850", "69 million"])
    start = second.claim.start or 0
    year, _ = second.marked
    assert ANSWER[start + year.claim_start : start + year.claim_end] == "1850"
    assert run.needs_review
    reasons = {reason.code: reason for reason in run.review_reasons}
    assert reasons["words_marked"].tier == "not_certified"
    assert (
        reasons["words_marked"].message
        == "The tagger finds no support for “1850” and “69 million”."
    )
    assert "unconfirmed_claim" in reasons
    assert "words_marked" not in {reason.code for reason in claim_reasons([first])}
    assert Run.model_validate_json(run.model_dump_json()) == run


def test_the_absence_of_marks_confirms_nothing(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"the": (60.0, -60.0)})
    (check,) = verify_claims(
        ["The bridge is long."],
        [{"id": "1", "text": EVIDENCE}],
        Settings(verifier=f"local:{folder}"),
    )
    assert (check.verdict, check.confidence, check.quotes, check.sources) == (
        "unverifiable",
        None,
        (),
        (),
    )
    assert check.support == 0.5
    assert "never confirms" in (check.issue or "")


def test_the_hallucinated_label_marks_a_word(tmp_path: Path) -> None:
    swapped = {"0": "hallucinated", "1": "supported"}
    folder = save_tagger(tmp_path / "tagger", {"1850": (4.0, 0.0), "opened": (0.0, 4.0)}, swapped)
    assert one_by_one(folder, "It opened in 1850.") == [["It", "in 1850"]]


def test_only_answer_words_are_marked(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"120": MADE_UP})
    assert one_by_one(folder, "The bridge is long.", "The bridge is 120 metres long.") == [
        [],
        ["120"],
    ]


@pytest.mark.parametrize(
    "claim",
    ["A café’s 1850 naïve bridge", "   1850 bridge", "🌉🌉 1850", "桥 1850 年", "x\u200b1850"],
)
def test_offsets_are_exact_with_multibyte_characters(tmp_path: Path, claim: str) -> None:
    folder = save_tagger(
        tmp_path / "tagger", dict.fromkeys("1850", MADE_UP), custom_tokenizer=bytes_tokenizer()
    )
    (token,) = {
        (tag.start, tag.end)
        for tag in role(folder).tags([EVIDENCE], "", claim) or ()
        if tag.unsupported > 0.5 and claim[tag.start : tag.end] == "8"
    }
    assert claim[token[0] : token[1]] == "8"
    assert "1850" in one_by_one(folder, claim)[0][0]


def test_a_tokens_leading_space_isnt_in_its_span(tmp_path: Path) -> None:
    known = {
        sign: at
        for at, sign in enumerate([*SPECIAL, *sorted(ByteLevel.alphabet()), "\u0120b", "\u0120br"])
    }
    made = Tokenizer(BPE(known, [("\u0120", "b"), ("\u0120b", "r")]))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False, trim_offsets=False)
    folder = save_tagger(
        tmp_path / "tagger", {"\u0120br": MADE_UP}, custom_tokenizer=with_marks(made)
    )
    tokens = role(folder).tags([EVIDENCE], "", "a bridge") or ()
    assert [(token.start, token.end) for token in tokens if token.unsupported > 0.5] == [(2, 4)]


def bytes_tokenizer() -> Tokenizer:
    """A tokenizer like ModernBERT's, each byte a token of its own, and the blank before a word part
    of it.
    """
    known = {sign: at for at, sign in enumerate([*SPECIAL, *sorted(ByteLevel.alphabet())])}
    made = Tokenizer(BPE(known, []))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    return with_marks(made)


def with_marks(made: Tokenizer) -> Tokenizer:
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    made.add_special_tokens(list(SPECIAL))
    return made


def test_a_word_is_marked_if_one_of_its_tokens_is(tmp_path: Path) -> None:
    known = [*SPECIAL, "un", "##believ", "##able", "bridge", "very"]
    made = Tokenizer(WordPiece({piece: at for at, piece in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    folder = save_tagger(
        tmp_path / "tagger", {"##believ": MADE_UP}, custom_tokenizer=with_marks(made)
    )
    assert one_by_one(folder, "very unbelievable bridge") == [["unbelievable"]]
    tokens = role(folder).tags([EVIDENCE], "", "very unbelievable bridge") or ()
    assert [(token.start, token.end) for token in tokens if token.unsupported > 0.5] == [(7, 13)]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("It opened in 1850 1850.", ["1850 1850"]),
        ("1850 bridge 1850", ["1850", "1850"]),
        ("Costs 18.50 here", ["18.50"]),
        ("It is long.", []),
    ],
)
def test_adjacent_marked_words_are_merged(tmp_path: Path, claim: str, expected: list[str]) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP, "50": MADE_UP, ".": MADE_UP})
    assert one_by_one(folder, claim) == [expected]


def test_marks_in_scripts_without_spaces_cover_only_their_characters(tmp_path: Path) -> None:
    # "ä" and "å" are how byte-level tokenizers write E4 and E5, the first bytes of four of these
    # characters.
    folder = save_tagger(
        tmp_path / "tagger", {"ä": MADE_UP, "å": MADE_UP}, custom_tokenizer=bytes_tokenizer()
    )
    assert one_by_one(folder, "这座桥长一百二十米") == [["座", "一", "二十"]]


def test_markers_are_skipped_and_offsets_refer_to_the_answer(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1": MADE_UP, "]": MADE_UP, "1931": MADE_UP})
    case = case_of("The bridge is long [1][1] in 1931 [1].", {"1": EVIDENCE})
    (check,) = (
        run_audit(case, Settings(verifier=f"local:{folder}", max_iterations=1)).iterations[0].claims
    )
    assert marks(check) == ["1931"]


@pytest.mark.parametrize(
    ("text", "stretches", "expected"),
    [
        ("long [1]. Wide [2].", [(5, 8), (15, 18)], "long. Wide."),
        ("[1] long", [(0, 3)], " long"),
        ("a [1][2] b", [(5, 8), (2, 5)], "a b"),
        ("a [1", [(2, 4)], "a"),
        ("", [], ""),
        ("[1]", [(0, 3)], ""),
    ],
)
def test_every_kept_character_has_its_offset(
    text: str, stretches: list[tuple[int, int]], expected: str
) -> None:
    kept, offsets = remove_stretches(text, stretches)
    assert kept == expected
    assert [text[offset] for offset in offsets] == list(kept)


# the prompt


def test_the_input_has_passages_and_question_before_the_answer() -> None:
    assert (
        context_of(["alpha", "beta"], "What?", "en")
        == "Briefly answer the following question:\nWhat?\nBear in mind that your response should"
        " be strictly based on the following 2 passages:\npassage 1: alpha\npassage 2: beta\nIn"
        " case the passages do not contain the necessary information to answer the question,"
        ' please reply with: "Unable to answer based on given passages."\noutput:'
    )
    assert (
        context_of(["only {x}"], " ", "en")
        == "Summarize the following text:\npassage 1: only {x}\noutput:"
    )
    assert context_of(["nur"], "Was?", "de").startswith(
        "Beantworte die folgende Frage kurz:\nWas?\n"
    )


def test_every_language_has_a_complete_prompt() -> None:
    for language in prompts():
        assert "alpha" in context_of(["alpha"], "", language)
        assert all(
            part in context_of(["alpha"], "What?", language) for part in ("alpha", "What?", "1")
        )


@pytest.mark.parametrize(
    ("name", "languages", "expected"),
    [
        ("local:KRLabsOrg/lettucedect-base-modernbert-en-v1", None, "en"),
        ("local:KRLabsOrg/lettucedect-210m-eurobert-de-v1", ("de",), "de"),
        ("local:KRLabsOrg/lettucedect-210m-eurobert-cn-v1", ("zh",), "zh"),
        ("local:own", ("fr",), "fr"),
        ("local:own", ("fr", "it"), "en"),
        ("local:own", ("xx",), "en"),
    ],
)
def test_the_prompt_is_in_the_language_of_the_model(
    name: str, languages: tuple[str, ...] | None, expected: str
) -> None:
    assert language_of(name, languages) == expected


def test_the_answer_is_read_once_with_all_passages(tmp_path: Path) -> None:
    whole = scoring.load(str(save_tagger(tmp_path / "tagger", {"1850": MADE_UP})))
    seen: list[list[int]] = []

    def engine(batch: scoring.EncodedBatch) -> Any:
        seen.extend(batch.ids.tolist())
        assert not batch.types.any()
        return whole.engine(batch)

    watched = scoring.LocalScorer(whole.labels, whole.encoder, engine, whole.model)
    case = case_of(ANSWER, {"1": EVIDENCE, "2": "The capital."})
    checks = LocalTagger(watched, Settings()).check(
        [Claim(text="It opened in 1850", start=35, end=52)],
        "Long?",
        ANSWER,
        [Evidence(id=name, text=text) for name, text in (("1", EVIDENCE), ("2", "The capital."))],
        completeness=False,
    )
    assert case.answer == ANSWER
    context = context_of([EVIDENCE, "The capital."], "Long?", "en")
    assert seen == [whole.encoder.tokenizer.encode(context, ANSWER).ids]
    assert marks(checks.checks[0]) == ["1850"]


# what does not fit


def test_a_too_long_answer_is_neither_marked_nor_confirmed(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP}, max_position_embeddings=128)
    (check,) = role(folder).verify(
        [Claim(text="long 1850 " * 60)], [Evidence(id="1", text=EVIDENCE)]
    )
    assert (marks(check), check.support) == ([], None)
    assert "longer than the tagger reads" in (check.issue or "")


def test_input_up_to_the_limit_is_read_without_truncation(tmp_path: Path) -> None:
    scorer = scoring.load(
        str(save_tagger(tmp_path / "tagger", {"1850": MADE_UP}, max_position_embeddings=64))
    )
    room = 64 - len("[CLS] [SEP] 1850 [SEP]".split())
    assert scorer.tag("bridge " * room, "1850") is not None
    assert scorer.tag("bridge " * (room + 1), "1850") is None


def test_a_word_supported_by_some_passages_isnt_marked(tmp_path: Path) -> None:
    folder = save_tagger(
        tmp_path / "tagger",
        {"1850": MADE_UP},
        seen={"paris": (9.0, 0.0)},
        max_position_embeddings=160,
    )
    filler = "The bridge is 120 metres long. " * 10
    assert one_by_one(folder, "It opened in 1850.", evidence=filler * 2) == [["1850"]]
    for evidence in (filler + "Paris. " + filler, "Paris. " + filler * 2, filler * 2 + "Paris."):
        assert one_by_one(folder, "It opened in 1850.", evidence=evidence) == [[]]


def test_partly_read_passages_mark_nothing(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP}, max_position_embeddings=128)
    for evidence in ("The bridge is long. " * 40 * MOST_PARTS, "bridge " * 300):
        (check,) = role(folder).verify(
            [Claim(text="It opened in 1850.")], [Evidence(id="1", text=evidence)]
        )
        assert marks(check) == []
        assert "longer than the tagger reads" in (check.issue or "")


def test_textless_evidence_marks_nothing(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP})
    assert one_by_one(folder, "It opened in 1850.", evidence=" ") == [[]]


# failures and other roles


@pytest.mark.parametrize("shape", [(1, 2), (1, 7, 3), (1, 3, 2)])
def test_outputs_of_an_unexpected_shape_are_rejected(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    whole = scoring.load(str(save_tagger(tmp_path / "tagger", {"1850": MADE_UP})))
    other = scoring.LocalScorer(
        whole.labels, whole.encoder, lambda batch: np.zeros(shape), whole.model
    )
    (check,) = LocalTagger(other, Settings()).verify(
        [Claim(text="It opened.")], [Evidence(id="1", text=EVIDENCE)]
    )
    assert check.verdict == "unscored"


def test_a_nan_output_is_no_mark(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": (float("nan"), 0.0)})
    (check,) = role(folder).verify(
        [Claim(text="It opened in 1850.")], [Evidence(id="1", text=EVIDENCE)]
    )
    assert check.verdict == "unscored"


def test_text_the_tokenizer_rejects_leaves_the_claim_unscored(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path / "tagger", {"1850": MADE_UP})
    (check,) = role(folder).verify(
        [Claim(text="It opened \ud800.")], [Evidence(id="1", text=EVIDENCE)]
    )
    assert check.verdict == "unscored"


def test_taggers_dont_score_claims_and_verifiers_dont_mark_words(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="can't confirm a whole claim"):
        scoring.load(str(save_tagger(tmp_path / "tagger", {"1850": MADE_UP}))).score(
            [(EVIDENCE, "It opened.")]
        )
    with pytest.raises(StepError, match="scores whole claims"):
        scoring.load(str(save_model(tmp_path / "nli", NLI_WORDS))).tag(EVIDENCE, "It opened.")


def test_marks_are_kept_whichever_verifier_follows(tmp_path: Path) -> None:
    first = role(save_tagger(tmp_path / "tagger", {"1850": MADE_UP}))

    class Confirms:
        def verify(self, claims: Any, evidence: Any) -> tuple[ClaimCheck, ...]:
            return tuple(
                ClaimCheck(claim=claim, verdict="supported", support=1.0, confidence=1.0)
                for claim in claims
            )

    both = EscalatingVerifier(first, Confirms(), ("local:tagger", "other"))
    (check,) = both.verify([Claim(text="It opened in 1850.")], [Evidence(id="1", text=EVIDENCE)])
    assert (check.verdict, [words.claim_text for words in check.marked]) == ("supported", ["1850"])
    assert [reason.code for reason in claim_reasons([check])] == ["words_marked"]


def test_the_sentence_about_marked_words_is_short() -> None:
    assert describe_marked_words(["a"]) == "The tagger finds no support for “a”"
    assert describe_marked_words(["a", "b", "a"]) == "The tagger finds no support for “a” and “b”"
    assert (
        describe_marked_words(list("abcde"))
        == "The tagger finds no support for “a”, “b” and 3 more places"
    )
    assert len(describe_marked_words(["word " * 500])) < 110
