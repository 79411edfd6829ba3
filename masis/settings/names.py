"""The names of settings in the file, with ``--set`` and in the environment.

A setting has one name. It may also be written in the table of its group. The settings of
DRAFT-CRITIQUE-CONFIG may also be written with that rule's names, in ``[retrieval.critique]`` or
above all tables.
"""

from __future__ import annotations

import json
import re
from typing import get_origin

from masis.settings.fields import GROUPS, Settings
from masis.settings.secrecy import HIDDEN, may_be_a_key

Name = tuple[str, ...]
"""A name in its parts: ``("loop", "max_iterations")``, ``("providers", "vllm", "address")``."""

CRITIQUE = ("retrieval", "critique")
"""The table of DRAFT-CRITIQUE-CONFIG."""

YAML_KEYS = {
    "enabled": "draft_critique",
    "defaultStrictness": "strictness",
    "checkFactual": "check_factual",
    "checkCompleteness": "check_completeness",
    "checkContradictions": "check_contradictions",
    "autoRevise": "draft_auto_revise",
    "maxRevisions": "draft_max_revisions",
    "minDraftLength": "draft_min_length",
}
"""The keys of that table, in the order of the spec."""

OPTION_NAMES = {name: field for name, field in YAML_KEYS.items() if name != "enabled"} | {
    "enableCritique": "draft_critique"
}
"""Options (CritiqueOptions, PipelineOptions) that may also be above all tables; ``strictness`` is
already ours.
"""

TABLES_OF_TABLES = frozenset(
    name for name, field in Settings.model_fields.items() if get_origin(field.annotation) is dict
)
"""Settings that are tables of tables by name: ``providers`` and ``prices``."""

OTHER_VARIABLES = {
    "MASIS_CONFIG": "The configuration file.",
    "MASIS_DB": "The database.",
    "MASIS_SECRETS": "The file with the keys of providers.",
    "MASIS_SOURCES": (
        "The file of the programs that may send cases over HTTP, with the digests of their tokens."
    ),
    "MASIS_LOG_KEY": "The file with the key that signs the decision log and the screening log.",
    "MASIS_COOKIE_SECRET": (
        "Signs the sessions of `masis serve --sign-in`; without it they end when the server stops."
    ),
    "MASIS_OIDC_CLIENT_SECRET": "The secret that the sign-in provider knows this server by.",
    "MASIS_WEBHOOK_SECRET": "Signs what the webhook of `masis ingest` sends.",
    "MASIS_TOKEN": "The personal token of commands with --url and of masis.Desk on a server.",
    "MASIS_MCP_TOKEN": "The secret that clients of the MCP server send, over HTTP.",
}
"""Variables that aren't settings: paths and secrets."""


SPELLINGS: dict[Name, str] = {
    **{(name,): name for name in Settings.model_fields},
    **{
        (group.table, spelling): name
        for group in GROUPS
        for name in group.settings
        if name not in TABLES_OF_TABLES
        for spelling in (name, name.removeprefix(group.prefix))
    },
    **{(*CRITIQUE, key): name for key, name in {**YAML_KEYS, "strictness": "strictness"}.items()},
    **{(option,): name for option, name in OPTION_NAMES.items()},
}
"""Every valid name and the setting that it means."""

TABLES = {path[:length] for path in SPELLINGS for length in range(1, len(path))}
"""Every table that has settings."""


def variable_of(path: Name) -> str:
    """Return the environment variable for a name: ``MASIS_RETRIEVAL__CRITIQUE__AUTO_REVISE``."""
    # An underscore goes between the words of camel case: autoRevise becomes AUTO_REVISE.
    return "MASIS_" + "__".join(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", part).upper() for part in path)


def name_in_file(path: Name) -> str:
    """Return a name as it is in the file, quoted if TOML needs it; parts that may be keys are
    hidden.
    """
    return ".".join(
        (
            HIDDEN
            if may_be_a_key(part)
            else part
            # the characters of TOML's bare keys (https://toml.io/en/v1.0.0#keys)
            if re.fullmatch(r"[A-Za-z0-9_-]+", part)
            else json.dumps(part)
        )
        for part in path
    )
