"""Files of abstracts: each format gives the same records, and unreadable records are reported
without losing the others.
"""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.readers import AbstractFormat, detect_format, read_abstracts
from masis.screening.readers.bibliographic import strip_tex

SAMPLES = Path(__file__).parent / "files"
FILES: dict[AbstractFormat, str] = {
    "ris": (SAMPLES / "salt.ris").read_text(encoding="utf-8"),
    "bibtex": (SAMPLES / "salt.bib").read_text(encoding="utf-8"),
    "medline": (SAMPLES / "salt.nbib").read_text(encoding="utf-8"),
    "pubmed_xml": (SAMPLES / "salt.xml").read_text(encoding="utf-8"),
    "endnote_xml": (SAMPLES / "salt-endnote.xml").read_text(encoding="utf-8"),
    "jsonl": (SAMPLES / "salt.jsonl").read_text(encoding="utf-8"),
}
"""One record in every format."""

RIS, MEDLINE, PUBMED_XML, JSON_LINES = (
    FILES[form] for form in ("ris", "medline", "pubmed_xml", "jsonl")
)


def read(
    text: str | bytes, name: str = "file", form: AbstractFormat | None = None
) -> list[Abstract | InputError]:
    return list(
        read_abstracts(
            io.BytesIO(text.encode() if isinstance(text, str) else text), name=name, form=form
        )
    )


def split(found: list[Abstract | InputError]) -> tuple[list[str], list[str]]:
    return (
        [item.title for item in found if isinstance(item, Abstract)],
        [str(item) for item in found if isinstance(item, InputError)],
    )


@pytest.mark.parametrize("form", FILES)
def test_every_format_gives_the_same_record(form: AbstractFormat) -> None:
    assert detect_format(FILES[form].encode()) == form
    (found,) = read(FILES[form])
    assert (found.id, found.pmid, found.doi and found.doi.lower()) == (
        "pmid-1234",
        "1234",
        "10.1000/salt.1",
    )
    assert found.title == "Salt and blood pressure"
    assert found.text.split() == "BACKGROUND: Salt is eaten. METHODS: 48 adults took part.".split()
    assert found.authors == ("Müller, K.", "Doe, Jane")
    assert (found.year, found.journal) == (2019, "Journal of Examples")
    assert found.keywords == ("salt", "blood pressure")
    assert found.source == "file"


def test_unknown_fields_are_preserved(tmp_path: Path) -> None:
    (found,) = read(JSON_LINES)
    assert (found.model_extra or {})["label"] == "RCT"
    for text in (MEDLINE, PUBMED_XML):
        (found,) = read(text)
        assert list(found.publication_types) == ["Randomized Controlled Trial"]
    file = tmp_path / "export.ris"
    file.write_text(RIS.replace("ER  -", "VL  - 7\nXX  - odd\nER  -"), encoding="utf-8-sig")
    (found,) = list(read_abstracts(file))
    assert (found.source, (found.model_extra or {})["record"]["volume"]) == ("export.ris", "7")
    assert (found.model_extra or {})["record"]["unknown_tag"] == {"XX": ["odd"]}


def test_pubmed_sections_are_on_separate_lines() -> None:
    (found,) = read(PUBMED_XML)
    assert found.text == "BACKGROUND: Salt is eaten.\nMETHODS: 48 adults took part."


@pytest.mark.parametrize(
    ("text", "titles", "told"),
    [
        (
            (
                "TY  - JOUR\nTI  - Lost\nTY  - JOUR\nTI  - Good\nER  - \nstray\nstray\nTY  -"
                " JOUR\nAB  -\nER  - \n"
            ),
            ["Good"],
            [
                "file, line 1, record 1: has no end. Add a line",
                "file, line 6: is outside any record. Begin each",
                "file, line 8, record 3: has neither a title nor an abstract. Add one",
            ],
        ),
        (
            (
                "@article{a, title={Lost}, year=2020\n\n@article{b, title={Good}}\n@article{c,"
                " note={x}, note={y}}\n"
            ),
            ["Good"],
            [
                (
                    "file, line 1, record 1: can't be read (Unexpectedly reached end of file.)."
                    " Close its braces"
                ),
                "file, line 4, record 3: holds note twice. Keep one",
            ],
        ),
        (
            "PMID- 1\nTI  - Good\n\nPMID- 2\n\nPMID- 3\nTI  - Good too\n",
            ["Good", "Good too"],
            ["file, line 4, record 2: has neither"],
        ),
        (
            (
                '{"title": "Good"}\n{"title": 5}\n\n{"id": "x"}\n{"title": "Good too", "year": "in'
                ' press"}\n{"title": '
            ),
            ["Good", "Good too"],
            [
                "file, line 2, title: is a number, must be text. Put it in quotes.",
                "file, line 4: has neither",
                "file, line 6: ends in the middle of the JSON",
            ],
        ),
        (
            PUBMED_XML.replace(
                "</PubmedArticleSet>", "<PubmedArticle/><PubmedArticle><MedlineCitation>"
            ),
            ["Salt and blood pressure"],
            [
                "file, record 2: has no citation.",
                "file, line 18, after record 2: is incomplete or not XML",
            ],
        ),
    ],
    ids=["ris", "bibtex", "medline", "jsonl", "pubmed_xml"],
)
def test_a_bad_record_is_reported_with_its_position_and_the_others_are_read(
    text: str, titles: list[str], told: list[str]
) -> None:
    good, wrong = split(read(text))
    assert good == titles
    assert len(wrong) == len(told)
    for message, expected in zip(wrong, told, strict=True):
        assert message.startswith(expected), message


@pytest.mark.parametrize("form", FILES)
def test_a_line_that_isnt_utf8_loses_only_its_own_record(form: AbstractFormat) -> None:
    text = FILES[form].removeprefix("Database: Example\n").encode()
    if form in (
        "pubmed_xml",
        "endnote_xml",
    ):  # XML declares its own encoding and can't be parsed past an error
        latin = (
            text.replace(b'version="1.0"', b'version="1.0" encoding="iso-8859-1"')
            .decode()
            .encode("latin-1")
        )
        (found,) = read(latin)
        assert found.authors[0] == "Müller, K."
        return
    marker = b"adults" if form != "ris" else b"Doe"
    good, wrong = split(read(text.replace(marker, b"\xe4dults") + b"\n" + text))
    assert good == ["Salt and blood pressure"]
    assert len(wrong) == 1
    assert "is not UTF-8" in wrong[0]
    assert "iconv" in wrong[0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "known format of abstracts"),
        (b"hello\nworld", "known format of abstracts"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"PK\x03\x04", "zip"),
        (b"\xff\xfe{", "UTF-16"),
        (b"<html><body>", "known format of abstracts"),
        (b"<?xml version='1.0'?><feed/>", "isn't PubMed XML"),
        (
            b'<!DOCTYPE x [<!ENTITY a "b">]><PubmedArticleSet>&a;</PubmedArticleSet>',
            "declares entities",
        ),
        (
            b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><PubmedArticleSet/>',
            "declares entities",
        ),
    ],
)
def test_a_file_of_another_kind_is_rejected_with_a_hint(content: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told) as raised:
        read(content, name="notes.txt")
    assert str(raised.value).startswith("notes.txt")
    assert raised.value.hint


def test_a_file_without_records_is_rejected() -> None:
    for content in ("@comment{nothing}", "<PubmedArticleSet></PubmedArticleSet>"):
        with pytest.raises(InputError, match="holds no abstract"):
            read(content)


def test_a_missing_file_is_rejected_immediately(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_abstracts(tmp_path / "none.ris")
    with pytest.raises(InputError, match="directory"):
        read_abstracts(tmp_path)


def test_the_callers_stream_stays_open() -> None:
    stream = io.BytesIO(RIS.encode())
    list(read_abstracts(stream))
    assert not stream.closed


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (
            r"M{\"u}ller, {\'E}t\'e, Gar{\c c}on, \v{S}koda, Ko{\v{c}}",
            "Müller, Été, Garçon, Škoda, Koč",
        ),
        (r"Stra{\ss}e, S{\o}ren, {\AA}s, na{\"\i}ve", "Straße, Søren, Ås, naïve"),
        (
            r"50% of 20 \% \& \$5, {IL}-6, \emph{in vivo}, 2--3, a~b",
            "50% of 20 % & $5, IL-6, in vivo, 2–3, a b",
        ),
        ("plain text, p < .05 & more_of #it", "plain text, p < .05 & more_of #it"),
        (r"\unknown{kept}, $x^2$", "kept, $x^2$"),
    ],
)
def test_tex_becomes_plain_text_without_losing_text(tex: str, text: str) -> None:
    assert strip_tex(tex).replace("\u0131", "i").replace("i\u0308", "ï") == text


HOSTILE: list[tuple[AbstractFormat, str]] = [
    ("bibtex", "@a{x, t={" + "{" * 100_000),
    ("bibtex", "@a{" * 33_000),
    ("bibtex", "@a{k, title={x}, author={" + " " * 100_000 + "}}"),
    ("bibtex", "@a{k, title={x}, abstract={" + "\\'{" * 33_000 + "}" * 33_000 + "}}"),
    ("bibtex", '@a{k, title = "' + '"' * 100_000),
    ("bibtex", "@string{" + "a" * 100_000 + "= 1}"),
    ("ris", "TY  - JOUR\nTI  - x\n" + "a\n" * 50_000 + "ER  - "),
    ("ris", "TY  -\n" * 16_000),
    ("medline", "PMID- 1\nTI  - " + "x\n      " * 12_000),
    ("jsonl", '{"a":' * 20_000),
    ("jsonl", '{"title": "' + "10." * 33_000 + '", "doi": "' + "10.1" * 25_000 + '"}'),
    ("pubmed_xml", "<PubmedArticleSet>" + "<a>" * 33_000),
    ("pubmed_xml", "<PubmedArticleSet><PubmedArticle a='" + "&#65;" * 20_000),
]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "text"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_give_records_or_errors_in_bounded_time(
    form: AbstractFormat, text: str
) -> None:
    with suppress(InputError):
        assert all(isinstance(item, Abstract | InputError) for item in read(text, form=form))


def test_markup_and_commands_in_a_record_stay_text() -> None:
    hostile = "<script>alert(1)</script> =cmd() ![x](http://evil) \u202e"
    (found,) = read(json.dumps({"title": hostile, "text": hostile}))
    assert (found.title, found.text) == (hostile, hostile)
    assert "null byte" in str(read('{"title": "a\\u0000b"}')[0])
    assert "null byte" in str(read("TY  - JOUR\nTI  - a\x00b\nER  - \n")[0])


RECORD_TAGS: dict[AbstractFormat, tuple[bytes, bytes]] = {
    "pubmed_xml": (b"<PubmedArticle>", b"</PubmedArticleSet>"),
    "endnote_xml": (b"<record>", b"</records></xml>"),
}
"""The start of a record in each XML format, and the end of its file."""


@pytest.mark.slow
def test_memory_use_doesnt_grow_with_the_number_of_records() -> None:
    def peak(form: AbstractFormat, records: int) -> int:
        one = FILES[form].encode()
        if form in RECORD_TAGS:
            tag, end = RECORD_TAGS[form]
            head, body = one.split(tag, 1)
            content = head + (tag + body.replace(end, b"")) * records + end
        else:
            content = (one + b"\n") * records
        stream = io.BytesIO(content)
        tracemalloc.start()
        assert (
            sum(isinstance(abstract, Abstract) for abstract in read_abstracts(stream, form=form))
            == records
        )
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    for form in FILES:
        peak(form, 400)  # warm up imports and caches
        assert peak(form, 400) < peak(form, 40) + 300_000, form


def test_the_shared_abstracts_are_all_read(public_data: Path) -> None:
    def records() -> Iterator[Abstract | InputError]:
        yield from read_abstracts(public_data / "study_types_val.jsonl")

    good, wrong = split(list(records()))
    assert (len(good), wrong) == (530, [])


PIECES = st.sampled_from(
    [
        *(
            "TY  - JOUR\n",
            "TI  - x\n",
            "AB  - ",
            "ER  - \n",
            "PMID- 1\n",
            "AB  - a\n      b\n",
            "LID - 10.1/x [doi]\n",
        ),
        *("@article{", "@string{", "title=", "{", "}", '"', ",", "=", "#", "\\'{e}", "@comment{"),
        *('{"title": ', '"x"', "null", "[", "]", ":", "}", "1e999", "NaN", "\\u0000", "\\ud800"),
        *(
            "<PubmedArticleSet>",
            "<PubmedArticle>",
            "</PubmedArticle>",
            "<MedlineCitation>",
            "<PMID>1</PMID>",
            "&#0;",
        ),
        *(
            "\n",
            "\r\n",
            "\x00",
            "\x0b",
            "\u2028",
            " ",
            "é",
            "\ufeff",
            "<!DOCTYPE a>",
            "<![CDATA[",
            "]]>",
            "&lt;",
        ),
    ]
)


@pytest.mark.slow
@given(
    st.lists(PIECES | st.text(max_size=5), max_size=40),
    st.sampled_from(sorted(FILES)),
    st.binary(max_size=3),
)
def test_any_file_content_gives_records_and_errors(
    pieces: list[str], form: AbstractFormat, tail: bytes
) -> None:
    content = "".join(pieces).encode("utf-8", "surrogatepass") + tail
    try:
        found = read(content, form=form)
    except InputError as error:
        found = [error]
    for item in found:
        assert isinstance(item, Abstract | InputError)
        if isinstance(item, Abstract):
            # it survives JSON, the format of the store
            assert Abstract.model_validate_json(item.model_dump_json()) == item
        else:
            assert item.hint


@pytest.mark.parametrize(
    "header",
    [
        "titles,abstracts,pubmedID,year",
        "Title,Abstract,PubMed ID,Year",
        "Document Title,Abstract Note,pubmed_id,Publication Year",
        "Article Title,AB,PM,PY",
        "TI,AB,PM,PY",
    ],
)
def test_columns_are_recognized_by_the_names_that_other_programs_use(header: str) -> None:
    (found,) = read(f"{header}\nSalt and blood pressure,48 adults took part.,1234,2019\n")
    assert (found.title, found.text, found.pmid, found.year, found.id) == (
        "Salt and blood pressure",
        "48 adults took part.",
        "1234",
        2019,
        "pmid-1234",
    )


def test_fields_of_json_are_recognized_as_columns_are() -> None:
    (found,) = read('{"Title": "Salt", "Abstracts": "48 adults.", "pubmedID": 1234, "Odd Name": 1}')
    assert (found.title, found.text, found.pmid) == ("Salt", "48 adults.", "1234")
    assert (found.model_extra or {})["Odd Name"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "[No abstract available]",
        "No abstract available.",
        "Abstract not available",
        "N/A",
        "n.a.",
        "null",
        "[Abstract unavailable]",
        "No abstract is available for this article.",
        "-",
    ],
)
def test_a_placeholder_is_no_abstract(text: str) -> None:
    for record in (
        RIS.replace(
            "AB  - BACKGROUND: Salt is eaten.\nMETHODS: 48 adults took part.", f"AB  - {text}"
        ),
        f'title,abstract\nSalt,"{text}"\n',
        f'{{"title": "Salt", "text": "{text}"}}',
    ):
        (found,) = read(record)
        assert found.text == ""


def test_a_short_abstract_is_no_placeholder() -> None:
    for text in ("No abstract idea helps.", "None of 12 adults died.", "N/A ratios were 2."):
        (found,) = read(f'title,abstract\nSalt,"{text}"\n')
        assert found.text == text


@pytest.mark.parametrize("number", ["{}.", "<{}>", "{}", "Record {}"])
def test_numbers_before_ris_records_are_skipped(number: str) -> None:
    record = RIS.removeprefix("Database: Example\n")
    good, wrong = split(read(f"{number.format(1)}\n{record}\n{number.format(2)}\n{record}"))
    assert (good, wrong) == (["Salt and blood pressure"] * 2, [])


@pytest.mark.parametrize(
    ("database", "pmid"),
    [
        ("", "1234"),
        ("PubMed", "1234"),
        ("Ovid MEDLINE(R) ALL", "1234"),
        ("<style>Medline</style>", "1234"),
        ("Embase", None),
        ("Ovid Embase", None),
        ("<style>Embase</style>", None),
        ("CINAHL", None),
        ("APA PsycINFO", None),
        ("Scopus", None),
        ("Cochrane Central Register of Controlled Trials", None),
    ],
)
@pytest.mark.parametrize("element", ["remote-database-name", "database"])
def test_only_accession_numbers_of_pubmed_are_pubmed_ids(
    element: str, database: str, pmid: str | None
) -> None:
    named = f"<{element}>{database}</{element}><accession-num>"
    (found,) = read(FILES["endnote_xml"].replace("<accession-num>", named))
    assert isinstance(found, Abstract)
    assert found.pmid == pmid


@pytest.mark.parametrize(
    "beginning",
    [
        "<!DOCTYPE xml>",
        '<!DOCTYPE xml SYSTEM "RSXML.dtd">',
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE xml SYSTEM "RSXML.dtd">\n',
        '<?xml version="1.0"?><!DOCTYPE xml PUBLIC "-//A//B" "https://example.org/a.dtd">',
        "<?xml version='1.0'?>\n<!-- From EndNote -->\n<!DOCTYPE xml>",
        "<!-- From EndNote -->",
    ],
)
def test_endnote_xml_can_begin_with_a_document_type(beginning: str) -> None:
    text = beginning + FILES["endnote_xml"].removeprefix('<?xml version="1.0" ?>').strip()
    assert split(read(text)) == (["Salt and blood pressure"], [])


def test_a_document_type_of_pubmed_is_not_endnotes() -> None:
    text = '<?xml version="1.0"?>\n<!DOCTYPE PubmedArticleSet SYSTEM "a.dtd">\n<PubmedArticleSet>'
    assert detect_format(text.encode()) == "pubmed_xml"


def test_a_broken_record_of_endnote_is_reported_with_its_number() -> None:
    text = FILES["endnote_xml"].replace("<records>", "<records><record></record>")
    good, wrong = split(read(text.replace("</records></xml>", "")))
    assert good == ["Salt and blood pressure"]
    assert [problem.split(":")[0] for problem in wrong] == [
        "file, record 1",
        "file, line 17, after record 2",
    ]
