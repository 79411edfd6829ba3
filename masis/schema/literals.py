"""Values that programs wrote as text: JSON, Python, numpy and pandas, documents of LangChain and
LlamaIndex.

A table has one text in each cell, so libraries write a list into it as they print it: ``["a",
"b"]``, ``['a', 'b']``, ``['a' 'b']``, ``array(['a', 'b'], dtype=object)``,
``[Document(page_content='a', metadata={})]``. Nothing is executed: the text is read token by token,
in time that grows with its length.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, NamedTuple

from masis.errors import InputError
from masis.schema.documents import read_document
from masis.schema.limits import LEVELS, VALUES

MOST_NESTED_TEXT = 16 * 1024 * 1024
"""Characters of a value inside of a text that are read; a longer text stays text."""


class UnreadableLiteral(Exception):
    """A text begins like a list or an object, and goes on otherwise."""


def parse_value(value: Any) -> Any:
    """Return the list or object that a text holds as JSON or as a library prints it; any other
    value as it is.
    """
    try:
        return _read_nested(value) if isinstance(value, str) else value
    except UnreadableLiteral:
        return value


def looks_like_a_list(text: str) -> bool:
    """Return whether a text begins as only a list, an object or a document begins that a program
    wrote.
    """
    return _OPENING.match(text) is not None


def why_unreadable(text: str) -> str | None:
    """Return why a text that looks like a list or an object can't be read as one; None where it
    can, or isn't one.
    """
    if not looks_like_a_list(text):
        return None
    try:
        _read_nested(text)
    except UnreadableLiteral as error:
        return str(error)
    return None


_OPENING = re.compile(
    r"""\s*+(?:
        \[\s*+(?:[\[({]\s*+)*+["'](?=\S)                # ['a', [["a", [('a'
      | \{\s*+["'](?=\S)                               # {'a'
      | (?:\[\s*+)*+(?:\w++\.)*+(?:
            (?:array|list|tuple|set|frozenset|deque|OrderedDict|defaultdict)\(\s*+[\[({<]
          | (?:Document|NodeWithScore|TextNode)\(\w++=
        )
      | page_content=["']
    )""",
    re.VERBOSE,
)
"""A bracket and a quote in prose, as in ``("the Agreement") is``, begin no list; nor do curly
quotes.
"""

_STRING = r"""
    [bBrRuU]{0,2}(?:
        '{3}(?:[^'\\]|\\.|'(?!''))*+'{3} | "{3}(?:[^"\\]|\\.|"(?!""))*+"{3}
      | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+"
    )
  | \u201c[^\u201c\u201d]*+\u201d | \u2018[^\u2018\u2019]*+\u2019
"""
"""A text in quotes; a spreadsheet's autocorrection makes them curly."""

_TOKEN = re.compile(
    rf"""\s*+(?:
        (?P<string>{_STRING})
      | (?P<number>[+-]?(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.]))
      | (?P<name>[+-]?[^\W\d]\w*+(?:\.\w++)*+)
      | (?P<object><[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>)   # <NodeRelationship.SOURCE: '1'>, <class 'list'>
      | (?P<cut>\.\.\.|\u2026)
      | (?P<sign>[\[\](){{}}:,=])
    )""",
    re.VERBOSE | re.DOTALL,
)

_MISSING = frozenset({"none", "null", "nan", "nat", "na", "undefined"})
"""Names that say that nothing is there, without what stands before the last point: ``np.nan``,
``pd.NA``.
"""

_WRAPPERS = frozenset(
    """array asarray list tuple set frozenset deque series ndarray dict ordereddict defaultdict
    str_ bytes_ bool_ int_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    decimal uuid""".split()
)
"""Functions whose value is their first argument (the last of ``defaultdict``)."""

_DOCUMENT_CLASS = re.compile(r"(?:Document|Node|NodeWithScore|Chunk|Passage|SearchResult|Source)\Z")
"""How the names of classes end that hold a chunk of evidence; ``print(text='a')`` is code and holds
none.
"""


class _Opaque(NamedTuple):
    """A value without a form of its own in JSON, such as a date: what is written."""

    written: str


class _LiteralToken(NamedTuple):
    kind: str
    text: str
    start: int


class _Items(NamedTuple):
    """What stands between two brackets: items, those with a key or a name, and whether commas
    separate them.
    """

    values: list[Any]
    keys: dict[str, Any]
    has_commas: bool


_JSON = json.JSONDecoder(parse_constant=lambda _: None)
"""Reads NaN as null: nothing is there. Made once, which takes as long as reading a short list."""


def _read_nested(text: str) -> Any:
    if len(text) > MOST_NESTED_TEXT:
        return text
    opening = text.lstrip()[:1]
    if opening in ("[", "{"):
        try:
            return _JSON.decode(text)
        except (ValueError, RecursionError):
            pass
    if opening not in ("[", "{", "(") and not looks_like_a_list(text):
        return text
    if _can_use_ast(text):
        try:
            read = _unwrap_opaque(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            read = _LiteralReader(text).read()
    else:
        read = _LiteralReader(text).read()
    return read if isinstance(read, list | dict) else text


_MOST_AST_CHARACTERS = 1024 * 1024
"""Characters that Python's own parser is given, which takes a hundred times as much memory."""

_ADJACENT_STRINGS = tuple(
    quote + after for quote in ("'", '"') for after in (" ", "\n", "\r", "\t", "'", '"')
)
"""A quote without a comma behind it: Python's own parser joins texts that stand side by side."""

_ODD_ESCAPE = re.compile(r"""\\[^\\'"abfnrtvxuUN0-7]""")
"""A backslash without a meaning, of which Python's own parser warns."""


def _can_use_ast(text: str) -> bool:
    """Return whether Python's own parser, several times as fast as ours, reads a text
    as ours does.
    """
    if len(text) > _MOST_AST_CHARACTERS or any(each in text for each in _ADJACENT_STRINGS):
        return False
    return "\\" not in text or _ODD_ESCAPE.search(text) is None


class _LiteralReader:
    """One text, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._values = text, 0, 0
        self._next = self._token()

    def read(self) -> Any:
        if self._text.lstrip().startswith("page_content="):  # as str(document) of LangChain has it
            return _unwrap_opaque(_chunk_of_printed_document(self._arguments(end="", level=1).keys))
        value = self._value(1)
        if self._next.kind != "end":
            raise self._unexpected_token()
        return _unwrap_opaque(value)

    def _token(self) -> _LiteralToken:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].lstrip()
            return _LiteralToken("other" if rest else "end", rest[:1], len(self._text) - len(rest))
        self._at = match.end()
        kind = str(match.lastgroup)
        return _LiteralToken(kind, match[kind], match.start(kind))

    def _take(self, sign: str = "") -> _LiteralToken:
        token = self._next
        if sign and token.text != sign:
            raise self._unexpected_token()
        self._next = self._token()
        return token

    def _is(self, sign: str) -> bool:
        return self._next.kind == "sign" and self._next.text == sign

    def _unexpected_token(self) -> UnreadableLiteral:
        token = self._next
        if token.kind == "cut":
            return UnreadableLiteral(f"items were left out at character {token.start + 1} (...)")
        if token.kind == "end":
            return UnreadableLiteral("it is cut off at the end")
        if token.text[:1] in ("'", '"'):
            return UnreadableLiteral(f"the quote at character {token.start + 1} isn't closed")
        return UnreadableLiteral(f"it can't be followed from character {token.start + 1}")

    def _value(self, level: int, *, names: bool = False) -> Any:
        """Read one value; ``names`` says that a bare name counts as one, as in ``dtype=object``."""
        self._values += 1
        if level > LEVELS:
            raise UnreadableLiteral(f"it is nested more than {LEVELS} levels deep")
        if self._values > VALUES:
            raise UnreadableLiteral(f"it holds more than {VALUES:,} values")
        token = self._next
        if token.kind == "string":
            return _parse_string(self._take().text)
        if token.kind == "number":
            return _parse_number(self._take().text)
        if token.kind == "object":
            return _Opaque(self._take().text)
        if token.kind == "name":
            return self._name(level, names)
        if token.kind == "sign" and token.text in "[({":
            return self._bracket(level)
        raise self._unexpected_token()

    def _name(self, level: int, names: bool) -> Any:
        token = self._take()
        name = token.text.lstrip("+-").rpartition(".")[2]
        if self._is("("):
            return self._call(name, token.start, level)
        if name.lower() in _MISSING:
            return None
        if name in ("True", "true", "False", "false"):
            return name in ("True", "true")
        if names or name.lower() in ("inf", "infinity"):
            return _Opaque(token.text)
        raise UnreadableLiteral(f"it can't be followed from character {token.start + 1}")

    def _call(self, name: str, start: int, level: int) -> Any:
        self._take("(")
        given = self._arguments(")", level + 1)
        self._take(")")
        if name.lower() in _WRAPPERS and given.values:
            value = given.values[-1 if name.lower() == "defaultdict" else 0]
            pairs = name.lower().endswith("dict") and isinstance(value, list)
            return (
                dict(value)
                if pairs and all(isinstance(each, list) and len(each) == 2 for each in value)
                else value
            )
        if (
            _DOCUMENT_CLASS.search(name)
            and given.keys
            and (found := _chunk_of_printed_document(given.keys)) is not None
        ):
            return found
        if given.keys and not given.values:
            return given.keys
        return _Opaque(self._text[start : self._next.start].rstrip())

    def _arguments(self, end: str, level: int) -> _Items:
        """Read arguments up to a bracket; named ones may have blanks alone between them, as ``str``
        writes.
        """
        values, keys = list[Any](), dict[str, Any]()
        while not (self._is(end) if end else self._next.kind == "end"):
            value: Any
            if self._next.kind == "name":
                before = self._at, self._next
                name = self._take().text
                if self._is("="):
                    self._take("=")
                    keys[name] = self._value(level, names=True)
                    if self._is(","):
                        self._take()
                    continue
                self._at, self._next = before
            value = self._value(level)
            values.append(value)
            if not self._is(end) and end:
                self._take(",")
        return _Items(values, keys, True)

    def _bracket(self, level: int) -> Any:
        opening = self._take().text
        closing = {"[": "]", "(": ")", "{": "}"}[opening]
        items = self._items(closing, level + 1)
        self._take(closing)
        if items.keys:
            if items.values:
                raise UnreadableLiteral("an object in it has a value without a key")
            return items.keys
        if opening == "{" and not items.values:
            return {}
        if opening == "(" and len(items.values) == 1 and not items.has_commas:
            return items.values[0]
        return items.values

    def _items(self, closing: str, level: int) -> _Items:
        values, keys = list[Any](), dict[str, Any]()
        runs: list[list[Any]] = []  # between commas
        run: list[Any] = []
        wrapped = False
        while not self._is(closing):
            if self._is(",") and run:
                self._take()
                runs.append(run)
                run = []
                continue
            place = self._next.start
            value = self._value(level)
            if closing == "}" and self._is(":"):
                self._take(":")
                key = value.written if isinstance(value, _Opaque) else value
                if isinstance(key, list | dict):
                    raise self._unexpected_token()
                held = [self._value(level)]
                while self._next.kind == "string" and isinstance(held[-1], str):
                    held.append(self._value(level))  # a long text, wrapped by pprint
                keys[key if isinstance(key, str) else str(key)] = (
                    "".join(held) if len(held) > 1 else held[0]
                )
                if not self._is(closing):
                    self._take(",")
                continue
            wrapped = wrapped or (bool(run) and "\n" in self._text[max(place - 200, 0) : place])
            run.append(value)
        has_commas = bool(runs)
        runs.append(run)
        for each in runs:
            values += self._read_items(each, closing, has_commas, wrapped)
        return _Items(values, keys, has_commas)

    def _read_items(
        self, run: list[Any], closing: str, has_commas: bool, wrapped: bool
    ) -> list[Any]:
        """Return the items that stand without a comma between them.

        numpy separates the items of an array by blanks and uses no comma; Python, and pprint with a
        long text, write one text in several pieces, of which all but the last end in a blank.
        """
        if len(run) < 2:
            return run
        texts = all(isinstance(each, str) for each in run)
        if texts and (has_commas or closing == ")"):
            return ["".join(run)]
        if has_commas or closing != "]":
            raise UnreadableLiteral("a comma is missing in it")
        if texts and wrapped and all(each[-1:].isspace() for each in run[:-1]):
            raise UnreadableLiteral("it may be one text that was wrapped, or several")
        return run


_ESCAPE = re.compile(
    r"""\\(?:([\\'"abfnrtv\n])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))"""
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}


def _parse_string(token: str) -> str:
    """Return the text that a token in quotes stands for; an escape without meaning stays, as Python
    has it.
    """
    quote = re.search("[\"'\u201c\u2018]", token)
    start = quote.start() if quote else 0
    prefix, body = token[:start].lower(), token[start:]
    width = 3 if body[:3] in ("'''", '"""') and len(body) >= 6 else 1
    body = body[width:-width]
    if "r" not in prefix and token[start] in "\"'":
        body = _ESCAPE.sub(_unescape_literal, body)
    return body.encode("latin-1", "replace").decode("utf-8", "replace") if "b" in prefix else body


def _unescape_literal(found: re.Match[str]) -> str:
    if (char := found[1]) is not None:
        return _ESCAPED.get(char, char)
    return chr(int(found[2], 8)) if found[2] else chr(int(found[3] or found[4] or found[5], 16))


def _parse_number(token: str) -> int | float | _Opaque:
    plain = token.replace("_", "")
    if len(plain) > 400:  # the interpreter refuses thousands of digits
        return _Opaque(token)
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _chunk_of_printed_document(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return a document that a library printed as a chunk; None where it has no text."""
    about = {key: value for key, value in fields.items() if value is not None}
    node = about.get("node")
    if isinstance(node, dict):  # LlamaIndex: a node with its score
        return node | ({"score": about["score"]} if "score" in about else {})
    resource = about.get("text_resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        about["text"] = resource["text"]
    about.setdefault("id", about.get("id_", about.get("node_id")))
    try:
        read = read_document(_unwrap_opaque(about), 0)
    except InputError:
        return None
    found = {"id": read.id, "text": read.content, "source": read.path, "score": read.score}
    kept = {key: value for key, value in found.items() if value is not None}
    return kept | ({"metadata": dict(read.metadata)} if read.metadata else {})


def _unwrap_opaque(value: Any) -> Any:
    if isinstance(value, _Opaque):
        return value.written
    if isinstance(value, dict):
        return {str(key): _unwrap_opaque(item) for key, item in value.items()}
    if isinstance(value, set):  # whose items have lost their order
        raise ValueError
    if isinstance(value, list | tuple):
        return [_unwrap_opaque(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
