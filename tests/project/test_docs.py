"""The documentation: links and anchors resolve, commands and code run as written, and the site
builds.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import click
import pandas
import pytest
from click.testing import CliRunner

import masis
from masis.cli import main
from masis.errors import MissingExtra
from masis.settings import Settings
from tools import figures

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = {"cli", "configuration", "python", "CONFORMANCE"}
"""Pages that a tool writes whole."""
PAGES = sorted(DOCS.glob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"sh", "python", "toml", "json", "text", "{toctree}", "{eval-rst}"}
"""``sh`` and ``python`` are tried, ``text`` is what something prints or looks like."""
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
SERVERS = {"demo", "serve", "ingest", "mcp"}
LARGEST_PICTURE = 400_000
MOST_WORDS = 40_000
"""Beside what tools write and what stands in blocks."""


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def blocks(*pages: Path) -> list[Block]:
    """Yield the fenced blocks of pages."""
    return [
        Block(page.stem, language, text)
        for page in pages
        for language, text in FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and Sphinx generate them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", title)
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    ]
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def test_every_link_and_anchor_resolves() -> None:
    broken = []
    for page in [*PAGES, *OTHERS]:
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            path, _, anchor = target.partition("#")
            if target.startswith(("http://", "https://", "mailto:")):
                if not re.fullmatch(
                    r"(?:https?://[\w.-]+(?::\d+)?(?:/\S*)?|mailto:\S+@\S+)", target
                ):
                    broken.append(f"{page.name}: {target}")
                continue
            there = (page.parent / path) if path else page
            if not there.exists() or (
                anchor and there.suffix == ".md" and anchor not in anchors(there)
            ):
                broken.append(f"{page.name}: {target}")
    assert not broken, "\n".join(broken)


def test_every_image_is_used_and_small_enough() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in [*PAGES, *OTHERS]
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if target.endswith((".png", ".svg")) and "://" not in target
    }
    assert shown == set((DOCS / "images").iterdir())
    assert not [picture for picture in shown if picture.stat().st_size > LARGEST_PICTURE]


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = [block.text for block in blocks(DOCS / "index.md") if block.language == "{toctree}"]
    listed = [page for text in contents for page in re.findall(r"<(\S+)>$", text, re.MULTILINE)]
    assert sorted([*listed, "index"]) == [page.stem for page in PAGES]


def test_every_public_name_command_and_setting_is_documented() -> None:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
    guides = "\n".join(text for name, text in pages.items() if name not in GENERATED)
    missing = [
        name
        for name in masis.__all__
        if name != "__version__" and not re.search(rf"\b{name}\b", guides)
    ]

    def walk(command: click.Command, path: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, below in command.commands.items():
                yield from walk(below, f"{path} {name}")
        elif not command.hidden:
            yield path

    missing += [
        path
        for path in walk(main, "masis")
        if not re.search(rf"^#+ `?{path}`?$", pages["cli"], re.MULTILINE)
    ]
    missing += [name for name in Settings.model_fields if f"`{name}`" not in pages["configuration"]]
    assert not missing


def test_every_measured_figure_matches_its_file() -> None:
    stated = [
        (page.name, *each)
        for page in [*PAGES, *OTHERS]
        for each in figures.LINK.findall(page.read_text("utf-8"))
    ]
    assert not [each for each in stated if each[1] != figures.figure(*each[2:])], (
        "run: python tools/figures.py --docs"
    )
    assert len(stated) > 50
    files = {
        file.stem: json.loads(file.read_text("utf-8")) for file in figures.RESULTS.glob("*.json")
    }
    assert {each[2] for each in stated} == set(files)
    for name, made in files.items():
        assert all(made[key] for key in ("command", "date", "commit", "machine", "figures")), name
        assert name not in figures.MEASURES or made["command"] == figures.MEASURES[name].command


def test_the_docs_stay_within_their_word_limit() -> None:
    words = 0
    for page in PAGES:
        if page.stem not in GENERATED:
            text = re.sub(
                r"<!-- \w+.*?-->.*?<!-- end of.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL
            )
            words += sum(bool(re.search(r"\w", word)) for word in FENCE.sub("", text).split())
    assert words <= MOST_WORDS


def test_every_code_block_has_a_known_language() -> None:
    for block in blocks(
        *(page for page in PAGES if page.stem not in GENERATED), ROOT / "README.md"
    ):
        assert block.language in LANGUAGES, f"{block.page}: {block.language} {block.text[:60]}"


def test_toml_and_json_blocks_are_valid() -> None:
    reads = {"toml": tomllib.loads, "json": json.loads}
    for block in blocks(*PAGES, ROOT / "README.md"):
        if block.language in reads:
            try:
                reads[block.language](block.text)
            except ValueError as problem:
                raise AssertionError(f"{block.page}: {problem}: {block.text[:60]}") from problem


def commands(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield our commands in a shell block, and the file each one's output is redirected to."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r" (?:\||&&) ", re.sub(r"(^|\s)#(\s.*)?$", "", line)):
            written, _, output = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", part.strip()).partition(" >")
            if re.match(r"(?:\S*/bin/)?masis [a-z-]", written):
                yield shlex.split(written)[1:], output.strip("> ")


def test_every_documented_command_and_option_exists() -> None:
    wrong = []
    for block in blocks(*PAGES, ROOT / "README.md"):
        for words, _ in commands(block.text) if block.language == "sh" else ():
            command: click.Command = main
            rest = list(words)
            try:
                context = click.Context(main, **main.context_settings)
                while isinstance(command, click.Group):
                    _, found, rest = command.resolve_command(context, rest)
                    assert found is not None
                    command = found
                    context = click.Context(command, context)
                command.make_parser(context).parse_args(rest)
            except click.ClickException as problem:
                wrong.append(f"{block.page}: masis {' '.join(words)}: {problem.format_message()}")
    assert not wrong, "\n".join(wrong)


def test_every_script_and_make_target_in_a_shell_block_exists() -> None:
    targets = set(
        re.findall(
            r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    missing = []
    for block in blocks(*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for line in block.text.splitlines() if block.language == "sh" else ():
            for script in re.findall(
                r"\bpython ((?:tools|benchmarks|examples)/\S+)|\bcp ((?:deploy/\S+ ?)+)", line
            ):
                missing += [
                    file
                    for file in " ".join(script).split()
                    if not (ROOT / file).exists() and file[0] != "/"
                ]
            missing += [
                name for name in re.findall(r"^make ([a-z-]+)", line) if name not in targets
            ]
    assert not missing


TUTORIALS = ("first-case", "with-a-model", "as-a-team")
PRESSED = re.compile(
    r"(?:[Pp]ress|[Oo]pen|[Uu]nder|Back as Ada:|that|Search) \*\*([^*]+)\*\*|^- \*\*([^*]+)\*\*:",
    re.MULTILINE,
)
"""How the tutorials name a page, a button or a field."""


RAGAS = [
    {
        "user_input": "How long is it?",
        "response": "120 metres [1].",
        "retrieved_contexts": ["It is 120 metres long."],
    },
    {
        "user_input": "When was it opened?",
        "response": "In 1931 [2].",
        "retrieved_contexts": ["It was opened in 1913."],
    },
]
TRACE_EVIDENCE = ["The bridge is 120 metres long."]
TRACE = {
    "id": "trace-1",
    "input": {"question": "How long is the bridge?"},
    "output": "It is 210 metres long [1].",
    "observations": [{"type": "RETRIEVER", "output": TRACE_EVIDENCE}],
}
ANNOTATED = {
    "data": {"case_id": "trace-1", "text": TRACE["output"]},
    "annotations": [
        {
            "completed_by": {"email": "bo@example.org"},
            "result": [
                {"from_name": "verdict", "type": "choices", "value": {"choices": ["reject"]}},
                {"from_name": "reason", "type": "textarea", "value": {"text": ["contradicted"]}},
            ],
        }
    ],
}
OWN = {
    "id": "a",
    "query": "How long is it?",
    "answer": "It is 210 metres long [1].",
    "evidence": TRACE_EVIDENCE,
}
COLUMNS = (
    "question,response,context\nHow long is it?,It is 210 metres long [1].,The bridge is 120 metres"
    " long.\n"
)
STUDY = """TY  - JOUR
TI  - Metformin and mortality in heart failure: a randomised trial
AB  - We randomly assigned 400 adults with heart failure to metformin or placebo. Metformin reduced mortality.
ER  -
"""
MEASURED = OWN | {
    "labels": {"claims": [{"text": "It is 210 metres long [1].", "verdict": "contradicted"}]}
}
FILES = {
    "ragas.jsonl": RAGAS,
    "traces.jsonl": [TRACE],
    "annotated.json": [[ANNOTATED]],
    "cases.jsonl": [OWN],
    "answers.jsonl": [OWN],
    "mine.jsonl": [MEASURED],
}
"""What the commands find beside them: the objects of each file, one a line."""
ELSEWHERE = re.compile(
    r"openai|anthropic|ollama|local:|s3:|--engine"
    r" ray|audited/|^optimize|/(backups|secure|var|etc)\b"
)
"""What a test does without: other machines, models, a cluster and its output, folders
of a server.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({each.page for each in blocks(*PAGES) if each.language == "sh"} | {"README"})
)
def test_the_commands_of_a_page_run_as_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    for file, rows in FILES.items():
        (tmp_path / file).write_text(
            "".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8"
        )
    (tmp_path / "answers.csv").write_text(COLUMNS, encoding="utf-8")
    (tmp_path / "export.ris").write_text(STUDY, encoding="utf-8")
    with gzip.open(tmp_path / "traces.json.gz", "wt", encoding="utf-8") as packed:
        json.dump(TRACE, packed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASIS_DB", str(tmp_path / "masis.db"))
    for database in ("masis.db", "review.db", "desk.db", "tried.db"):
        assert CliRunner().invoke(main, ["audit", "cases.jsonl", "--db", database]).exit_code == 0
    piped = shown = ""
    for block in blocks(next(page for page in [*PAGES, *OTHERS] if page.stem == name)):
        for words, output in commands(block.text) if block.language == "sh" else ():
            if words[0] in SERVERS or ELSEWHERE.search(" ".join([*words, output])):
                continue
            done = CliRunner().invoke(main, words, input=piped if "-" in words else None)
            assert done.exit_code == 0, f"masis {' '.join(words)}\n{done.output}"
            piped, shown = done.stdout, shown + done.output
            if output:
                (tmp_path / output).parent.mkdir(exist_ok=True)
                with (tmp_path / output).open("a", encoding="utf-8") as stream:
                    stream.write(done.stdout)
        # what a command of the page printed
        if name in TUTORIALS and block.text.startswith("case  "):
            for line in block.text.splitlines():
                cells = [cell.rstrip("…") for cell in re.split(r"\s{2,}", line.strip())]
                assert any(
                    all(cell in printed for cell in cells) for printed in shown.splitlines()
                ), line


def test_buttons_named_in_tutorials_exist_on_the_pages() -> None:
    sources = "\n".join(
        file.read_text(encoding="utf-8")
        for folder in ("masis/ui", "masis/views", "masis/services", "pages")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".js"}
    )
    text = "\n".join(
        FENCE.sub("", (DOCS / f"{name}.md").read_text(encoding="utf-8")) for name in TUTORIALS
    )
    named = {first or second for first, second in PRESSED.findall(text)}
    assert len(named) > 10
    assert not [each for each in named if each not in sources]


TRIAL = (
    "We randomly assigned 400 adults with migraine to aspirin or placebo. Aspirin relieved pain in"
    " 60% against 30%."
)


def _names(page: str) -> dict[str, Any]:
    """Return the names that the code of a page assumes to exist."""
    columns = {
        "question": ["How long?"],
        "response": ["Ten metres [1]."],
        "contexts": [["It is ten metres long."]],
    }
    documents = [{"id": "manual", "text": "Uploads are limited to 10 MB."}]
    return {
        "README": {"frame": pandas.DataFrame(columns)},
        "screening": {
            "abstracts": [
                {"id": "1", "title": "Aspirin for migraine: a randomised trial", "text": TRIAL}
            ]
        },
        "programs": {
            "bot": lambda question: "Uploads are limited to 10 MB [manual].",
            "documents": documents,
            "retriever": lambda question: documents,
            "settings": Settings(),
            "frame": pandas.DataFrame(columns),
        },
    }[page]


RUN_HERE = ("README", "programs", "screening")
RUN_ELSEWHERE = (ROOT / "tests" / "integrations" / "test_guides.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_code_of_a_page_runs_as_written(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = {
        "id": "1",
        "query": "When?",
        "answer": "It opened in 1931 [1].",
        "evidence": ["It opened in 1913."],
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(case), encoding="utf-8")
    (tmp_path / "answers.csv").write_text(
        "frage,antwort,quelle\nWhen?,In 1931 [1].,It opened in 1913.\n", encoding="utf-8"
    )
    assert CliRunner().invoke(main, ["audit", "cases.jsonl", "--db", "review.db"]).exit_code == 0
    names = _names(page)
    for block in blocks(next(each for each in [*OTHERS, *PAGES] if each.stem == page)):
        if block.language == "python":
            # no call in tests
            text = block.text.replace('critic="openai:gpt-4o"', 'critic="offline"')
            exec(compile(text, f"{page}.md", "exec"), names | {"masis": masis}, names)
    for name, tested in list(names.items()):
        if name.startswith("test_"):
            tested(masis.assert_grounded)


def test_untested_code_blocks_compile_and_their_imports_exist() -> None:
    for block in blocks(*PAGES):
        first = block.text.lstrip().splitlines()[0]
        if (
            block.language != "python"
            or block.page in RUN_HERE
            or f'"{first[:26]}' in RUN_ELSEWHERE
        ):
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("masis"):
                try:
                    module = importlib.import_module(str(node.module))
                    assert all(hasattr(module, name.name) for name in node.names), (
                        f"{block.page}: {first}"
                    )
                except MissingExtra:
                    continue


class Built(HTMLParser):
    """A page of the built site: its anchors, links, images and code blocks."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids, self.leads, self.pictures, self.blocks = set[str](), list[str](), list[str](), 0
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.leads.append(found["href"])
        if tag == "img":
            assert found.get("alt"), f"a picture without words: {found}"
            self.pictures.append(found["src"])
        self.blocks += tag == "pre"


@pytest.mark.slow
def test_the_built_site_is_complete_and_loads_nothing_external(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the extra docs is not installed")
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-q",
        "--keep-going",
        "-d",
        str(tmp_path / "trees"),
    ]
    done = subprocess.run(
        [*command, str(DOCS), str(site)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = {page.name: Built(page) for page in site.glob("*.html")}
    assert len(pages) > len(PAGES)
    broken = []
    for name, page in pages.items():
        for lead in page.leads:
            path, _, anchor = unquote(lead).partition("#")
            if "://" in lead or lead.startswith("mailto:"):
                continue
            there = pages.get(path or name)
            if there is None or (anchor and anchor not in there.ids):
                broken.append(f"{name}: {lead}")
        broken += [
            f"{name}: {picture}" for picture in page.pictures if not (site / picture).is_file()
        ]
    assert not broken, "\n".join(broken)
    for source in (page for page in PAGES if page.stem not in GENERATED):
        written = [each for each in blocks(source) if not each.language.startswith("{")]
        assert pages[f"{source.stem}.html"].blocks == len(written), (
            f"a block of {source.name} is drawn as something else"
        )
    entries = {f"masis.{name}" for name in masis.__all__ if name != "__version__"}
    assert not entries - pages["python.html"].ids
    loads = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*\bhref=\"(?:https?:)?//"
    )
    assert not [name for name in pages if loads.search((site / name).read_text(encoding="utf-8"))]
    sheets = (site / "_static").rglob("*.css")
    assert not [
        sheet.name
        for sheet in sheets
        if re.search(r"url\(['\"]?https?:|@import", sheet.read_text("utf-8"))
    ]
