"""One answer as a document: Markdown, HTML or Word, with its sources as footnotes or in a section
of their own.

The question is the first heading (or ``question`` in front matter, or a section of that name), the
answer what stands under it, the evidence the footnotes that it points at, else the chunks of a
section headed Sources. HTML and Word come through Markdown, by markdownify and mammoth, which the
extra ``documents`` brings.
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
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t#]*$|^(\S.*)\n(?:=+|-{3,})[ \t]*$", re.MULTILINE)
_FOOTNOTE = re.compile(r"^\[\^([^\]\s]{1,100})\]:[ \t]*(.*(?:\n+(?:[ ]{2,}|\t).*)*)", re.MULTILINE)
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
"""What mammoth raises on what is no Word document inside."""
_FOOTNOTE_ELEMENTS = ("li", "p", "div", "aside", "dd", "td")
"""Elements of HTML that hold a footnote."""
_ADDRESS = re.compile(r"https?://[^\s<>)\]]{1,2000}")
_SECTIONS = {
    "query": "question query prompt",
    "answer": "answer response reply output",
    "evidence": (
        "sources source references evidence footnotes notes bibliography citations documents"
        " context"
    ),
}
"""Headings that say what stands under them."""


def read_document_file(content: bytes, name: str) -> dict[str, Any]:
    """Return a document as a row in the workbench's own format, whose id is its name.

    Raises InputError where it is no text, too long, or has no question, answer or sources;
    MissingExtra where the package that reads HTML or Word is not installed.
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
    _, found = read_plain(sections.get("evidence", ""))
    chunks = [chunk for chunk in found if isinstance(chunk, FoundChunk)]
    listed = [
        {"id": chunk.id or str(number), **_body_chunk(chunk.text)}
        for number, chunk in enumerate(chunks, 1)
    ]
    row["evidence"] = notes or listed
    wrong = {"query": "question", "answer": "answer", "evidence": "sources"}
    if missing := [wrong[field] for field in wrong if not row.get(field)]:
        raise InputError(
            f"holds no {' and no '.join(missing)} that can be recognised",
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
    """Return what stands under headings that say what it is; else the first heading is the
    question.
    """
    found: dict[str, list[str]] = {}
    field, at = "answer", 0
    for heading in [*_HEADING.finditer(text), None]:
        found.setdefault(field, []).append(
            text[at : heading.start() if heading else len(text)].strip()
        )
        if heading is None:
            break
        title, at = (heading[1] or heading[2]).strip("*_ "), heading.end()
        named = next(
            (
                name
                for name, words in _SECTIONS.items()
                if title.lower().rstrip(":") in words.split()
            ),
            None,
        )
        if named is None and titled and "query" not in found:
            found["query"] = [title]
            field = "answer"
        elif named is None:
            field = "answer" if field == "query" else field
            found.setdefault(field, []).append(heading[0].strip())
        else:
            field = named
            if field == "query":  # a heading of its own takes the first one's place
                found.pop(field, None)
    return {name: "\n\n".join(filter(None, parts)) for name, parts in found.items()}


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
            f"is no Word document that can be read ({error})", hint="Save it again as .docx."
        ) from error


def _html_to_markdown(html: str) -> str:
    """Return HTML as Markdown; a list item or paragraph that the text links to is a footnote."""
    try:
        from bs4 import BeautifulSoup
        from markdownify import MarkdownConverter
    except ImportError as error:
        raise _missing_package("HTML and Word documents", "markdownify") from error
    soup = BeautifulSoup(html, "html.parser")
    for each in soup.find_all(
        ["script", "style", "nav", "header", "footer", "title", "noscript", "template"]
    ):
        each.decompose()
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
        for link in target.select("a[href^='#']"):  # back to where the note is cited
            link.decompose()
        definitions.append(f"[^{label}]: {' '.join(target.get_text(' ').split())}")
        target.decompose()
    converter = MarkdownConverter(
        heading_style="ATX", escape_asterisks=False, escape_underscores=False
    )
    return "\n\n".join([str(converter.convert_soup(soup)), *definitions])


def _missing_package(what: str, package: str) -> MissingExtra:
    return MissingExtra(
        f"{what} need the package {package}: pip install 'masis-workbench[documents]'."
    )
