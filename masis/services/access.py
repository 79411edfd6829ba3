"""Permissions: the check that each use case makes before it changes or exports something, and the
table of all acts.

A command acts for the owner of the database file and may do everything. A server with sign-in opens
its workbench with ``SIGN_IN_REQUIRED``. A use case then rejects actors who haven't signed in with a
role that allows it, whichever page, callback or message called it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from masis.errors import NotAllowed
from masis.schema.actor import PERMISSIONS, Actor, Permission
from masis.store import Store

_DOING: dict[Permission, str] = {
    "read": "read",
    "decide": "decide",
    "audit": "add cases or start audits",
    "export": "export",
    "oversee": "change what others decided or what is learned from it",
    "redact": "redact",
    "purge": "remove what retention stores",
    "configure": "change settings",
}


class Access(NamedTuple):
    """The access rule of one workbench; ``sign_in`` says whether people must sign in."""

    sign_in: bool

    def allows(self, actor: Actor, permission: Permission) -> bool:
        """Return whether the actor has the permission."""
        return not self.sign_in or actor.may(permission)

    def require(self, actor: Actor, permission: Permission) -> None:
        """Raise NotAllowed unless the actor has the permission."""
        if self.allows(actor, permission):
            return
        if not actor.authenticated:
            raise NotAllowed(f"You can't {_DOING[permission]}. Sign in first.")
        raise NotAllowed(
            f"You can't {_DOING[permission]}. You need the role {PERMISSIONS[permission]}, and"
            f" you have {', '.join(actor.roles) or 'none'}. Ask an admin of this workbench."
        )


OPEN = Access(sign_in=False)
"""Without sign-in, everyone who can reach the workbench may do everything."""

SIGN_IN_REQUIRED = Access(sign_in=True)


class Service:
    """The use cases of one subject on one database; ``access`` checks permissions."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self._access = store, access


Takes = Permission | Literal["nothing", "token", "file"]
"""What an act needs: a permission, nothing, a program's token, or the database file itself."""


class Act(NamedTuple):
    """Something that can be done, what it needs, and all places where it's done, separated by
    commas.

    ``where`` names use cases (``reviews.submit``), pages (``page queue``), addresses of the
    workbench (``GET /healthz``, ``address upload`` if they are Streamlit's) and of ingestion
    (``ingest POST /v1/cases``), MCP tools (``tool get_case``) and commands (``masis purge``).
    """

    words: str
    takes: Takes
    where: str

    @property
    def places(self) -> tuple[str, ...]:
        """The places where it's done, by name."""
        return tuple(self.where.split(", ")) if self.where else ()


ACTS: tuple[Act, ...] = (
    Act(
        "sign in; ask whether the server is in order",
        "nothing",
        "GET /sign-in, POST /sign-in, GET /healthz, GET /health.json, address liveness",
    ),
    Act(
        "open every page, its figures and the report of a case, as the queue's policy shows them",
        "read",
        "page overview, page queue, page review, page new, page import, page screening, page"
        " compare, page decisions, page team, page metrics, page trust, page settings, page"
        " health, page datasets, page retention, address media, address static, address"
        " configuration, address websocket, drafts.get, drafts.with_drafts, cases.open_for,"
        " cases.find_for, cases.facets_for, cases.standings_for, cases.values_for,"
        " cases.blind_filter, cases.hides_machine_from, reviews.decided_answer,"
        " cases.hides_figures_from, team.work, team.share_out, team.next_open, team.open_to,"
        " team.count_open, team.explain_empty_queue, team.comments, team.machine_hidden,"
        " team.leases, team.hides_counts_from, team.adjudications, team.to_adjudicate,"
        " trust.compare, trust.compare_parts, trust.team_stats, trust.decisions_by,"
        " trust.counts_in_words, trust.people, trust.miss_report, trust.yield_report,"
        " trust.reviewers, trust.drawable, trust.today, planted.recall",
    ),
    Act("type a decision and come back to it", "decide", "drafts.save, drafts.clear, drafts.adopt"),
    Act(
        "take cases, decide them, and undo their own decisions and auto-acceptances",
        "decide",
        "team.claim, team.claim_next, team.release, team.rename, team.skip, reviews.submit",
    ),
    Act(
        "comment, tag, assign cases to themselves, save views of the queue",
        "decide",
        "team.comment, team.tag, team.untag, team.save_view, team.remove_view",
    ),
    Act(
        "correct grades of a screening, agree with them, take labels from other tools",
        "decide",
        "screenings.override, screenings.agree, screenings.import_labels",
    ),
    Act(
        "upload and import cases and abstracts, add evidence to a case",
        "audit",
        "address upload, address removal of an upload, cases.add, cases.add_one,"
        " imports.formats_of, imports.sheets_of, imports.preview, imports.add_file,"
        " lake.import_cases, corpora.add, corpora.add_demo, corpora.keep_records,"
        " versions.fill_evidence",
    ),
    Act(
        "start and stop audits, forget cached replies, test models",
        "audit",
        "audits.audit, audits.cancel, audits.store_run, audits.forget_replies, jobs.audit,"
        " jobs.resume_audit, jobs.audit_all_new, jobs.cancel_batch, jobs.cancel",
    ),
    Act(
        "start, extend and stop screenings, and hand their evidence over to a case",
        "audit",
        "screenings.screen, screenings.store_screening, screenings.cancel, screenings.hand_over,"
        " screenings.begin_further, screenings.search_further, jobs.screen, jobs.screen_again,"
        " jobs.resume_screening, jobs.search_further",
    ),
    Act(
        "export decided cases, the log, screenings, data sets and backups",
        "export",
        "exports.write, exports.write_file, exports.write_log_csv, screenings.export, backups.make,"
        " datasets.freeze, datasets.write, datasets.zip",
    ),
    Act(
        "adjudicate, undo what others decided, assign cases to others",
        "oversee",
        "reviews.adjudicate, reviews.undo, team.assign, team.unassign, team.give",
    ),
    Act("set policy, rubric and label types", "oversee", "team.put_in_force"),
    Act(
        "reassess, fit the score, draw, apply and end a guarantee, reset what a screening"
        " remembers",
        "oversee",
        "reassessment.run, trust.fit, trust.draw, trust.apply, trust.end, screenings.reset_memory",
    ),
    Act(
        "mix copies with planted faults into the queue, withdraw them, count them",
        "oversee",
        "planted.plant, planted.withdraw, planted.count_copies",
    ),
    Act("remove abstracts and dataset versions", "oversee", "corpora.remove, datasets.remove"),
    Act(
        "see the length of the log and leases of all, names and figures over all cases under a"
        " blind policy",
        "oversee",
        "",
    ),
    Act("redact a case or an entry", "redact", "reviews.redact_case, reviews.redact_entry"),
    Act("remove what retention no longer stores", "purge", "retention.purge"),
    Act(
        "change settings, download models, let models take the exam, sign the log",
        "configure",
        "use_settings, exams.start, reviews.sign",
    ),
    Act(
        "ask whether ingestion runs, and for its description",
        "nothing",
        "ingest GET /healthz, ingest GET /v1/openapi.json",
    ),
    Act(
        "send cases and ask what became of one's own",
        "token",
        "ingest POST /v1/cases, ingest POST /v1/traces, ingest GET /v1/cases/{id:path}, ingest GET"
        " /v1/batches/{id}",
    ),
    Act(
        "read cases, audits and the queue as an agent; audit, but never decide",
        "token",
        "tool critique_answer, tool audit_citations, tool verify_claims, tool run_audit, tool"
        " get_run, tool get_case, tool list_queue, tool search_evidence",
    ),
    Act(
        "decide under a name, and see what that reviewer may see",
        "file",
        "masis queue, masis show, masis decide, masis label, masis undo, masis log",
    ),
    Act(
        "everything else that a command does",
        "file",
        "masis demo, masis serve, masis config, masis completion, masis audit, masis bench, masis"
        " optimize, masis models, masis report, masis metrics, masis trust, masis planted, masis"
        " import, masis export, masis dataset, masis screen, masis screening, masis ingest, masis"
        " mcp, masis person, masis health, masis verify-log, masis purge, masis db",
    ),
)
"""All acts.

A test fails for each page, use case, address, tool or command that has no row, and for each row
that doesn't match the permission its place requires (``tests/services/test_access.py``,
``tests/ui/test_rights.py``). docs/security.md shows the table.
"""
