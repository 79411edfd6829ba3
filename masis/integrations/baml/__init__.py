"""BAML's parser as the output validator (REQ-CRITIC-028): ``output_validator = "baml"``.

    pip install '.[baml]'

The parser reads what strict reading refuses: quotes of the wrong kind, commas too many or missing,
comments, ``True``. It also guesses: it fills in what is missing, takes the first of several
objects, closes what was cut off, drops what it can't place. Each of its readings is therefore held
against the text (``masis/llm/client/json_repair.py``), and a reply that does not say for certain
what was read stays unread. The names of fields and single values in place of lists are then put
into the record's form, and pydantic has the last word. No client is generated, no server asked and
no file written.
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
from masis.integrations import require
from masis.llm.client.json_repair import RepairRefused, VerifiedRepair, verify_repair
from masis.schema.audit import Revision

require("The output validator 'baml' needs a package that is not installed", "baml", "baml_py")
from baml_py import BamlRuntime

NAME = "baml"
LONGEST = 100_000
"""Characters of a reply that BAML is given: its parser can't be interrupted."""
MOST_BRACKETS = 800
"""Brackets and braces in a reply that BAML is given: its time grows with their square."""
DEEPEST = 16
"""How deep they may stand in each other: 300 levels take seconds, 1,000 minutes, 20,000 the
process.
"""
ENDS_TRIED = 3
_BRACKETS = re.compile(r"[{}\[\]]")
_JOINERS = re.compile(r"[\s_\-]+")
_FORMS = """
client<llm> NobodyIsAsked {
  provider openai
  options {
    model "none"
    api_key "none"
  }
}
type AnyValue = int | float | bool | string | null | AnyValue[] | map<string, AnyValue>
function Read() -> map<string, AnyValue> {
  client NobodyIsAsked
  prompt #"none"#
}
"""
"""What BAML's runtime is asked for: to read any object, its fields in their order."""
_SIGNS = re.compile(r'("(?:[^"\\]|\\.)*+\\?(?:"|\Z))|[,}\]]', re.DOTALL)


class BamlValidator:
    """What pydantic checks, and the record of the revision aligned by BAML; replies out of form are
    mended.

    ``answer`` is a team's own model for answers that are JSON: one that is not quite JSON is
    mended, where what it says is certain, and leaves as JSON.
    """

    name = NAME

    def __init__(self, answer: type[BaseModel] | None = None) -> None:
        self._plain, self._answer = PydanticValidator(name=NAME), answer

    def validate(self, revision: Revision, context: AuditContext) -> Revision:
        """The revision; of an answer in the team's form, the form put right. Raises
        InvalidRevision.
        """
        checked = self._plain.validate(revision, context)
        _aligned_record(checked)
        if self._answer is None or checked.revised_answer == context.answer:
            return checked
        return self._in_form(checked, self._answer)

    def repair(self, text: str, shape: type[BaseModel]) -> RepairedRecord | None:
        """The record in a reply, as it stands there; None where that is not certain."""
        return repair_record(text, shape)

    def _in_form(self, revision: Revision, form: type[BaseModel]) -> Revision:
        try:
            form.model_validate_json(revision.revised_answer)
        except ValidationError:
            found = repair_record(revision.revised_answer, form)
            if found is None:
                why = f"The revised answer is no {form.__name__}, and can't be mended into one."
                raise InvalidRevision(why, raw=revision.revised_answer) from None
            answer = form.model_validate(found.value).model_dump_json()
            repairs = ", ".join(found.repairs)
            note = f"{revision.changes_explanation} (Its form was mended: {repairs}.)".strip()
            return revision.model_copy(
                update={"revised_answer": answer, "changes_explanation": note}
            )
        return revision


validator = BamlValidator
"""What ``output_validator = "baml"`` names."""


def repair_record(text: str, shape: type[BaseModel]) -> RepairedRecord | None:
    """The one record of this shape in a text, where everything read stands there and nothing else;
    else None.
    """
    spelt = "|".join(re.escape(name).replace("_", r"[ _-]?") for name in shape.model_fields)
    field = rf"(?:{spelt})[\"'`]?\s{{0,50}}:"
    # Which of several records counts, and what an object around one says of it, is not for a guess.
    begins = [
        each.start() for each in re.finditer(rf"\{{\s{{0,200}}[\"'`]?{field}", text, re.IGNORECASE)
    ]
    if len(begins) != 1:
        return None
    start = begins[0]
    if text.count("{", 0, start) > text.count("}", 0, start) or not _is_within_limits(text, start):
        return None
    schema = shape.model_json_schema()
    names = {
        name
        for each in (schema, *schema.get("$defs", {}).values())
        for name in each.get("properties", {})
    }
    for read in (
        each
        for end in _possible_ends(text, start)
        for each in (text[start:end], _space_out(text[start:end]))
    ):
        try:
            verified = verify_repair(
                _parse_with_baml(read), text, start, names, _closed_set_words(schema)
            )
        except RepairRefused:
            continue
        # Behind it no field may stand: the record would be a part of another, such as a quoted one.
        if not re.search(rf"(?<!\w){field}", text[verified.end :], re.IGNORECASE):
            return _valid_record(verified, shape)
    return None


@cache
def _runtime() -> Any:
    """Return BAML's runtime; no variable of the environment is given to it."""
    return BamlRuntime.from_files("masis", {"forms.baml": _FORMS}, {})


def _parse_with_baml(text: str) -> dict[str, Any]:
    """Return the object that BAML reads. Raises RepairRefused where it reads none."""
    runtime, none = _runtime(), types.ModuleType("masis_forms")
    context = runtime.create_context_manager()
    try:
        found = runtime.parse_llm_response(
            "Read", text, none, none, none, False, context, None, None, {}
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (its own error, or a panic, which is no Exception)
        raise RepairRefused(f"BAML reads nothing ({type(error).__name__})") from None
    if not isinstance(found, dict):
        raise RepairRefused("BAML reads no object")
    return found


def _is_within_limits(text: str, start: int) -> bool:
    """Whether the text is within the limits for BAML: its size, its number of brackets and their
    nesting.
    """
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
    """Where the record may end: at one of the last braces, or, where its own is missing, with the
    text.
    """
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
    own = {word for word in schema.get("enum", ()) if isinstance(word, str)}
    return own.union(*map(_closed_set_words, schema.values()))


def _space_out(text: str) -> str:
    """The text with a line for each comma and bracket outside of texts in quotes.

    BAML takes a word to end at a comma only where a blank or a new line follows.
    """
    return _SIGNS.sub(
        lambda found: found[1] or (",\n" if found[0] == "," else f"\n{found[0]}"), text
    )


def _valid_record(verified: VerifiedRepair, shape: type[BaseModel]) -> RepairedRecord | None:
    """Return the record as written, if it is one; else with its names and lists put into form."""
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
    """Return the value with fields under their right names, and a single value in a list where one
    is due.

    Raises RepairRefused where two fields have the same name.
    """
    schema = defs.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if schema.get("type") == "array":
        if not isinstance(value, list):
            repairs.append("one value in place of a list")
            value = [value]
        return [_fit_to_schema(each, schema.get("items", {}), defs, repairs) for each in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    right = {_fold_name(name): name for name in schema["properties"]}
    made: dict[str, Any] = {}
    for name, each in value.items():
        own = str(right.get(_fold_name(name), name))
        if own in made:
            raise RepairRefused("two fields have the same name")
        if own != name:
            repairs.append("a name spelt otherwise")
        made[own] = _fit_to_schema(each, schema["properties"].get(own, {}), defs, repairs)
    return made


def _fold_name(name: str) -> str:
    return _JOINERS.sub("", name).casefold()


def _is(value: dict[str, Any], shape: type[BaseModel]) -> bool:
    try:
        shape.model_validate(value)
    except (ValidationError, RecursionError):
        return False
    return True


def _aligned_record(revision: Revision) -> None:
    """Raise InvalidRevision where BAML does not read the revision's record as what it is."""
    fields = set(Revision.model_fields) - {"judged_by", "changes"}
    record = revision.model_dump(mode="json", include=fields)
    try:
        whole = _parse_with_baml(revision.model_dump_json(include=fields))
    except RepairRefused as error:
        raise InvalidRevision(
            f"The revision is out of form: {error}.", raw=revision.revised_answer
        ) from None
    if whole != record:
        raise InvalidRevision("The revision is out of form.", raw=revision.revised_answer)
