"""Parses values that programs wrote as text.

A table cell holds one text, so libraries write a list into it as they print it: ``["a", "b"]``,
``['a', 'b']``, ``['a' 'b']``, ``array(['a', 'b'], dtype=object)`` or ``[Document(page_content='a',
metadata={})]``. Supported are JSON, Python, numpy, pandas and the documents of LangChain and
LlamaIndex. Nothing is executed: the text is read token by token, in time linear in its length.
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
"""The longest value inside a text that is parsed, in characters. A longer one stays text."""


class UnreadableLiteral(Exception):
    """A text starts like a list or an object but isn't one."""


def parse_value(value: Any) -> Any:
    """Return the list or object that a text holds, as JSON or as a library prints it.

    Any other value is returned unchanged.
    """
    try:
        return _read_nested(value) if isinstance(value, str) else value
    except UnreadableLiteral:
        return value


def looks_like_a_list(text: str) -> bool:
    """Return whether a text starts in a way that only program output does."""
    return _OPENING.match(text) is not None


def why_unreadable(text: str) -> str | None:
    """Return why a text that looks like a list or an object can't be read as one.

    Returns None if it can be read, or doesn't look like one.
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
"""The start of a list, an object or a document that a program wrote.

Prose doesn't match: in ``("the Agreement") is`` the bracket isn't square, and curly quotes aren't
quotes of a program. The quantifiers are possessive so that a long run of brackets or names takes
linear time.
"""

_STRING = r"""
    [bBrRuU]{0,2}(?:
        '{3}(?:[^'\\]|\\.|'(?!''))*+'{3} | "{3}(?:[^"\\]|\\.|"(?!""))*+"{3}
      | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+"
    )
  | \u201c[^\u201c\u201d]*+\u201d | \u2018[^\u2018\u2019]*+\u2019
"""
"""A text in quotes, including the curly ones that a spreadsheet's autocorrection makes."""

_TOKEN = re.compile(
    rf"""\s*+(?:
        (?P<string>{_STRING})
      | (?P<number>[+-]?(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.]))
      | (?P<name>[+-]?[^\W\d]\w*+(?:\.\w++)*+)
        # <NodeRelationship.SOURCE: '1'>, <class 'list'>
      | (?P<object><[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>)
        # an ellipsis, as numpy and pandas print for items that they leave out
      | (?P<cut>\.\.\.|\u2026)
      | (?P<sign>[\[\](){{}}:,=])
    )""",
    re.VERBOSE | re.DOTALL,
)
"""One token. The quantifiers are possessive, since a token that doesn't fit is an error anyway.

DOTALL lets an escaped line break inside a string match.
"""

_MISSING = frozenset({"none", "null", "nan", "nat", "na", "undefined"})
"""Names for a missing value, after the last dot: ``nan`` of ``np.nan``, ``na`` of ``pd.NA``."""

_WRAPPERS = frozenset(
    """array asarray list tuple set frozenset deque series ndarray dict ordereddict defaultdict
    str_ bytes_ bool_ int_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    decimal uuid""".split()
)
"""Functions whose value is their first argument, or the last one for ``defaultdict``."""

_DOCUMENT_CLASS = re.compile(r"(?:Document|Node|NodeWithScore|Chunk|Passage|SearchResult|Source)\Z")
"""Class names of evidence chunks, matched at the end of the name.

Other calls, such as ``print(text='a')``, are code and hold no chunk.
"""


class _Opaque(NamedTuple):
    """A value that JSON has no type for, such as a date, as it was written."""

    written: str


class _LiteralToken(NamedTuple):
    kind: str
    text: str
    start: int


class _Items(NamedTuple):
    """The content of a pair of brackets.

    ``values`` are plain items and ``keys`` are items with a key or name; ``has_commas`` says
    whether commas separate them.
    """

    values: list[Any]
    keys: dict[str, Any]
    has_commas: bool


_JSON = json.JSONDecoder(parse_constant=lambda _: None)
"""Reads NaN as null, since a missing value is null in JSON.

It is created once: creating a decoder takes as long as reading a short list.
"""


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
"""The longest text given to ``ast``, which needs a hundred times as much memory."""

_ADJACENT_STRINGS = tuple(
    quote + after for quote in ("'", '"') for after in (" ", "\n", "\r", "\t", "'", '"')
)
"""A closing quote without a comma, as in ``['a' 'b']``, where ``ast`` would join both strings."""

_ODD_ESCAPE = re.compile(r"""\\[^\\'"abfnrtvxuUN0-7]""")
"""A backslash without a meaning, about which ``ast`` would warn."""


def _can_use_ast(text: str) -> bool:
    """Return whether ``ast``, which is several times faster, reads a text as this module does."""
    if len(text) > _MOST_AST_CHARACTERS or any(pattern in text for pattern in _ADJACENT_STRINGS):
        return False
    return "\\" not in text or _ODD_ESCAPE.search(text) is None


class _LiteralReader:
    """Parses one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._values = text, 0, 0
        self._next = self._token()

    def read(self) -> Any:
        # str(document) of LangChain is "page_content='...' metadata={...}" without a class name
        if self._text.lstrip().startswith("page_content="):
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
        return UnreadableLiteral(f"it can't be read from character {token.start + 1}")

    def _value(self, level: int, *, names: bool = False) -> Any:
        """Read one value; ``names`` accepts a bare name too, as in ``dtype=object``."""
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
        raise UnreadableLiteral(f"it can't be read from character {token.start + 1}")

    def _call(self, name: str, start: int, level: int) -> Any:
        self._take("(")
        arguments = self._arguments(")", level + 1)
        self._take(")")
        if name.lower() in _WRAPPERS and arguments.values:
            value = arguments.values[-1 if name.lower() == "defaultdict" else 0]
            pairs = name.lower().endswith("dict") and isinstance(value, list)
            return (
                dict(value)
                if pairs and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
                else value
            )
        if (
            _DOCUMENT_CLASS.search(name)
            and arguments.keys
            and (chunk := _chunk_of_printed_document(arguments.keys)) is not None
        ):
            return chunk
        if arguments.keys and not arguments.values:
            return arguments.keys
        return _Opaque(self._text[start : self._next.start].rstrip())

    def _arguments(self, end: str, level: int) -> _Items:
        """Read arguments up to a bracket.

        Named arguments may be separated by blanks alone, as ``str(document)`` of LangChain writes
        them.
        """
        values, keys = list[Any](), dict[str, Any]()
        while not (self._is(end) if end else self._next.kind == "end"):
            value: Any
            if self._next.kind == "name":
                # Whether a name is the name of an argument or a value is only known from the next
                # token, so the reader may have to go back.
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
        # In Python, parentheses around one value without a comma are no tuple.
        if opening == "(" and len(items.values) == 1 and not items.has_commas:
            return items.values[0]
        return items.values

    def _items(self, closing: str, level: int) -> _Items:
        values, keys = list[Any](), dict[str, Any]()
        runs: list[list[Any]] = []  # the values between two commas
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
                parts = [self._value(level)]
                while self._next.kind == "string" and isinstance(parts[-1], str):
                    # Pprint wraps a long text into several strings.
                    parts.append(self._value(level))
                keys[key if isinstance(key, str) else str(key)] = (
                    "".join(parts) if len(parts) > 1 else parts[0]
                )
                if not self._is(closing):
                    self._take(",")
                continue
            wrapped = wrapped or (bool(run) and "\n" in self._text[max(place - 200, 0) : place])
            run.append(value)
        has_commas = bool(runs)
        runs.append(run)
        for items in runs:
            values += self._read_items(items, closing, has_commas, wrapped)
        return _Items(values, keys, has_commas)

    def _read_items(
        self, run: list[Any], closing: str, has_commas: bool, wrapped: bool
    ) -> list[Any]:
        """Return the items of a run without commas.

        numpy separates the items of an array by blanks. Python and pprint write a long text in
        several pieces, all of which except the last end in a blank.
        """
        if len(run) < 2:
            return run
        texts = all(isinstance(item, str) for item in run)
        if texts and (has_commas or closing == ")"):
            return ["".join(run)]
        if has_commas or closing != "]":
            raise UnreadableLiteral("a comma is missing in it")
        if texts and wrapped and all(item[-1:].isspace() for item in run[:-1]):
            raise UnreadableLiteral("it may be one text that was wrapped, or several")
        return run


_ESCAPE = re.compile(
    r"""\\(?:([\\'"abfnrtv\n])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})"""
    # Python accepts code points up to U+10FFFF.
    r"""|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))"""
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}


def _parse_string(token: str) -> str:
    """Return the value of a quoted string; an unknown escape stays, as in Python."""
    quote = re.search("[\"'\u201c\u2018]", token)
    start = quote.start() if quote else 0
    prefix, body = token[:start].lower(), token[start:]
    # An empty string in triple quotes has six of them; '' alone has two.
    width = 3 if body[:3] in ("'''", '"""') and len(body) >= 6 else 1
    body = body[width:-width]
    if "r" not in prefix and token[start] in "\"'":
        body = _ESCAPE.sub(_unescape_literal, body)
    # Each \xNN of a bytes literal became the character with that number. Latin-1 turns these back
    # into bytes.
    return body.encode("latin-1", "replace").decode("utf-8", "replace") if "b" in prefix else body


def _unescape_literal(match: re.Match[str]) -> str:
    if (char := match[1]) is not None:
        return _ESCAPED.get(char, char)
    return chr(int(match[2], 8)) if match[2] else chr(int(match[3] or match[4] or match[5], 16))


def _parse_number(token: str) -> int | float | _Opaque:
    plain = token.replace("_", "")
    # int() refuses more than 4,300 digits by default (CVE-2020-10735).
    if len(plain) > 400:
        return _Opaque(token)
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _chunk_of_printed_document(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return a printed document as a chunk, or None if it has no text."""
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
    fields_read = {"id": read.id, "text": read.content, "source": read.path, "score": read.score}
    kept = {key: value for key, value in fields_read.items() if value is not None}
    return kept | ({"metadata": dict(read.metadata)} if read.metadata else {})


def _unwrap_opaque(value: Any) -> Any:
    if isinstance(value, _Opaque):
        return value.written
    if isinstance(value, dict):
        return {str(key): _unwrap_opaque(item) for key, item in value.items()}
    if isinstance(value, set):  # ast has lost the order of its items, so parse it again
        raise ValueError
    if isinstance(value, list | tuple):
        return [_unwrap_opaque(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
