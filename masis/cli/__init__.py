"""The command line: ``masis COMMAND``.

Exit codes: 0 success, 1 a job that failed or only partly succeeded, 2 wrong use, 130 interrupted
with Ctrl-C. Data go to stdout or to ``--out``, messages to people go to stderr. A command's module
is imported when the command runs, so that ``masis --help`` answers at once.
"""

from __future__ import annotations

import click

from masis.cli.commands import CommandGroup, Lazy
from masis.version import APP

GROUPS: dict[str, dict[str, Lazy]] = {
    "Start": {
        "demo": Lazy("masis.cli.servers:demo", "Open the workbench on cases written to show it."),
        "serve": Lazy("masis.cli.servers:serve", "Open the workbench on your own cases."),
        "config": Lazy(
            "masis.cli.config:config",
            "Show settings and their sources; check or write the file.",
            True,
        ),
        "completion": Lazy(
            "masis.cli.config:completion", "Print the completion script for your shell."
        ),
    },
    "Audit": {
        "audit": Lazy("masis.cli.audit:audit", "Audit every case of a file, and store the runs."),
        "bench": Lazy(
            "masis.cli.models:bench", "Measure the auditor on labelled data against baselines."
        ),
        "optimize": Lazy(
            "masis.cli.models:optimize", "Compile a critic on labelled answers, with DSPy."
        ),
        "models": Lazy(
            "masis.cli.models:models",
            "Download, list and examine verifier models.",
            True,
        ),
    },
    "Review": {
        "queue": Lazy("masis.cli.desk:queue", "List the cases that need your decision."),
        "show": Lazy("masis.cli.desk:show", "Show a case: answer, evidence, audit, decisions."),
        "decide": Lazy(
            "masis.cli.desk:decide",
            "Approve, override, reject or escalate a case, or a file of them.",
        ),
        "label": Lazy(
            "masis.cli.desk:label", "Label words of an answer, or report an issue in it."
        ),
        "comment": Lazy("masis.cli.desk:comment", "Add a comment to a case."),
        "undo": Lazy("masis.cli.desk:undo", "Undo a decision."),
        "log": Lazy("masis.cli.desk:decision_log", "List the newest entries of the decision log."),
        "report": Lazy("masis.cli.desk:report", "Write audits as printable pages."),
        "metrics": Lazy(
            "masis.cli.metrics:metrics",
            "Show the metrics of the audits: rates, times, scores, costs.",
        ),
        "trust": Lazy(
            "masis.cli.metrics:trust", "Show how reliable the audit is, measured on decisions."
        ),
        "planted": Lazy(
            "masis.cli.planted:planted",
            "Plant faults in copies of sound answers and see who finds them.",
            True,
        ),
    },
    "Data": {
        "import": Lazy("masis.cli.data:import_files", "Import cases, or files of other tools."),
        "export": Lazy(
            "masis.cli.data:export", "Export cases, runs, or data sets made from decisions."
        ),
        "dataset": Lazy(
            "masis.cli.data:dataset",
            "Freeze, compare and export named data sets.",
            True,
        ),
    },
    "Screening": {
        "screen": Lazy(
            "masis.cli.screening:screen",
            "Screen abstracts for a question: is the evidence sufficient?",
        ),
        "screening": Lazy(
            "masis.cli.screening:screening",
            "Search further, store corpora, show drift, import labels.",
            True,
        ),
    },
    "Connect": {
        "ingest": Lazy("masis.cli.servers:ingest", "Receive cases from programs over HTTP."),
        "mcp": Lazy("masis.cli.servers:mcp", "Serve the tools of the workbench to agents (MCP)."),
        "token": Lazy(
            "masis.cli.remote:token", "Create, list and revoke tokens for programs.", True
        ),
        "person": Lazy(
            "masis.cli.servers:person", "Print a person's sign-in entry with a new secret."
        ),
    },
    "Care": {
        "health": Lazy(
            "masis.cli.database:health", "Check that the workbench and its database work."
        ),
        "verify-log": Lazy(
            "masis.cli.database:verify_log", "Check that no decision was changed or removed."
        ),
        "purge": Lazy(
            "masis.cli.database:purge", "Remove audits past their retention time, and record it."
        ),
        "db": Lazy(
            "masis.cli.database:db", "Back up, restore, redact and reassess a database.", True
        ),
    },
}

HELP = """Audit AI answers against their evidence: citations, claims, a critic, a reviser, a judge,
and the person who decides. Needs no key and no network unless you choose a model that does.

  masis demo                                  look around with prepared cases
  masis audit cases.jsonl                     audit your own, and see what is wrong with them
  masis queue                                 list the cases that wait for a decision

Every command explains itself: masis COMMAND --help.
"""


@click.group(
    "masis",
    cls=CommandGroup,
    headings=GROUPS,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(APP, prog_name="masis", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the full traceback of an unexpected error.")
def main(debug: bool) -> None:
    """Run ``masis``. The help text is ``HELP``; ``CommandGroup.invoke`` reads ``debug``."""
