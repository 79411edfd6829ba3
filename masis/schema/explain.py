"""Explains pydantic's errors about a case in plain English, with the field's path and a hint."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from masis.errors import InputError
from masis.schema.wording import shorten

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    field: tuple(names.split())
    for field, names in {
        "id": "case_id _id uid uuid qid question_id example_id",
        "evidence.id": (
            "id chunk_id passage_id doc_id docid document_id source_id node_id uid uuid ref key nr"
        ),
        "query": """
            question prompt input user_input instruction q user_query original_query query_text
            question_text user_question
            frage fragestellung benutzerfrage eingabe pregunta consulta domanda quesito demande
        """,
        "answer": """
            response output completion actual_output generated_answer prediction generation
            generated_text model_answer model_response model_output llm_answer llm_output
            llm_response final_answer predicted_answer bot_answer answer_text reply result
            actual_response draft draft_answer
            antwort ki_antwort ausgabe reponse respuesta contestacion risposta
        """,
        "evidence": """
            contexts context retrieved_contexts retrieval_context documents docs passages chunks
            references sources source_documents source_nodes retrieved_documents retrieved_docs
            retrieved_chunks search_results ctxs knowledge source_chunks
            quellen quelle belege beleg kontext kontexte dokumente fundstellen textstellen nachweise
            preuves preuve contexte contextes extraits passage fuentes fuente contexto contextos
            evidencia evidencias documentos pasajes fonti fonte contesto contesti documenti prove
            brani
        """,
        "reference": (
            "reference_answer ground_truth ground_truths gold gold_answer ideal expected_output"
        ),
        "system": "system_name system_id",
        "text": """
            content page_content passage body snippet chunk contents document quote
            inhalt texte texto testo contenu contenido contenuto
        """,
    }.items()
}
"""Other tools' names for our fields. Misspelled names are found by similarity."""

_TOO_COMMON = frozenset(
    {
        "q",
        "input",
        "output",
        "result",
        "text",
        "references",
        "sources",
        "draft",
        "uid",
        "uuid",
        "document",
    }
)
"""Other tools' names that are too ambiguous to recognise as the last word of a longer name."""

_EVIDENCE_SHAPE = 'Write it as [{"id": "1", "text": "..."}, ...].'
_HINTS_FOR_MISSING = {
    "id": 'Give each case its own id, for example "id": "case-1".',
    "query": 'Add the question as "query": "...".',
    "evidence": f"Add the retrieved chunks. {_EVIDENCE_SHAPE}",
}


def kind_of(value: Any) -> str:
    """Return the type of a JSON value in words: ``a number``, ``an object``, ``null`` and so on."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return "a number"
        case str():
            return "text"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def join_path(path: str, key: str) -> str:
    """Return the path of a key of the object at ``path``."""
    shown = shorten(key, 80)
    return f"{path}.{shown}" if path else shown


def explain(error: ValidationError) -> InputError:
    """Return the first problem of a case, and mention how many more there are."""
    details = error.errors(include_url=False)
    problem = _explain_one(details[0])
    more = len(details) - 1
    if not more:
        return problem
    others = ", ".join(
        dict.fromkeys(field for detail in details[1:4] if (field := path_of(detail["loc"])))
    )
    also = f" Also wrong: {others}{' and more' if more > 3 else ''}." if others else ""
    return InputError(problem.problem, hint=problem.hint + also, field=problem.field)


def explain_fields(
    error: ValidationError, fields: Iterable[str], model: type[BaseModel] | None = None
) -> InputError:
    """Return the first problem of a request; for an unknown field, suggest a known one.

    Args:
        error: The error of the validation.
        fields: The fields of the request that its sender can set.
        model: The model of the request. Its nested records have their own fields.

    """
    unknown = next(
        (detail for detail in error.errors() if detail["type"] == "extra_forbidden"), None
    )
    if unknown is None:
        return explain(error)
    *path, name = unknown["loc"]
    known = list(fields)
    if path:
        inner = _model_at(model, path)
        if inner is None:
            return explain(error)
        known = list(inner.model_fields)
    near = difflib.get_close_matches(str(name)[:200], known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."
    return InputError("isn't a known field", hint=hint, field=path_of(unknown["loc"]))


def _model_at(model: type[BaseModel] | None, path: Iterable[int | str]) -> type[BaseModel] | None:
    """Return the model of the record at a path within a model's values, or None."""
    for part in path:
        field = model.model_fields.get(str(part)) if model is not None else None
        if isinstance(part, str):
            model = _model_in(field.annotation) if field is not None else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation such as ``tuple[Model, ...] | None`` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((model for model in found if model is not None), None)


def explain_all(error: ValidationError) -> list[InputError]:
    """Return every problem of a case, each as a separate error."""
    return [_explain_one(detail) for detail in error.errors(include_url=False)]


def path_of(location: Iterable[int | str]) -> str:
    """Return a pydantic location in readable form: ``evidence[2].text``."""
    path = ""
    for part in location:
        path = f"{path}[{part}]" if isinstance(part, int) else join_path(path, part)
    return path


def name_elsewhere(field: str, keys: Iterable[str]) -> str | None:
    """Return the key among ``keys`` that probably means ``field``, or None.

    It is another tool's name for the field, or a misspelling.
    """
    # get_close_matches is slow on long texts, which aren't names anyway.
    short = (key for key in islice(keys, 100) if len(key) <= 40)
    by_form = {_plain_form(key): key for key in short}
    for name in (field, *_OTHER_NAMES.get(field, ())):
        if name in by_form:
            return by_form[name]
    known = set(_OTHER_NAMES.get(field, ())) - _TOO_COMMON
    for form, key in by_form.items():  # kb_passages, bot_reply: the last word decides
        if (last := form.rpartition("_")[2]) != form and (last in known or f"{last}s" in known):
            return key
    # 0.75 accepts a wrong or missing letter in a short name ("anwser") and refuses other words.
    near = difflib.get_close_matches(field, by_form, n=1, cutoff=0.75)
    return by_form[near[0]] if near else None


def _explain_one(detail: ErrorDetails) -> InputError:
    field, got, context = path_of(detail["loc"]), kind_of(detail["input"]), detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return _missing_field(field, detail["input"])
        case "string_type":
            problem, hint = f"is {got}, must be text", _hint_for_text(got)
        case "string_too_short":
            problem, hint = "is empty", _HINTS_FOR_MISSING.get(field, "Fill it in.")
        case "string_too_long":
            problem, hint = f"is longer than {context['max_length']} characters", "Shorten it."
        case "too_short":
            problem, hint = "is empty", _HINTS_FOR_MISSING.get(field, "Fill it in.")
        case "tuple_type" | "list_type":
            problem = f"is {got}, must be a list"
            hint = _EVIDENCE_SHAPE if field == "evidence" else "Put it in square brackets: [ ... ]."
        case "dict_type" | "model_type" | "model_attributes_type":
            problem = f"is {got}, must be an object"
            hint = _EVIDENCE_SHAPE if field.startswith("evidence[") else 'Write it as {"key": ...}.'
        case "literal_error":
            problem = f"is {_shown_value(detail['input'])}, which isn't an allowed value"
            hint = f"Use one of {context['expected']}."
        case "null_byte":
            problem, hint = (
                f"contains a null byte at character {context['at'] + 1}",
                "Remove it. Text can't contain null bytes.",
            )
            field = context["path"]
        case "surrogate":
            problem = (
                r"contains half of a surrogate pair, such as \ud83d alone, which isn't a character"
            )
            hint, field = "Write both halves, or the character itself.", context["path"]
        case "repeated_evidence_id":
            problem = f"repeats the id {context['id']} of evidence[{context['first']}]"
            hint, field = "Give each chunk its own id.", f"evidence[{context['second']}].id"
        case _:
            message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
            problem, hint = f"is {_shown_value(detail['input'])}: {message}", "Correct it."
    return InputError(problem, hint=hint, field=field or None)


def _plain_form(key: str) -> str:
    """Return a name in lower-case ASCII with underscores: ``Réponse`` becomes ``reponse``."""
    bare = (
        key
        if key.isascii()
        # NFKD separates letters from their accents, which "ignore" then drops.
        else unicodedata.normalize("NFKD", key).encode("ascii", "ignore").decode()
    )
    return (bare or key).lower().replace("-", "_").replace(" ", "_")


def _missing_field(field: str, record: Any) -> InputError:
    name = field.rsplit(".", 1)[-1]
    candidates = (
        [key for key, value in record.items() if _would_fit(name, value)]
        if isinstance(record, Mapping)
        else []
    )
    if match := name_elsewhere(name, candidates):
        return InputError("is missing", hint=f'Rename "{match}" to "{name}".', field=field)
    if field.startswith("evidence["):
        return InputError(
            "is missing",
            hint='Give each chunk its own id, for example "id": "1".',
            field=field,
        )
    return InputError("is missing", hint=_HINTS_FOR_MISSING.get(field, "Add it."), field=field)


def _would_fit(name: str, value: Any) -> bool:
    """Return whether a value under another name has the right type for the field.

    A hint to rename a key must lead to a readable case.
    """
    if name == "evidence":
        return isinstance(value, list) and all(
            isinstance(item, str) or (isinstance(item, Mapping) and isinstance(item.get("id"), str))
            for item in value
        )
    return isinstance(value, str) and bool(value.strip())


def _hint_for_text(got: str) -> str:
    if got == "null":
        return "Write the text, or leave out the field if it's optional."
    return (
        "Put it in quotes."
        if got in ("a number", "true", "false")
        else "Join its parts into one text."
    )


def _shown_value(value: Any) -> str:
    if not isinstance(value, str | int | float):
        return kind_of(value)
    return shorten(repr(value), 60)
