"""Answers as documents (Markdown, HTML or Word) and folders of them: question, answer and
footnotes.
"""

from __future__ import annotations

import builtins
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.loading import read_cases
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError, MissingExtra

NOTED = """# How long is the bridge?

It is 120 metres long.[^1] It opened in 1931.[^opened]

[^1]: The bridge is 120 metres long.
    So says the survey, https://example.org/survey.
[^opened]: It opened in 1931.
"""
FRONT = """---
title: "How long is the bridge?"
author: Ada
---
It is 120 metres long [1].

## References

1. A.

2. B.
"""
SECTIONS = """# Report

## Question

How long is the bridge?

## Answer

It is long [a].

## Sources

[a] So.

[b] C.
"""
HTML = """<html><head><title>x</title><style>p {}</style></head><body><nav><a href="#top">top</a></nav>
<h1>How long is the bridge?</h1><p>It is <b>120 metres</b> long<sup><a href="#n1" id="r1">[1]</a></sup>.</p>
<ol><li id="n1">The bridge is 120 metres long. <a href="#r1">back</a></li></ol>
<script>alert(1)</script></body></html>"""


def word(*, footnote: str = "The bridge is 120 metres long.") -> bytes:
    """Return a minimal Word document with a heading, a paragraph and a footnote."""
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{package}/content-types"><Default Extension="rels"'
            ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override'
            f' PartName="/word/document.xml" ContentType="{kind}.document.main+xml"/><Override'
            f' PartName="/word/footnotes.xml" ContentType="{kind}.footnotes+xml"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1"'
            f' Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r2"'
            f' Type="{office}/footnotes" Target="footnotes.xml"/></Relationships>'
        ),
        "word/document.xml": (
            f'<w:document xmlns:w="{main}"><w:body><w:p><w:pPr><w:pStyle'
            ' w:val="Heading1"/></w:pPr><w:r><w:t>How long is the'
            " bridge?</w:t></w:r></w:p><w:p><w:r><w:t>It is 120 metres"
            " long.</w:t></w:r><w:r><w:footnoteReference"
            ' w:id="2"/></w:r></w:p></w:body></w:document>'
        ),
        "word/footnotes.xml": (
            f'<w:footnotes xmlns:w="{main}"><w:footnote w:id="2"><w:p><w:r>'
            f"<w:t>{footnote}</w:t></w:r></w:p></w:footnote></w:footnotes>"
        ),
    }
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return held.getvalue()


LENGTH = "The bridge is 120 metres long."
SURVEY = f"{LENGTH}\nSo says the survey, https://example.org/survey."


@pytest.mark.parametrize(
    ("name", "content", "answer", "evidence"),
    [
        (
            "footnotes.md",
            NOTED,
            "It is 120 metres long.[^1] It opened in 1931.[^opened]",
            [("1", SURVEY), ("opened", "It opened in 1931.")],
        ),
        ("front.markdown", FRONT, "It is 120 metres long [1].", [("1", "A."), ("2", "B.")]),
        ("sections.md", SECTIONS, "It is long [a].", [("a", "So."), ("b", "C.")]),
        ("page.html", HTML, "It is **120 metres** long[^1].", [("1", LENGTH)]),
        ("letter.docx", word(), "It is 120 metres long.[^1]", [("1", LENGTH)]),
    ],
)
def test_a_document_is_one_case(
    name: str, content: str | bytes, answer: str, evidence: list[tuple[str, str]], tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    (case,) = read_cases(file)
    assert (case.id, case.query) == (file.stem, "How long is the bridge?")
    assert case.answer == answer
    assert [(chunk.id, chunk.text) for chunk in case.evidence] == evidence


def test_each_document_in_a_folder_or_zip_is_a_case_and_others_are_named(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "answers"
    (folder / "more").mkdir(parents=True)
    (folder / "a.md").write_text(NOTED)
    (folder / "more" / "a.md").write_text(NOTED)
    (folder / "README.md").write_text("# Answers\n\nOf the survey.\n")
    with zipfile.ZipFile(tmp_path / "answers.zip", "w") as archive:
        for path in folder.rglob("*.md"):
            archive.write(path, path.relative_to(folder).as_posix())
    for place in (folder, tmp_path / "answers.zip"):
        rows = list(read_any(place))
        assert sorted(row.case.id for row in rows if row.case) == ["a", "more/a"]
        (problem,) = [str(problem) for row in rows for problem in row.problems]
        assert problem.startswith(
            f"{place}/README.md, line 1: has no sources that can be recognized. Put the"
        )
    (folder / "rows.jsonl").write_text('{"query": "Why?", "evidence": ["So."]}\n')
    # documents next to data files are taken as their description
    assert [case.query for case in read_cases(folder)] == ["Why?"]


def test_a_damaged_word_document_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "letter.docx"
    file.write_bytes(word(footnote="<"))
    with pytest.raises(InputError, match=r"letter\.docx, line 1: isn't a readable Word document"):
        read_cases(file)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = builtins.__import__

    def missing(name: str, *given: Any) -> Any:
        if name in ("bs4", "mammoth"):
            raise ImportError(name)
        return import_module(name, *given)

    monkeypatch.setattr(builtins, "__import__", missing)
    for name, content in (("page.html", HTML.encode()), ("letter.docx", word())):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MissingExtra, match=r"pip install 'masis-workbench\[documents\]'"):
            read_cases(tmp_path / name)
