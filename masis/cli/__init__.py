"""The command line: ``masis COMMAND``.

Exit codes: 0 success, 1 the command failed completely or in part, 2 wrong usage, 130 interrupted
with Ctrl-C. Data is written to stdout or to ``--out``, and messages for people to stderr. A
command's module is imported only when the command runs, so that ``masis --help`` is fast.
"""

from __future__ import annotations

import click

from masis.cli.commands import CommandGroup, Lazy
from masis.extensions import extensions
from masis.version import APP

GROUPS: dict[str, dict[str, Lazy]] = {
    "Start": {
        "demo": Lazy("masis.cli.servers:demo", "Open the workbench with demo cases."),
        "serve": Lazy("masis.cli.servers:serve", "Open the workbench with your own cases."),
        "config": Lazy(
            "masis.cli.config:config",
            "Show the settings and their sources; check or create the file.",
            True,
        ),
        "completion": Lazy(
            "masis.cli.config:completion", "Print the completion script for your shell."
        ),
    },
    "Audit": {
        "audit": Lazy("masis.cli.audit:audit", "Audit every case in a file and store the runs."),
        "bench": Lazy(
            "masis.cli.models:bench", "Measure the auditor on labeled data against baselines."
        ),
        "models": Lazy(
            "masis.cli.models:models",
            "Test, download and list the models that judge answers.",
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
            "masis.cli.desk:label", "Label words in an answer, or report an issue in it."
        ),
        "batch": Lazy(
            "masis.cli.batches:batch",
            "Approve, reject, tag or assign many cases at once, or undo that.",
            True,
        ),
        "minimal": Lazy(
            "masis.cli.minimal:minimal",
            "Verify claims again without the passages that decide them.",
        ),
        "queues": Lazy(
            "masis.cli.queues:queues", "List, create and change the team's named queues.", True
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
        "systems": Lazy(
            "masis.cli.systems:systems",
            "List and describe the systems whose answers are stored.",
            True,
        ),
        "compare": Lazy(
            "masis.cli.systems:compare",
            "Compare systems over the questions that they share.",
        ),
        "preference": Lazy(
            "masis.cli.preference:preference",
            "Decide which of two answers is better, and see what people prefer.",
            True,
        ),
        "modes": Lazy(
            "masis.cli.modes:modes",
            "Search, group and count how answers fail, with a codebook.",
            True,
        ),
        "judge": Lazy(
            "masis.cli.judge:judge",
            "Tell the judge what the team requires, and measure it.",
            True,
        ),
        "planted": Lazy(
            "masis.cli.planted:planted",
            "Plant faults in copies of correct answers; see who finds them.",
            True,
        ),
    },
    "Data": {
        "import": Lazy("masis.cli.data:import_files", "Import cases, or files of other tools."),
        "export": Lazy(
            "masis.cli.data:export", "Export cases, runs or data sets made from decisions."
        ),
        "dataset": Lazy(
            "masis.cli.data:dataset",
            "Freeze, compare and export named data sets.",
            True,
        ),
    },
    "Screening": {},  # filled below
    "Connect": {
        "ingest": Lazy("masis.cli.servers:ingest", "Receive cases from programs over HTTP."),
        "token": Lazy(
            "masis.cli.remote:token", "Create, list and revoke tokens for programs.", True
        ),
        "person": Lazy(
            "masis.cli.servers:person", "Print a person's sign-in entry with a new secret."
        ),
    },
    "Maintain": {
        "health": Lazy(
            "masis.cli.database:health", "Check that the workbench and its database work."
        ),
        "verify-log": Lazy(
            "masis.cli.database:verify_log", "Check that no decision was changed or removed."
        ),
        "purge": Lazy("masis.cli.database:purge", "Remove audits past their retention period."),
        "db": Lazy(
            "masis.cli.database:db", "Back up, restore, redact and reassess a database.", True
        ),
    },
}

for _extension in extensions():
    for _command in _extension.commands:
        GROUPS.setdefault(_command.heading, {})[_command.name] = Lazy(
            _command.target, _command.help, _command.is_group
        )
GROUPS = {heading: commands for heading, commands in GROUPS.items() if commands}

HELP = """Audit AI answers against their evidence, and review the results. Works offline and without
an API key unless you choose a model that needs them.

  masis demo                                  explore the workbench with demo cases
  masis audit cases.jsonl                     audit your own cases and list their issues
  masis queue                                 list the cases that need a decision

For help with a command, run: masis COMMAND --help
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
