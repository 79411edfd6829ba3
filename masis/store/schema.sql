-- The schema of a new workbench database (core/migrations.py).
--
-- Until 0.2.0 is released this file may be edited in place. After that only its comments may change,
-- and a schema change is a migration appended to MIGRATIONS. Each statement must end at the end of
-- a line. The triggers that make the logs append-only are in core/guards.py, which creates them
-- again after every migration.

-- "MASI" in the file header; identifies a database of the workbench
PRAGMA application_id = 0x4D415349;

-- app_version: the version that last migrated the file. schema: the digest of this file.
CREATE TABLE store_info (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;


-- Cases -------------------------------------------------------------------------------------------

CREATE TABLE cases (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    imported_at TEXT NOT NULL,
    query_start TEXT NOT NULL,
    field TEXT,
    dataset TEXT,
    -- All columns below are derived from runs and decision_log (reviews/states.py) and can be
    -- recomputed.
    state TEXT NOT NULL DEFAULT 'new',
    updated_at TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    run_seq INTEGER REFERENCES jobs (seq),
    decision_seq INTEGER REFERENCES decision_log (seq),
    reviewer TEXT,
    quality REAL,          -- like the other figures, of the original answer
    revised_quality REAL,  -- of the best revision
    confidence REAL,
    overall REAL,
    invalid INTEGER,
    uncited INTEGER,
    iterations INTEGER,
    models TEXT NOT NULL DEFAULT '[]',
    flags TEXT NOT NULL DEFAULT '[]',
    reasons TEXT NOT NULL DEFAULT '[]',
    disagreement REAL NOT NULL DEFAULT -1,
    doubt REAL NOT NULL DEFAULT -1,
    redaction_seq INTEGER REFERENCES decision_log (seq),  -- the log entry of the case's redaction
    tier TEXT,
    risk REAL NOT NULL DEFAULT -1,
    -- the worst issue of the original answer as JSON (views/headline.py), worded when it is shown
    headline TEXT,
    severity TEXT,         -- of the worst issue
    wanted INTEGER NOT NULL DEFAULT 1,   -- how many people decide the case
    pending INTEGER NOT NULL DEFAULT 0,  -- how many decisions are missing after the first
    policy TEXT,                         -- the policy that these decisions record
    -- 1: a copy with a planted fault (planted_faults); 2: a copy that is labeled again
    -- (relabel_copies); never derived
    planted INTEGER NOT NULL DEFAULT 0,
    -- The status that people see: exactly one of nine, so that their counts add up. A shared case
    -- that others have started to decide keeps the status from its audit; audits/queue.py shows it
    -- as waiting to those who have decided. Issues found before a later step of the audit failed,
    -- such as the revision, still count.
    standing TEXT NOT NULL GENERATED ALWAYS AS (CASE
        WHEN state IN ('new', 'running', 'needs_review') AND iterations IS NULL THEN 'not_audited'
        WHEN state = 'interrupted' THEN 'failed'
        WHEN state IN ('running', 'needs_review') AND instr(reasons, '"error"')
        AND tier IS NOT 'must_look' THEN 'failed'
        WHEN state IN ('approved', 'overridden', 'rejected', 'superseded', 'redacted')
        THEN 'decided'
        WHEN state = 'planted' THEN 'planted'
        WHEN state IN ('escalated', 'needs_adjudication') THEN 'waits'
        WHEN state = 'accepted' THEN 'nothing_found'
        WHEN tier = 'must_look' THEN 'wrong'
        WHEN instr(flags, '"no_answer"') THEN 'no_answer'
        WHEN tier = 'not_certified' THEN 'not_confirmed'
        ELSE 'nothing_found'
    END) STORED
) STRICT;

-- The full records, in a table of their own so that the rows that lists scan stay short.
CREATE TABLE case_payloads (
    case_seq INTEGER PRIMARY KEY REFERENCES cases (seq),
    payload TEXT NOT NULL
) STRICT;

-- A contentless index: the texts are in case_payloads. Prefixes of three and four letters are
-- indexed too.
CREATE VIRTUAL TABLE case_words USING fts5 (
    id, query, answer, evidence, content='', tokenize='unicode61 remove_diacritics 2', prefix='3 4'
);


-- The queue: its orders, its filters, and the values that it counts -------------------------------

CREATE INDEX cases_risk ON cases (risk DESC);
CREATE INDEX cases_state_risk ON cases (state, risk DESC);
CREATE INDEX cases_disagreement ON cases (disagreement DESC);
CREATE INDEX cases_state_disagreement ON cases (state, disagreement DESC);
CREATE INDEX cases_doubt ON cases (doubt DESC);
CREATE INDEX cases_standing ON cases (standing, risk DESC);
-- the default list
CREATE INDEX cases_open ON cases (risk DESC) WHERE standing NOT IN ('decided', 'planted');
CREATE INDEX cases_field ON cases (field);
CREATE INDEX cases_dataset ON cases (dataset);
CREATE INDEX cases_reviewer ON cases (reviewer);
CREATE INDEX cases_flags ON cases (flags);
CREATE INDEX cases_reasons ON cases (reasons);
CREATE INDEX cases_models ON cases (models);
CREATE INDEX cases_severity ON cases (severity, standing, iterations);
CREATE INDEX cases_pending ON cases (seq) WHERE pending > 0;
-- All columns used in filters and orders, so that a filtered list needs only one pass over this
-- index.
CREATE INDEX cases_filtered ON cases (
    state, standing, tier, field, dataset, reviewer, quality, confidence, risk, disagreement,
        doubt, flags, reasons,
    models, severity, iterations
);


-- Jobs: audits (runs) and screenings, and the parts stored as they progress -----------------------

CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'screening')),
    id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
    owner TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 1,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    ended_at TEXT,
    why TEXT NOT NULL DEFAULT '',
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1,
    removed_by INTEGER REFERENCES purges (seq),
    asked_by TEXT NOT NULL DEFAULT '',  -- the person who requested it, if any
    settings TEXT NOT NULL,
    -- Runs only: the case, and the figures that lists show and sort by.
    case_seq INTEGER REFERENCES cases (seq),
    case_digest TEXT,
    models TEXT,
    settings_digest TEXT,
    quality REAL,          -- as in cases
    revised_quality REAL,
    confidence REAL,
    overall REAL,
    invalid INTEGER,
    uncited INTEGER,
    iterations INTEGER,
    improvement REAL,
    termination TEXT,
    needs_review INTEGER,
    spot_check INTEGER,
    flags TEXT NOT NULL DEFAULT '[]',
    reasons TEXT NOT NULL DEFAULT '[]',
    disagreement REAL NOT NULL DEFAULT -1,
    doubt REAL NOT NULL DEFAULT -1,
    tier TEXT,
    risk REAL NOT NULL DEFAULT -1,
    rule TEXT,  -- the acceptance rule behind the reasons
    auditor TEXT,  -- digest of models, prompts and weights
    likely REAL,  -- the built-in probability of fault
    coverable INTEGER,  -- whether a guarantee may cover it
    headline TEXT,      -- as in cases
    -- dropped by m002_structured_headlines
    worded TEXT,
    severity TEXT,      -- as in cases
    -- Screenings only.
    question TEXT,
    sources TEXT,
    thresholds TEXT,
    outcome TEXT,
    kept INTEGER,
    -- Long texts are last, so that SQLite needn't read their overflow pages to get the columns of a
    -- list.
    draft TEXT,
    payload BLOB,
    UNIQUE (id, kind),
    CHECK (iif(kind = 'run', case_seq IS NOT NULL AND models IS NOT NULL,
        question IS NOT NULL AND sources IS NOT NULL))
) STRICT;
CREATE INDEX jobs_unfinished ON jobs (kind, state) WHERE state != 'finished';
-- a covering index of the view's filter, since it includes kind
CREATE INDEX runs_of_case ON jobs (case_seq, settings_digest, state, kind) WHERE kind = 'run';
CREATE INDEX screenings_newest ON jobs (kind) WHERE kind = 'screening';

CREATE VIEW runs AS SELECT
    seq, id, state, owner, starts, started_at, seen_at, ended_at, why, cancel_requested,
        removed_by, asked_by, settings,
    case_seq, case_digest, models, settings_digest, quality, revised_quality, confidence,
        overall, invalid, uncited,
    iterations, improvement, termination, needs_review, spot_check, flags, reasons, disagreement,
        doubt, tier, risk, rule,
    auditor, likely, coverable, headline, worded, severity, draft, payload
FROM jobs WHERE kind = 'run';
CREATE VIEW screenings AS SELECT
    seq, id, state, owner, starts, started_at, seen_at, ended_at, why, cancel_requested,
        removed_by, settings,
    version, question, sources, thresholds, outcome, kept, payload
FROM jobs WHERE kind = 'screening';

-- kind is event, iteration, round, or step (a finished step of the current iteration, numbered
-- 1,000 times the iteration plus its position). Events are JSON; the others are compressed.
CREATE TABLE job_parts (
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    kind TEXT NOT NULL,
    number INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (job_seq, kind, number)
) STRICT;

-- The cache of model replies (setting cache). llm/recordings.py defines key and payload. Removing
-- the content of any run of a case removes the case's replies.
CREATE TABLE replies (
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (case_seq, key)
) STRICT, WITHOUT ROWID;

-- Append-only (guards.py). It refers to no row of runs, so that it outlives them. One row per ended
-- start of a run.
CREATE TABLE executions (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    start INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    started_at TEXT NOT NULL,
    iterations INTEGER NOT NULL,
    final_quality REAL,
    improvement REAL,
    termination TEXT NOT NULL,
    models TEXT NOT NULL,
    app TEXT NOT NULL,
    rubric TEXT NOT NULL,
    UNIQUE (run_id, start)
) STRICT;
CREATE INDEX executions_of_case ON executions (case_id);

-- Requests that programs sent over HTTP, and their results.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    key TEXT,
    digest TEXT NOT NULL,
    form TEXT NOT NULL,
    body BLOB NOT NULL,
    received_at TEXT NOT NULL,
    done_at TEXT,
    result TEXT
) STRICT;
CREATE UNIQUE INDEX inbox_keys ON inbox (source, key) WHERE key IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox (seq) WHERE done_at IS NULL;

-- The cases that each program sent.
CREATE TABLE arrivals (
    seq INTEGER PRIMARY KEY,
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    source TEXT NOT NULL,
    UNIQUE (case_seq, source)
) STRICT;

-- Notices about these cases that the webhook has yet to deliver, added by the trigger while a
-- webhook is set (store_info). Entering or leaving adjudication sends no notice, because that would
-- reveal that all reviewers of an unsettled case have decided.
CREATE TABLE notices (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    event TEXT NOT NULL,
    at TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    due_at TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX notices_due ON notices (due_at, seq);
CREATE TRIGGER cases_notify AFTER UPDATE OF state ON cases
WHEN OLD.state IS NOT NEW.state
    AND (NEW.state IN ('approved', 'overridden', 'rejected', 'escalated')
        OR (NEW.state = 'needs_review' AND OLD.state <> 'needs_adjudication'
            -- otherwise the notice would reveal that one of several reviewers has decided
            AND (NEW.pending = 0 OR OLD.state = 'running')))
    AND EXISTS (SELECT 1 FROM store_info WHERE key = 'webhook')
    AND EXISTS (SELECT 1 FROM arrivals WHERE case_seq = NEW.seq)
BEGIN
    INSERT INTO notices (case_seq, event, at) VALUES (
        NEW.seq, iif(NEW.state IN ('needs_review', 'escalated'), 'case.needs_review',
        'case.decided'), NEW.updated_at
    );
END;


-- Figures of runs, in tables that refer to runs by id only, so that they outlive removed runs -----

-- m003_metric_views adds the views run_metrics and iteration_metrics, which metrics are read from.

CREATE TABLE run_measures (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    finished_at TEXT NOT NULL,
    dataset TEXT,
    drafter TEXT, verifier TEXT, critic TEXT, reviser TEXT, evaluator TEXT,
    loop_ms REAL NOT NULL,
    iterations INTEGER NOT NULL,
    converged INTEGER NOT NULL,
    termination TEXT NOT NULL,
    needs_review INTEGER NOT NULL,
    improvement_percentage REAL,
    quality REAL, revised_quality REAL, confidence REAL, overall REAL,
    calls INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd REAL,
    hallucination INTEGER,
    revision INTEGER,
    claim_confidence REAL,
    claims INTEGER
) STRICT;
CREATE INDEX run_measures_finished ON run_measures (finished_at);
CREATE INDEX run_measures_critic ON run_measures (critic, finished_at);

CREATE TABLE iteration_measures (
    measures_seq INTEGER NOT NULL REFERENCES run_measures (seq) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    critic_ms REAL, reviser_ms REAL, evaluator_ms REAL,
    iteration_ms REAL NOT NULL,
    quality REAL,
    improvement_delta REAL,
    issues INTEGER NOT NULL,
    major_issues INTEGER NOT NULL,
    confidence REAL,
    conflicts INTEGER NOT NULL,
    invalid_citations INTEGER NOT NULL,
    uncited_claims INTEGER NOT NULL,
    overall REAL, faithfulness REAL, relevance REAL, completeness REAL, reasoning REAL,
    PRIMARY KEY (measures_seq, number)
) STRICT, WITHOUT ROWID;


-- The decision log --------------------------------------------------------------------------------

-- Append-only, with a hash chain (guards.py). The texts that people wrote are in decision_payloads,
-- so that they can be redacted without breaking the chain.
CREATE TABLE decision_log (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    payload_digest TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    run_seq INTEGER REFERENCES jobs (seq),
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    verdict TEXT,
    token TEXT UNIQUE,
    undoes INTEGER REFERENCES decision_log (seq),
    redacts INTEGER UNIQUE REFERENCES decision_log (seq)
) STRICT;
CREATE INDEX decisions_of_case ON decision_log (case_seq);
CREATE INDEX decisions_of_run ON decision_log (run_seq) WHERE run_seq IS NOT NULL;
CREATE INDEX entries_of_people ON decision_log (seq) WHERE kind <> 'policy_accept';

CREATE TABLE decision_payloads (
    entry_seq INTEGER PRIMARY KEY REFERENCES decision_log (seq),
    reviewer TEXT NOT NULL,
    payload TEXT NOT NULL,
    -- Columns for statistics over all decisions. Searching the canonical JSON text is safe because
    -- quotes inside a string would be escaped.
    blind INTEGER NOT NULL AS (instr(payload, '"machine_shown":[]') > 0) STORED,
    simulated INTEGER NOT NULL AS (instr(payload, '"simulated":true') > 0) STORED,
    marks INTEGER NOT NULL AS (instr(payload, '"labels":[{') > 0) STORED,
    reason_code TEXT AS (
        CASE payload ->> '$.verdict' WHEN 'override' THEN payload ->> '$.extra.reason_code' END
    ) STORED,
    seconds REAL AS (
        CASE WHEN json_type(payload, '$.extra.seconds') IN ('integer', 'real')
        THEN payload ->> '$.extra.seconds' END
    ) STORED
) STRICT;
CREATE INDEX decisions_by_reviewer ON decision_payloads (reviewer);
-- empty except in a demo
CREATE INDEX simulated_decisions ON decision_payloads (entry_seq) WHERE simulated;

-- Signatures of entries of both logs, made with a key that is stored outside of the database.
CREATE TABLE log_signatures (
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;


-- Reviewing, alone and as a team ------------------------------------------------------------------

-- Copies of sound answers with one planted fault, to measure who finds it. fault is the change as
-- JSON (schema/faults.py). No other table contains it, so that a copy looks like any other case.
CREATE TABLE planted_faults (
    case_seq INTEGER PRIMARY KEY REFERENCES cases (seq),
    source_seq INTEGER NOT NULL REFERENCES cases (seq),
    planted_at TEXT NOT NULL,
    planted_by TEXT NOT NULL,
    kind TEXT NOT NULL,
    fault TEXT NOT NULL,
    withdrawn_at TEXT
) STRICT;
CREATE INDEX planted_copies_of ON planted_faults (source_seq);

-- Text that people typed but haven't submitted yet.
CREATE TABLE drafts (
    reviewer TEXT NOT NULL,
    subject TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    PRIMARY KEY (reviewer, subject, field)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    reviewer TEXT NOT NULL,
    taken_at TEXT NOT NULL,
    until TEXT NOT NULL,
    PRIMARY KEY (case_seq, reviewer)
) STRICT, WITHOUT ROWID;

-- Derived from the decision log. kind is decided, assigned or skipped (who is a reviewer), or
-- tagged (who is the tag).
CREATE TABLE case_work (
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    kind TEXT NOT NULL,
    who TEXT NOT NULL,
    entry_seq INTEGER NOT NULL REFERENCES decision_log (seq),
    PRIMARY KEY (case_seq, kind, who)
) STRICT, WITHOUT ROWID;
CREATE INDEX work_of ON case_work (kind, who, case_seq);

-- Policies, rubrics and views. Append-only (guards.py); the newest row of a kind and name is in
-- force. Each row except views has a digest that includes the previous digest, and log entries
-- record the latest digest of their time.
CREATE TABLE team_records (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    by TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    payload TEXT NOT NULL,
    digest TEXT
) STRICT;
CREATE INDEX team_records_named ON team_records (kind, name, seq);
CREATE INDEX team_records_chained ON team_records (seq) WHERE digest IS NOT NULL;


-- Data sets frozen under a name -------------------------------------------------------------------

-- The cases, entries and audits that a data set was made from, and its manifest, without their
-- texts.
CREATE TABLE dataset_versions (
    seq INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    by TEXT NOT NULL,
    description TEXT NOT NULL,
    form TEXT NOT NULL,
    encoding TEXT NOT NULL,
    selection TEXT NOT NULL,
    manifest TEXT NOT NULL,
    log_length INTEGER NOT NULL,
    log_digest TEXT NOT NULL,
    app TEXT NOT NULL
) STRICT;

-- The cases with rows. judgements is [[entry, in force, run, iteration], ...].
CREATE TABLE dataset_members (
    dataset_seq INTEGER NOT NULL REFERENCES dataset_versions (seq),
    case_seq INTEGER NOT NULL REFERENCES cases (seq),
    state TEXT NOT NULL,
    side TEXT NOT NULL,
    judgements TEXT NOT NULL,
    PRIMARY KEY (dataset_seq, case_seq)
) STRICT, WITHOUT ROWID;


-- Retention: who removed what by which rule, without the removed texts. Both tables are append-only

CREATE TABLE purges (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    by TEXT NOT NULL,
    how TEXT NOT NULL,
    rule TEXT NOT NULL,
    app TEXT NOT NULL
) STRICT;

CREATE TABLE purged (
    seq INTEGER PRIMARY KEY,
    purge_seq INTEGER NOT NULL REFERENCES purges (seq),
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    parts TEXT NOT NULL
) STRICT;
CREATE INDEX purged_by ON purged (purge_seq);
CREATE INDEX purged_record ON purged (record_id);


-- Corpora of abstracts ----------------------------------------------------------------------------

-- Each corpus has its own FTS5 table (corpus_words_SEQ), so that the word frequencies used for
-- ranking are those of the corpus alone, and removing a corpus is fast.
CREATE TABLE corpora (
    seq INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    made_at TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE corpus_abstracts (
    seq INTEGER PRIMARY KEY,
    corpus_seq INTEGER NOT NULL REFERENCES corpora (seq),
    id TEXT NOT NULL,
    doi TEXT,
    pmid TEXT,
    title_key TEXT,
    year INTEGER,
    payload TEXT NOT NULL
) STRICT;
CREATE INDEX abstracts_of_corpus ON corpus_abstracts (corpus_seq);
CREATE UNIQUE INDEX abstracts_by_id ON corpus_abstracts (corpus_seq, id);
CREATE INDEX abstracts_by_doi ON corpus_abstracts (corpus_seq, doi) WHERE doi IS NOT NULL;
CREATE INDEX abstracts_by_pmid ON corpus_abstracts (corpus_seq, pmid) WHERE pmid IS NOT NULL;
CREATE INDEX abstracts_by_title ON corpus_abstracts (corpus_seq, title_key)
    WHERE title_key IS NOT NULL;

-- Counts are written together with the abstracts, so that an interrupted import counts what it
-- stored.
CREATE TABLE corpus_imports (
    seq INTEGER PRIMARY KEY,
    corpus_seq INTEGER NOT NULL REFERENCES corpora (seq),
    at TEXT NOT NULL,
    source TEXT NOT NULL,
    identified INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    faulty INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX imports_of_corpus ON corpus_imports (corpus_seq);


-- Screenings: graded abstracts, people's decisions about grades, and remembered grades ------------

-- A copy of each abstract as it was graded, because corpora can be removed and PubMed corrects its
-- records.
CREATE TABLE screening_abstracts (
    seq INTEGER PRIMARY KEY,
    screening_seq INTEGER NOT NULL REFERENCES jobs (seq),
    abstract_id TEXT NOT NULL,
    round INTEGER NOT NULL,
    abstract BLOB NOT NULL,
    grade BLOB,
    UNIQUE (screening_seq, abstract_id)
) STRICT;

-- A cache of the graders' replies, by a digest of their inputs. It can be emptied at any time.
CREATE TABLE remembered_grades (
    key TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    grade BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- People's decisions about grades: an append-only log with its own hash chain (guards.py).
CREATE TABLE screening_log (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    payload_digest TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    screening_seq INTEGER REFERENCES jobs (seq),
    kind TEXT NOT NULL,
    abstract_id TEXT,
    field TEXT,
    token TEXT UNIQUE,
    redacts INTEGER UNIQUE REFERENCES screening_log (seq)
) STRICT;
CREATE INDEX entries_of_screening ON screening_log (screening_seq);

CREATE TABLE screening_log_payloads (
    entry_seq INTEGER PRIMARY KEY REFERENCES screening_log (seq),
    reviewer TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

-- The acceptance memory. A reset only marks the forgotten rows, because drift is measured over all
-- of them.
CREATE TABLE acceptances (
    seq INTEGER PRIMARY KEY,
    screening_seq INTEGER NOT NULL REFERENCES jobs (seq),
    at TEXT NOT NULL,
    payload TEXT NOT NULL,
    forgotten_by INTEGER REFERENCES screening_log (seq)
) STRICT;
CREATE INDEX acceptances_of_screening ON acceptances (screening_seq);
CREATE INDEX acceptances_remembered ON acceptances (seq) WHERE forgotten_by IS NULL;
