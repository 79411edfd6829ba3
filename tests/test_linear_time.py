"""A long text is read in linear time, whatever it repeats.

The texts have 30,000 characters, or 100,000 in ``make soak``. Each gets four seconds of processor
time per 30,000 characters, of which the slowest needs one. Other processes don't use up this time,
unlike a test's limit, so it can be short: the regular expression ``a*(?=b)`` exceeds it.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
from collections.abc import Callable, Iterator

import pytest

from masis.audit.calculations import check_calculation, unknown_operands
from masis.audit.citations import audit_citations
from masis.audit.markers import without_markers
from masis.audit.markers.styles import STYLES, MarkerStyle
from masis.audit.output_validation import PydanticValidator
from masis.audit.sentences import split_sentences
from masis.audit.text.comparison import quotation_forms, sentence_form
from masis.audit.text.instructions import find_instructions
from masis.audit.text.quotes import locate_quote
from masis.datasets.mapping.offsets import LabelSpan, find_quoted_place, to_character_spans
from masis.datasets.readers.tables import read_table
from masis.errors import InputError, InvalidRevision
from masis.llm.client.reply_parsing import UnreadableReply, parse_reply
from masis.llm.providers.provider_errors import from_status, scrub_error
from masis.llm.roles.claim_places import place_claims, uncovered_assertions
from masis.llm.roles.replies import ListedClaim
from masis.offline.checks.copies import CopyIndex, words_of
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.parsing.facts import extract
from masis.offline.text.tokens import tokens
from masis.schema.answers import no_answer_in, separate_thoughts
from masis.schema.audit import Revision
from masis.schema.case import Evidence
from masis.schema.reading import evidence_list
from masis.server.otlp import JSON, parse_export
from masis.services.arrivals.ingestion import read_cases
from masis.settings.secrecy import safe_value
from masis.store.reviews.observations import pattern_of
from tests.audit.factories import JUDGED_BY, context
from tests.llm.asking import SampleReply

SECONDS = 4
"""The processor time that 30,000 characters may need."""
CHUNKS = (
    Evidence(id="chunk_1", text="..."),
    Evidence(id="chunk_2"),
    Evidence(id="u", source="https://a.b/c"),
)
FIGURES = EvidenceIndex(
    [("1", "It must be at least 5 m. Judge Ada spoke; Judge Bo left. A had 24, B 35 in 1990.")]
)


def _citations(text: str) -> None:
    audit_citations(text, CHUNKS)
    audit_citations(text, CHUNKS, mode="literal")
    without_markers(text)


def _revision(text: str) -> None:
    revision = Revision(
        revised_answer=text, changes_explanation="", updated_confidence=None, judged_by=JUDGED_BY
    )
    with contextlib.suppress(InvalidRevision):
        PydanticValidator().validate(revision, context(answer="It is long [chunk_1]."))


def _calculation(text: str) -> None:
    check_calculation(text)
    unknown_operands(check_calculation("117 + 113 = 230"), [text])


def _places(text: str) -> None:
    """Locate short and long words in an answer, and words that aren't in it."""
    sentences = "The bridge is 120 metres long and it opened in 1931. It is red."
    for answer, words in ((text, "it opened in 1931"), (sentences, text), (text, text[:-1])):
        audit = audit_citations(answer, CHUNKS)
        rows = [
            ListedClaim(sentence=1, words=words),
            ListedClaim(sentence=None, words=words, meaning=text),
        ]
        uncovered_assertions(place_claims(rows, answer, audit), audit)


def _reply(text: str) -> None:
    with contextlib.suppress(UnreadableReply):
        parse_reply(text, SampleReply)


def _answer(text: str) -> None:
    for lead in ("", "analysis", "<think>x</think>", "<|channel|>"):
        separate_thoughts(lead + text)
        no_answer_in({}, lead + text)
    no_answer_in({"error": text})


def _error(text: str) -> None:
    from_status(400, {}, {"error": {"message": text}}, key_name="", model="m")
    from_status(400, {}, text, key_name="", model="m")
    scrub_error(text)


def _offline(text: str) -> None:
    tokens(text)
    extract(text)
    words_of(text)
    CopyIndex([text]).find("The dam is safe for ten years.")


def _compare_forms(text: str) -> None:
    sentence_form(text)
    quotation_forms(text, [(position, position + 1) for position in range(0, len(text), 50)])
    locate_quote(f"{text}x", text)


def _request(text: str) -> None:
    """Read the text as the body of a request, and as an answer and an id in a request."""
    list(read_cases("ndjson", text.encode()))
    list(read_cases("json", text.encode()))
    list(
        read_cases(
            "json",
            json.dumps({"id": text, "query": text, "answer": text, "evidence": [text]}).encode(),
        )
    )
    with contextlib.suppress(InputError):
        parse_export(text.encode(), JSON)


def _evidence(text: str) -> None:
    """Read the text as the evidence of a record, and as an answer with offsets of citations and
    labels.
    """
    for answer in ("So [1].", "So [2]."):
        with contextlib.suppress(InputError):
            evidence_list(text, answer, {})
    to_character_spans(text, [LabelSpan(3, 9), LabelSpan(len(text), len(text) + 5)])
    find_quoted_place(text, "So", 3, 5)


def _table(text: str) -> None:
    """Read the text as a table, and as the header of one."""
    for delimiter in (None, ";"):
        with contextlib.suppress(InputError):
            list(read_table(io.BytesIO(text.encode()), text[: 1 << 16].encode(), delimiter))


READERS: dict[Callable[[str], object], str] = {
    _request: '[¦1¦.¦ ¦{¦"¦\\¦\n¦{"a":¦[{¦,¦{}\n¦"evidence"¦é',
    pattern_of: "“¦”¦\"¦‘¦'¦ '¦[¦]¦1¦1.¦a ¦.¦# ",
    _evidence: (
        "[¦['a' ¦[\"a\n¦('¦{'a':¦array(¦[Document(¦Document(a=¦a.¦a(¦<¦<a"
        " ¦<a<¦\\¦'''¦1¦1_¦1e¦...¦[nan ¦a;¦a; ¦a|¦| a |\n¦|-¦|--|¦ \n¦\n\n¦---\n¦&a;¦[1] a"
        " ¦“¦\U0001f309¦-¦.; ¦a.|¦page_content='a' "
    ),
    _table: 'a,¦"¦""¦"a\n¦sep=;¦;¦\n¦\r¦|¦"a",¦"a"b',
    split_sentences: (
        "a¦a. ¦A. ¦.¦[¦[a. ¦(a. ¦ (¦`¦ab cd ¦!a¦.)¦ ¦\n¦-\n¦[1].¦.[1¦http://¦[1] ¦x | ¦- ¦* *"
        " ¦```\n¦。¦. [¦www.¦1. ¦U.¦\n[1]:¦[^¦【¦z. B. ¦am 3. Mai ¦3. 5. 1931 ¦A, ¦vitamin A, B and"
        ' ¦"Why?" ¦「好。」¦（¦《¦क. ¦α; ¦สะพาน [1] ¦<br>¦<¦a:¦**a:** b\n'
    ),
    _citations: (
        "[¦[1¦[1]¦[1,¦(Source ¦(Source 1¦【1†¦[^1]: ¦[a](¦[a](http://b¦$x_¦\\(¦`¦[1-¦[1 and"
        " ¦[chunk_¦[chunk_1-¦(chunk_1 ¦https://a.b/¦ no¦ not¦ is not¦; but¦ no information in the"
        " sources do not¦ -[x]¦ |a¦[1914-1918] ¦ keine¦ ne pas¦ vs 1 [2-9]¦"
        " a,¦(,¦\\[¦\\[9\\¦[chunk\\_¦\\cite{¦\\cite[¦[see"
        " ¦[1/¦[@a¦[1|¦\\cite[x][y]{¦¹¦¹,¦<sup>1¦<cite>¦<cite>a</cite>¦<ref id=¦</co: 1,¦<a"
        " href=x>¦##1$$¦##¦\ue202a¦\ue202¦turn0a0¦citeturn0¦①¦① ¦word ①¦Sources\n¦Sources: a\n¦#"
        " Sources\nhttps://a.b/c\n¦<https://a.b>¦(https://a.b/c ¦[^a] ¦[^a]: x\n¦［¦〔1¦[a (p."
        " 4¦[1: p. 4¦(source: ¦```\n¦~~~\n```\n¦$\\a¦$5 ¦a^1^¦.[1]¦. [1]."
        " ¦.<sup>[1]</sup>¦.((¦.**¦.[[1]](#a) a¦10[6] a¦[S1, ¦来源1¦[来源1，"
    ),
    find_instructions: (
        "ignore ¦you must ¦<!-- ¦i g n o r e ¦send the ¦\u0430bc ¦QUFB¦if a user asks"
        ' ¦"¦a<b></b>¦&#73;¦erongi suoiverp ¦%49'
    ),
    _revision: "[¦[chunk_1 ¦[ ¦{\x01¦ ",
    _reply: (
        '{¦{"¦{"a":¦{"a":[¦{"a":"xxxx","b":¦{"sound": ¦```json\n¦{"a": 1} ¦\\ud800¦{"a":'
        ' "\\(¦{"\\"¦{, ¦{"a":{'
    ),
    _answer: (
        "<think>¦</think>¦<think></think>¦\n<think>¦a.<think>¦`¦```¦<|channel|>¦<|channel|>final<|message|>¦[THINK]¦Error"
        ' code: 4¦a.¦{"error":¦ '
    ),
    _error: "model ¦sk-¦system ¦tools ¦{",
    _offline: "1¦1,¦1.¦1,111¦May ¦20 may ¦A of ¦twenty ¦$¦Aa ¦a¦a'¦é¦1,111,¦(¦it's ¦and was ¦\"",
    _compare_forms: (
        "re-\n¦'¦5'¦“¦*a ¦_a ¦`a¦, ¦a, the ¦1,000¦ -5¦a -"
        " ¦a—¦5-5¦.5¦e\u0301¦\u0301\u0316¦\u1100\u1161\u11a8¦twenty-¦a n't ¦aa & ¦( ¦ ! ¦\n"
        " ¦\ufb01¦ [1] "
    ),
    _calculation: "1 + ¦(¦1,000¦- ¦= ¦1 of ¦million ¦1;¦% ¦1'1¦a.¦² ",
    _places: (
        "word ¦it opened ¦not ¦1931 ¦, ¦橋は¦a and ¦In addition, ¦sin embargo ¦It is red. ¦'¦..."
        " ¦[1] "
    ),
    safe_value: "a¦a1¦sk-¦1_¦http://@",
}
"""The pieces that each reader is tested with, separated by ``¦``."""
CLAIMS = (
    "word number 12% in 1999 Paris ¦Aa¦1.1.¦not ¦a, b; ¦by the X of Y ¦(60%) and ¦at least 5 ¦must"
    " not be ¦AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ¦5 of 9 in 3 ¦more than 5 km, ¦A 24, B 35,"
    " ¦one in 20 and 3 August 1990 "
)


class QuadraticTime(Exception):
    """A text needed more processor time than a reader with linear time needs."""


@contextlib.contextmanager
def limit_time(length: int) -> Iterator[None]:
    """Raise QuadraticTime if the block needs more processor time than a text of this length may.

    Python runs the handler when a call into C returns, so a slow regular expression still finishes.
    """

    def fail(number: int, frame: object) -> None:
        raise QuadraticTime

    handler = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS * length / 30_000)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


def read_repeated(reader: Callable[[str], object], piece: str, length: int) -> None:
    with limit_time(length):
        reader((piece * (length // len(piece) + 1))[:length])


@pytest.mark.soak(smoke=30_000, full=100_000)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__.lstrip("_"))
def test_text_that_repeats_a_piece_is_read_in_linear_time(
    reader: Callable[[str], object], rounds: int
) -> None:
    for piece in READERS[reader].split("¦"):
        read_repeated(reader, piece, rounds)


@pytest.mark.soak(smoke=30_000, full=100_000)
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_text_that_repeats_a_marker_or_its_beginning_is_read_in_linear_time(
    style: MarkerStyle, rounds: int
) -> None:
    marker = style.example
    beginnings = [marker[:end] for end in range(1, len(marker)) if not marker[end - 1].isalnum()]
    for piece in (*beginnings, marker, f". {marker}", f"({marker} "):
        read_repeated(_citations, piece, rounds)


def test_a_reader_that_needs_more_time_is_stopped() -> None:
    def read_forever(text: str) -> None:
        while text:
            pass

    with pytest.raises(QuadraticTime):
        read_repeated(read_forever, "a", 300)


@pytest.mark.soak(smoke=20_000, full=100_000)
@pytest.mark.parametrize("piece", CLAIMS.split("¦"))
def test_a_claim_that_repeats_a_piece_is_judged_in_seconds(piece: str, rounds: int) -> None:
    FIGURES.assess(piece * (rounds // len(piece)))
    EvidenceIndex([("1", piece * (rounds // len(piece)))]).assess(
        "It must be at least 5 m long in 1990."
    )
