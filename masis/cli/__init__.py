"""The command line: ``masis COMMAND``.

Exit codes: 0 success, 1 a job that failed or only partly succeeded, 2 wrong use, 130 interrupted with Ctrl-C. Data go
to stdout or to ``--out``, messages to people go to stderr. A command's module is imported when the command
runs, so that ``masis --help`` answers at once.
"""

from __future__ import annotations

import click

from masis.cli.group import Command, CommandGroup
from masis.version import APP

COMMANDS = {
    "demo": Command("masis.cli.serve:demo", "Open the workbench on cases written to show it."),
    "serve": Command("masis.cli.serve:serve", "Open the workbench on your own cases."),
    "person": Command("masis.cli.person:person", "Print a person's entry for signing in, with a new secret."),
    "audit": Command("masis.cli.audit:audit", "Audit every case of a file, and store the runs."),
    "screen": Command("masis.cli.screening:screen", "Screen abstracts for a question: is the evidence sufficient?"),
    "screening": Command("masis.cli.drift:screening", "Search further, store corpora, show drift; take labels back."),
    "import": Command("masis.cli.import_data:import_files", "Read cases into the database."),
    "export": Command("masis.cli.export_data:export", "Write cases, runs, or data sets out of decisions."),
    "dataset": Command("masis.cli.dataset:dataset", "Freeze data sets under names, compare and rewrite them."),
    "report": Command("masis.cli.report:report", "Write the audits of cases as pages to print."),
    "metrics": Command("masis.cli.metrics:metrics", "Show the metrics of the audits: rates, times, scores, costs."),
    "trust": Command("masis.cli.trust:trust", "Show how far the audit may be relied on, by decisions."),
    "bench": Command("masis.cli.bench:bench", "Measure the auditor on labelled data, beside baselines."),
    "ingest": Command("masis.cli.ingest:ingest", "Take cases from programs over HTTP."),
    "mcp": Command("masis.cli.mcp:mcp", "Serve the tools of the workbench to agents (MCP)."),
    "models": Command("masis.cli.local_models:models", "Verifier models on this machine: download one, list them."),
    "config": Command("masis.cli.config:config", "Show settings and their sources; check or write the file."),
    "optimize": Command("masis.cli.optimize:optimize", "Compile a critic on labelled answers, with DSPy."),
    "health": Command("masis.cli.health:health", "Check that everything the workbench needs is in order."),
    "reassess": Command("masis.cli.reassess:reassess", "Apply the current acceptance rule to stored audits."),
    "purge": Command("masis.cli.purge:purge", "Remove audits past their time, and record that."),
    "backup": Command("masis.cli.backup:backup", "Copy the database while it is in use, and verify the copy."),
    "restore": Command("masis.cli.backup:restore", "Put a backup in the place of the database."),
    "redact": Command("masis.cli.redact:redact", "Remove the texts of a case or a decision, on request."),
    "verify-log": Command("masis.cli.decision_log:verify_log", "Check that no decision was changed or removed."),
}

HELP = """Audit AI answers against their evidence: citations, claims, a critic, a reviser, a judge, and the person who
decides. Needs no key and no network unless you choose a model that does.

\b
  masis demo                                  look around with prepared cases
  masis audit cases.jsonl --out runs.jsonl    audit your own
  masis serve                                 review what was audited

Every command explains itself: masis COMMAND --help.
"""


@click.group(
    "masis",
    cls=CommandGroup,
    entries=COMMANDS,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(APP, prog_name="masis", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the full traceback of an unexpected error.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """``masis``; its help text is ``HELP``."""
    context.obj = {"debug": debug}


__all__ = ["COMMANDS", "main"]
