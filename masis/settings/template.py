"""The configuration file with every default in it, as ``masis config init`` writes it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from masis.settings.aliases import CRITIQUE, TABLES_OF_TABLES, YAML_KEYS, written
from masis.settings.docs import GROUPS
from masis.settings.fields import Settings
from masis.settings.ranges import as_toml, described, schema_of

WIDTH = 100

HEAD = """
Settings of MASIS Workbench. Every setting is listed with its default, commented out: take the '#' before a name
away and change the value. What is left commented out follows the defaults, also those of later versions.

A value comes, strongest first, from the command line (--set max_iterations=2), the environment
(MASIS_MAX_ITERATIONS=2), this file, the defaults. Any setting may also be written above all tables under its own name.
'masis config show' shows the values in use and where each comes from; 'masis config check' checks this file. Keys
of providers do not belong here: they come from the environment or from masis.secrets.toml.
"""

EXAMPLES = {
    "providers": """\
[providers.vllm]
kind = "openai"
address = "http://127.0.0.1:8000/v1"
key_env = "VLLM_API_KEY"
concurrency = 8
mode = "json_schema"
effort = "low"
""",
    "prices": """\
[prices."vllm:llama-3.3-70b"]
input = 0.2
output = 0.6
cached_input = 0.1
cache_write = 0.2
""",
}


def template() -> str:
    """The file. Read as it is it changes nothing; with its settings uncommented it says what the defaults say."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    first, second = HEAD.split("\n\n")
    yield from (*_prose(first), "#", *_prose(second))
    default = Settings()
    for group in GROUPS:
        yield from ("", f"[{group.table}]")
        yield from _prose(f"{group.title}. {group.meaning}")
        for name, doc in group.settings.items():
            yield ""
            if name in TABLES_OF_TABLES:
                yield from _prose(f"{doc.meaning} ({doc.source}) For example:")
                yield from (f"#     {line}".rstrip() for line in EXAMPLES[name].splitlines())
                continue
            kind = described(schema_of((name,)))
            range_of = f" {kind.capitalize()}." if not kind.startswith("text") else ""
            yield from _prose(f"{doc.meaning}{range_of} ({doc.source})")
            value = getattr(default, name)
            yield f"#{name} = {as_toml(value)}" if value is not None else f"# {name} is not set."
    yield from ("", f"[{written(CRITIQUE)}]")
    yield from _prose("The names of DRAFT-CRITIQUE-CONFIG (docs/CONFORMANCE.md); each means the setting beside it.")
    for key, name in YAML_KEYS.items():
        yield f"#{key} = {as_toml(getattr(default, name))}  # {name}"


def _prose(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), WIDTH - 2, break_on_hyphens=False):
        yield f"# {line}"
