"""BAML's parser as the output validator (REQ-CRITIC-028): ``output_validator = "baml"``.

    pip install '.[baml]'

BAML's parser accepts invalid JSON: wrong quotes, extra or missing commas, comments, ``True``. It
also guesses: it adds missing values, chooses the first of several objects, closes truncated ones,
and drops parts that it doesn't understand. So each result is compared with the text
(``masis/llm/client/json_repair.py``), and an ambiguous reply is rejected. Then the names of fields
and single values instead of lists are corrected, and pydantic validates the record. This module
doesn't generate a client, call a server or write files.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from masis.audit.context import AuditContext
from masis.audit.output_validation import PydanticValidator, RepairedRecord
from masis.errors import InvalidRevision
from masis.llm.client.json_repair import RepairRefused, VerifiedRepair, verify_repair
from masis.schema.audit import Revision
from masis.schema.extras import require

require("The output validator 'baml' needs a package that isn't installed", "baml", "baml_py")
from baml_py import BamlRuntime

NAME = "baml"
LONGEST = 100_000
"""Maximum number of characters of a reply that BAML parses, because its parser can't be
interrupted.
"""
MOST_BRACKETS = 800
"""Maximum number of brackets and braces in a reply, because the parser's time grows with their
square.
"""
DEEPEST = 16
"""The deepest nesting of brackets. The parser needs seconds for 300 levels and minutes for 1,000,
and 20,000 end the process.
"""
ENDS_TRIED = 3
"""How many of the last braces are tried as the end of the record."""
_BRACKETS = re.compile(r"[{}\[\]]")
_JOINERS = re.compile(r"[\s_\-]+")
_FORMS = """
client<llm> Unused {
  provider openai
  options {
    model "none"
    api_key "none"
  }
}
type AnyValue = int | float | bool | string | null | AnyValue[] | map<string, AnyValue>
function Read() -> map<string, AnyValue> {
  client Unused
  prompt #"none"#
}
"""
"""BAML source with a function that returns any object, with its fields in order. BAML requires a
client, which is never called.
"""
# A text in double quotes (group 1), which may be unfinished, or a comma or a closing bracket.
_SIGNS = re.compile(r'("(?:[^"\\]|\\.)*+\\?(?:"|\Z))|[,}\]]', re.DOTALL)


class BamlValidator:
    """Validates with pydantic and BAML, and repairs malformed replies.

    ``answer`` is a custom model for answers that are JSON. A malformed answer is repaired if its
    content is unambiguous.
    """

    name = NAME

    def __init__(self, answer: type[BaseModel] | None = None) -> None:
        self._plain, self._answer = PydanticValidator(name=NAME), answer

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """Return the revision, with its answer repaired if the team has a model for answers.

        Raises InvalidRevision.
        """
        checked = self._plain.validate(revision, context)
        _check_alignment(checked)
        if self._answer is None or checked.revised_answer == context.answer:
            return checked
        return self._in_form(checked, self._answer)

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """Return the record in a reply, or None if it's ambiguous."""
        return repair_record(text, shape)

    def _in_form(self, revision: Revision, form: type[BaseModel]) -> Revision:
        try:
            form.model_validate_json(revision.revised_answer)
        except ValidationError:
            repaired = repair_record(revision.revised_answer, form)
            if repaired is None:
                why = f"The revised answer isn't a valid {form.__name__}, and couldn't be repaired."
                raise InvalidRevision(why, raw=revision.revised_answer) from None
            answer = form.model_validate(repaired.value).model_dump_json()
            mended = f"(Its form was mended: {', '.join(repaired.repairs)}.)"
            note = f"{revision.changes_explanation} {mended}".strip()
            return revision.model_copy(
                update={"revised_answer": answer, "changes_explanation": note}
            )
        return revision


validator = BamlValidator
"""The validator of ``output_validator = "baml"``."""


def repair_record(text: str, shape: type[BaseModel]) -> RepairedRecord | None:
    """Return the only record of this shape in a text.

    Returns None if there's another record, or if the record has anything that isn't in the text.
    """
    # A field's name with its separators, an optional quote and a colon, as in '"issue type" :'.
    spellings = "|".join(re.escape(name).replace("_", r"[ _-]?") for name in shape.model_fields)
    field = rf"(?:{spellings})[\"'`]?\s{{0,50}}:"
    # With several records, or an object around one, it's ambiguous which record is meant.
    starts = [
        match.start()
        for match in re.finditer(rf"\{{\s{{0,200}}[\"'`]?{field}", text, re.IGNORECASE)
    ]
    if len(starts) != 1:
        return None
    start = starts[0]
    if text.count("{", 0, start) > text.count("}", 0, start) or not _is_within_limits(text, start):
        return None
    schema = shape.model_json_schema()
    names = {
        name
        for part in (schema, *schema.get("$defs", {}).values())
        for name in part.get("properties", {})
    }
    for candidate in (
        candidate
        for end in _possible_ends(text, start)
        for candidate in (text[start:end], _space_out(text[start:end]))
    ):
        try:
            verified = verify_repair(
                _parse_with_baml(candidate), text, start, names, _closed_set_words(schema)
            )
        except RepairRefused:
            continue
        # If another field follows, the record is a part of another one, such as a quoted record.
        if not re.search(rf"(?<!\w){field}", text[verified.end :], re.IGNORECASE):
            return _valid_record(verified, shape)
    return None


@cache
def _runtime() -> Any:
    """Return BAML's runtime, without any environment variables."""
    return BamlRuntime.from_files("masis", {"forms.baml": _FORMS}, {})


def _parse_with_baml(text: str) -> dict[str, Any]:
    """Parse an object with BAML. Raises RepairRefused if BAML doesn't find one."""
    # BAML looks up generated types in these modules, but our function has none.
    runtime, empty = _runtime(), types.ModuleType("masis_forms")
    context = runtime.create_context_manager()
    try:
        record = runtime.parse_llm_response(
            "Read", text, empty, empty, empty, False, context, None, None, {}
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of BAML isn't an Exception)
        raise RepairRefused(f"BAML reads nothing ({type(error).__name__})") from None
    if not isinstance(record, dict):
        raise RepairRefused("BAML reads no object")
    return record


def _is_within_limits(text: str, start: int) -> bool:
    """Return whether the text's size, brackets and nesting are within the limits for BAML."""
    if len(text) - start > LONGEST:
        return False
    depth = deepest = 0
    for number, bracket in enumerate(_BRACKETS.finditer(text, start)):
        depth = depth + 1 if bracket.group() in "{[" else max(0, depth - 1)
        deepest = max(deepest, depth)
        if number >= MOST_BRACKETS or deepest > DEEPEST:
            return False
    return True


def _possible_ends(text: str, start: int) -> Iterator[int]:
    """Yield possible ends of the record: the last braces, and the end of a truncated text."""
    end = len(text)
    for _ in range(ENDS_TRIED):
        end = text.rfind("}", start, end)
        if end < 0:
            break
        yield end + 1
    yield len(text)


def _closed_set_words(schema: Any) -> set[str]:
    """Return all enum values of a schema."""
    if isinstance(schema, list):
        return set().union(*map(_closed_set_words, schema))
    if not isinstance(schema, dict):
        return set()
    own_words = {word for word in schema.get("enum", ()) if isinstance(word, str)}
    return own_words.union(*map(_closed_set_words, schema.values()))


def _space_out(text: str) -> str:
    """Add a line break to each comma and closing bracket outside of quoted texts.

    BAML only ends an unquoted word at a comma if a space or a line break follows.
    """
    return _SIGNS.sub(
        lambda match: match[1] or (",\n" if match[0] == "," else f"\n{match[0]}"), text
    )


def _valid_record(verified: VerifiedRepair, shape: type[BaseModel]) -> RepairedRecord | None:
    """Return the record, with corrected names and lists if it isn't valid otherwise."""
    if _is(verified.value, shape):
        return RepairedRecord(verified.value, verified.repairs or ("its surroundings",))
    schema, repairs = shape.model_json_schema(), list(verified.repairs)
    try:
        fitted = _fit_to_schema(verified.value, schema, schema.get("$defs", {}), repairs)
    except RepairRefused:
        return None
    return RepairedRecord(fitted, tuple(dict.fromkeys(repairs))) if _is(fitted, shape) else None


def _fit_to_schema(
    value: Any, schema: dict[str, Any], defs: dict[str, Any], repairs: list[str]
) -> Any:
    """Correct the names of fields, and put single values into lists where the schema has a list.

    Raises RepairRefused if two fields have the same name.
    """
    schema = defs.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if schema.get("type") == "array":
        if not isinstance(value, list):
            repairs.append("one value in place of a list")
            value = [value]
        return [_fit_to_schema(item, schema.get("items", {}), defs, repairs) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    spellings = {_fold_name(name): name for name in schema["properties"]}
    fitted: dict[str, Any] = {}
    for name, content in value.items():
        field_name = str(spellings.get(_fold_name(name), name))
        if field_name in fitted:
            raise RepairRefused("two fields have the same name")
        if field_name != name:
            repairs.append("a name spelt otherwise")
        fitted[field_name] = _fit_to_schema(
            content, schema["properties"].get(field_name, {}), defs, repairs
        )
    return fitted


def _fold_name(name: str) -> str:
    return _JOINERS.sub("", name).casefold()


def _is(value: dict[str, Any], shape: type[BaseModel]) -> bool:
    try:
        shape.model_validate(value)
    except (ValidationError, RecursionError):
        return False
    return True


def _check_alignment(revision: Revision) -> None:
    """Raise InvalidRevision if BAML parses the revision's record to something else."""
    fields = set(Revision.model_fields) - {"judged_by", "changes"}
    try:
        parsed = _parse_with_baml(revision.model_dump_json(include=fields))
    except RepairRefused as error:
        raise InvalidRevision(
            f"The revision is out of form: {error}.", raw=revision.revised_answer
        ) from None
    if parsed != revision.model_dump(mode="json", include=fields):
        raise InvalidRevision("The revision is out of form.", raw=revision.revised_answer)
