"""Reads one answer from a document: Markdown, HTML or Word.

The question is the first heading, or ``question`` in front matter, or a section with that name. The
answer is the text below it. The evidence is the footnotes that the answer cites, or else the chunks
of a section headed Sources. HTML and Word are converted to Markdown by markdownify and mammoth,
which the extra ``documents`` installs.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any
from xml.parsers.expat import ExpatError

from masis.datasets.readers.lines import utf8_error
from masis.datasets.readers.plain_text import FoundChunk, read_plain
from masis.errors import InputError, MissingExtra

MOST_CHARACTERS = 2_000_000

_FRONT_MATTER = re.compile(r"\A---\n(.{0,20000}?)\n---\n", re.DOTALL)
"""YAML front matter between two lines of three dashes."""
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$|^(\S.*)\n(?:=+|-{3,})[ \t]*$", re.MULTILINE)
"""A heading with number signs, ``## Title``, or underlined with ``===`` or ``---``."""
_FOOTNOTE = re.compile(r"^\[\^([^\]\s]{1,100})\]:[ \t]*(.*(?:\n+(?:[ ]{2,}|\t).*)*)", re.MULTILINE)
"""A footnote definition, ``[^1]: text``, with its indented continuation lines."""
_MAMMOTH_ERRORS = (
    KeyError,
    ValueError,
    OSError,
    AttributeError,
    IndexError,
    TypeError,
    zipfile.BadZipFile,
    ExpatError,
)
"""The errors that mammoth raises for a file that isn't a Word document inside."""
_FOOTNOTE_ELEMENTS = ("li", "p", "div", "aside", "dd", "td")
"""HTML elements that may be a footnote."""
_ADDRESS = re.compile(r"https?://[^\s<>)\]]{1,2000}")
_SECTIONS = {
    "query": "question query prompt",
    "answer": "answer response reply output",
    "evidence": (
        "sources source references evidence footnotes notes bibliography citations documents"
        " context"
    ),
}
"""Headings that say what the text below them is."""


def read_document_file(content: bytes, name: str) -> dict[str, Any]:
    """Return a document as a row in the workbench's own format, with its name as the id.

    Raises:
        InputError: It isn't text, is too long, or has no question, answer or sources.
        MissingExtra: The package that reads HTML or Word isn't installed.

    """
    stem, _, suffix = name.rpartition(".")
    text = _to_markdown(content, suffix.lower())
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"is longer than {MOST_CHARACTERS:,} characters",
            hint="Give one answer with its sources.",
        )
    row: dict[str, Any] = {"id": stem[:500]}
    if front := _FRONT_MATTER.match(text):
        pairs = (line.partition(":") for line in front[1].split("\n") if ":" in line)
        fields = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
        asked = next((key for key in ("question", "query", "title") if fields.get(key)), None)
        row |= {"query": fields.pop(asked)} if asked else {}
        row |= {"metadata": fields} if fields else {}
        text = text[front.end() :]
    notes = [
        {"id": label, **_body_chunk(body)}
        for label, body in _FOOTNOTE.findall(text)
        if body.strip()
    ]
    sections = _named_sections(_FOOTNOTE.sub("", text), titled="query" not in row)
    row |= {field: body for field, body in sections.items() if body and field != "evidence"}
    _, plain_chunks = read_plain(sections.get("evidence", ""))
    chunks = [chunk for chunk in plain_chunks if isinstance(chunk, FoundChunk)]
    listed = [
        {"id": chunk.id or str(number), **_body_chunk(chunk.text)}
        for number, chunk in enumerate(chunks, 1)
    ]
    row["evidence"] = notes or listed
    part_names = {"query": "question", "answer": "answer", "evidence": "sources"}
    if missing := [part_names[field] for field in part_names if not row.get(field)]:
        raise InputError(
            f"has no {' and no '.join(missing)} that can be recognized",
            hint=(
                "Put the question into the first heading, the answer under it, and the sources into"
                " footnotes ([^1] in the answer, [^1]: text at the end) or under a heading Sources,"
                " with blank lines between them."
            ),
        )
    return row


def _body_chunk(body: str) -> dict[str, str]:
    text = re.sub(r"\n+[ \t]+", "\n", body).strip()
    address = _ADDRESS.search(text)
    return {"text": text} | ({"source": address[0].rstrip(".,;")} if address else {})


def _named_sections(text: str, *, titled: bool) -> dict[str, str]:
    """Return the text below headings that name a part.

    If none does, the first heading is the question.
    """
    sections: dict[str, list[str]] = {}
    field, at = "answer", 0
    for heading in [*_HEADING.finditer(text), None]:
        sections.setdefault(field, []).append(
            text[at : heading.start() if heading else len(text)].strip()
        )
        if heading is None:
            break
        title, at = (heading[1] or heading[2]).strip("*_ "), heading.end()
        part = next(
            (
                name
                for name, words in _SECTIONS.items()
                if title.lower().rstrip(":") in words.split()
            ),
            None,
        )
        if part is None and titled and "query" not in sections:
            sections["query"] = [title]
            field = "answer"
        elif part is None:
            field = "answer" if field == "query" else field
            sections.setdefault(field, []).append(heading[0].strip())
        else:
            field = part
            if field == "query":  # a section named Question replaces the first heading
                sections.pop(field, None)
    return {name: "\n\n".join(filter(None, parts)) for name, parts in sections.items()}


def _to_markdown(content: bytes, suffix: str) -> str:
    if suffix == "docx":
        return _html_to_markdown(_word_to_html(content))
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise utf8_error(error) from error
    return text if suffix in ("md", "markdown") else _html_to_markdown(text)


def _word_to_html(content: bytes) -> str:
    try:
        import mammoth
    except ImportError as error:
        raise _missing_package("Word documents", "mammoth") from error
    titles = "p[style-name='Title'] => h1:fresh"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = (archive.read(name) for name in archive.namelist() if name.endswith(".xml"))
            if any(b"<!DOCTYPE" in part or b"<!ENTITY" in part for part in parts):
                raise ValueError("it declares entities, as Word never does")
        return str(mammoth.convert_to_html(io.BytesIO(content), style_map=titles).value)
    except _MAMMOTH_ERRORS as error:
        raise InputError(
            f"isn't a readable Word document ({error})", hint="Save it again as .docx."
        ) from error


def _html_to_markdown(html: str) -> str:
    """Convert HTML to Markdown.

    A list item or paragraph that the text links to becomes a footnote.
    """
    try:
        from bs4 import BeautifulSoup
        from markdownify import MarkdownConverter
    except ImportError as error:
        raise _missing_package("HTML and Word documents", "markdownify") from error
    soup = BeautifulSoup(html, "html.parser")
    for element in soup.find_all(
        ["script", "style", "nav", "header", "footer", "title", "noscript", "template"]
    ):
        element.decompose()
    notes: dict[str, tuple[str, Any]] = {}
    for link in soup.select("a[href^='#']"):
        anchor = str(link["href"])[1:]
        target = soup.find(id=anchor) if anchor else None
        if (
            target is not None
            and target.name in _FOOTNOTE_ELEMENTS
            and link not in target.descendants
        ):
            label = link.get_text().strip(" []()\n") or str(len(notes) + 1)
            label, _ = notes.setdefault(anchor, (re.sub(r"\s+", "-", label), target))
            (link.find_parent("sup") or link).replace_with(f"[^{label}]")
    definitions = []
    for label, target in notes.values():
        for link in target.select("a[href^='#']"):  # the link back to the citation
            link.decompose()
        definitions.append(f"[^{label}]: {' '.join(target.get_text(' ').split())}")
        target.decompose()
    converter = MarkdownConverter(
        heading_style="ATX", escape_asterisks=False, escape_underscores=False
    )
    return "\n\n".join([str(converter.convert_soup(soup)), *definitions])


def _missing_package(kind: str, package: str) -> MissingExtra:
    return MissingExtra(
        f"{kind} need the package {package}: pip install 'masis-workbench[documents]'."
    )
