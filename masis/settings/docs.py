"""What each setting does and why it is there, in the groups in which pages, files and docs show them.

A group is also a table of the configuration file: ``[loop] max_iterations = 3`` says what ``max_iterations = 3`` above
all tables says, and in ``[screening]`` the prefix may be left out (``max_rounds``).
"""

from __future__ import annotations

from typing import NamedTuple


class SettingDoc(NamedTuple):
    """One setting: what it does, in a sentence; and its source, ids of rules in docs/CONFORMANCE.md, or the reason."""

    meaning: str
    source: str


class Group(NamedTuple):
    """Settings that belong together. ``table`` is theirs in the file; there a name may leave out ``prefix``."""

    title: str
    table: str
    prefix: str
    meaning: str
    settings: dict[str, SettingDoc]


GROUPS = (
    Group(
        "Who judges",
        "models",
        "",
        "The model of each role. “offline” is rules and measurements on this machine: no key, no network, no cost.",
        {
            "drafter": SettingDoc(
                "Writes an answer from the evidence where a case came without one.",
                "REQ-CRITIC-026",
            ),
            "verifier": SettingDoc(
                "Checks each claim against the evidence; also a model on this machine, local:FOLDER, or offline,MODEL: "
                "the model for what the offline checks leave open.",
                "DRAFT-CRITIQUE-VERIFY",
            ),
            "critic": SettingDoc(
                "Criticises: what the answer gets wrong, leaves out or does not support.",
                "MASIS-CRITIC-P1",
            ),
            "reviser": SettingDoc(
                "Rewrites the answer so that the issues are resolved.",
                "CRITIC-LOOP-MODELS",
            ),
            "evaluator": SettingDoc(
                "Scores faithfulness, relevance, completeness and reasoning.",
                "MASIS-EVAL-P1",
            ),
        },
    ),
    Group(
        "Calls to models",
        "calls",
        "",
        "How models are reached. Keys are no settings: they come from the environment or a secrets file.",
        {
            "max_retries": SettingDoc(
                "How often a call is tried again when the server is busy, fails or answers out of form.",
                "REQ-CRITIC-032",
            ),
            "retry_base_s": SettingDoc(
                "Seconds to wait before the first retry, twice that before the second, up to half less at random.",
                "REQ-CRITIC-032",
            ),
            "retry_cap_s": SettingDoc(
                "The longest such wait. A server that asks for a longer one gets it.",
                "REQ-CRITIC-032",
            ),
            "claims_batch": SettingDoc(
                "How many claims are checked in one call.",
                "DRAFT-CRITIQUE-CACHE",
            ),
            "providers": SettingDoc(
                "Servers of your own, and other addresses for known ones: tables of the configuration file.",
                "REQ-CRITIC-SEC-002",
            ),
            "prices": SettingDoc(
                "Prices of your own in US dollars a million tokens: tables of the configuration file.",
                "a cost is reported only where prices are known",
            ),
            "programs_folder": SettingDoc(
                "The folder of compiled critics; empty: programs in your data folder.",
                "REQ-CRITIC-007",
            ),
        },
    ),
    Group(
        "Verifier models on this machine",
        "local",
        "local_",
        "From which scores a model named local:... gives a verdict; between them it can't decide (docs/verifiers.md).",
        {
            "local_supported_from": SettingDoc(
                "A claim is supported from this probability on that a passage supports it.",
                "a confirmation must be safe: above the 0.5 that such models were trained to decide at",
            ),
            "local_unsupported_to": SettingDoc(
                "A claim is unsupported where no passage supports it with more than this probability.",
                "an accusation must be right: below the 0.5 that such models were trained to decide at",
            ),
            "local_contradicted_from": SettingDoc(
                "A claim is contradicted from this probability on; only models that tell contradictions apart.",
                "an accusation must be right: above the 0.5 that such models were trained to decide at",
            ),
            "local_threads": SettingDoc(
                "Processor threads for the model; audits in several processes use as many each.",
                "one by default, so that other work goes on",
            ),
        },
    ),
    Group(
        "Citations",
        "citations",
        "citation_",
        "What counts as a citation, and what a wrong or missing one costs.",
        {
            "citation_mode": SettingDoc(
                "standard also reads ranges, names and links; literal takes ids only as they are written.",
                "MASIS-CRITIC-LITERAL",
            ),
            "invalid_citation_penalty": SettingDoc(
                "Confidence is multiplied by this where a reference names no evidence.",
                "MASIS-CRITIC-P3",
            ),
            "uncited_claim_penalty": SettingDoc(
                "Confidence is multiplied by this where a sentence that asserts cites nothing.",
                "MASIS-CRITIC-P4",
            ),
        },
    ),
    Group(
        "Claims and issues",
        "claims",
        "",
        "What becomes an issue.",
        {
            "strictness": SettingDoc(
                "lenient reports serious issues only, moderate leaves out minor ones, strict reports all.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "check_factual": SettingDoc(
                "Whether claims that the evidence does not support become issues.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "check_completeness": SettingDoc(
                "Whether what is asked for and in the evidence, but not in the answer, is an issue.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "check_contradictions": SettingDoc(
                "Whether claims that the evidence contradicts become issues.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
        },
    ),
    Group(
        "Critique of drafts",
        "drafts",
        "draft_",
        "Drafts that a query pipeline hands over (critique_draft). The settings for claims apply to them too.",
        {
            "draft_critique": SettingDoc(
                "Whether a pipeline has its drafts checked at all.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "draft_auto_revise": SettingDoc(
                "Whether a draft with issues is revised at once.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "draft_max_revisions": SettingDoc(
                "How many revisions of one draft are made at most; each is checked again.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
            "draft_min_length": SettingDoc(
                "Drafts with fewer characters than this go through a pipeline unchecked.",
                "DRAFT-CRITIQUE-CONFIG",
            ),
        },
    ),
    Group(
        "Scores",
        "scores",
        "",
        "How the judge's four scores are bounded and weighed. The weights, of the overall score, add up to 1.",
        {
            "hallucination_faithfulness_cap": SettingDoc(
                "Faithfulness is at most this where a reference or a statement is fabricated.",
                "MASIS-EVAL-P5",
            ),
            "uncited_faithfulness_cap": SettingDoc(
                "Faithfulness is at most this with several uncited sentences.",
                "MASIS-EVAL-P5",
            ),
            "uncited_cap_from": SettingDoc(
                "How many uncited sentences are several.",
                "MASIS-EVAL-P5",
            ),
            "many_uncited_faithfulness_cap": SettingDoc(
                "Faithfulness is at most this with many uncited sentences.",
                "MASIS-EVAL-P5",
            ),
            "many_uncited_cap_from": SettingDoc(
                "How many uncited sentences are many.",
                "MASIS-EVAL-P5",
            ),
            "faithfulness_weight": SettingDoc(
                "Weight of faithfulness: the answer says only what the evidence supports.",
                "MASIS-EVAL-WEIGHTS",
            ),
            "relevance_weight": SettingDoc(
                "Weight of relevance: it answers the question.",
                "MASIS-EVAL-WEIGHTS",
            ),
            "completeness_weight": SettingDoc(
                "Weight of completeness: it uses what the evidence offers.",
                "MASIS-EVAL-WEIGHTS",
            ),
            "reasoning_weight": SettingDoc(
                "Weight of reasoning: its steps hold together.",
                "MASIS-EVAL-WEIGHTS",
            ),
            "evaluate": SettingDoc(
                "every: each iteration is scored; final: only the last one; never: none.",
                "MASIS-EVAL-ROUTING",
            ),
        },
    ),
    Group(
        "Loop",
        "loop",
        "",
        "When an audit stops revising the answer.",
        {
            "max_iterations": SettingDoc(
                "How many versions of the answer are audited at most, the first included.",
                "REQ-CRITIC-016",
            ),
            "min_iterations": SettingDoc(
                "How many versions are audited at least, unless the reviser changes nothing: 2 revises once also where "
                "no serious issue is left.",
                "REQ-CRITIC-017",
            ),
            "output_validator": SettingDoc(
                "What an improved answer must pass before it is audited: pydantic, or baml, which also repairs "
                "replies out of form.",
                "REQ-CRITIC-028",
            ),
            "improvement_threshold": SettingDoc(
                "It stops when a revision raises quality by less than this.",
                "REQ-CRITIC-017",
            ),
            "call_deadline_s": SettingDoc(
                "Seconds that one call to a model may take, over all its tries.",
                "REQ-CRITIC-NFR-001, REQ-CRITIC-NFR-002",
            ),
            "iteration_deadline_s": SettingDoc(
                "Seconds that one iteration may take, its revision included.",
                "REQ-CRITIC-NFR-003",
            ),
            "loop_deadline_s": SettingDoc(
                "Seconds that a whole run may take; what is finished by then is the result.",
                "REQ-CRITIC-NFR-004",
            ),
            "judge_samples": SettingDoc(
                "How often critic and evaluator, where they are models, judge each answer.",
                "judges that sample vary, and their spread shows how much",
            ),
            "sample_temperature": SettingDoc(
                "The temperature of critic and evaluator when they judge more than once.",
                "judges that sample vary, and their spread shows how much",
            ),
        },
    ),
    Group(
        "Screening of abstracts",
        "screening",
        "screening_",
        "When the retrieved evidence is good enough, and when more is retrieved.",
        {
            "screening_graders": SettingDoc(
                "Who grades an abstract: “offline”, a model, or several with commas between them.",
                "AESOP-CONSENSUS",
            ),
            "screening_retrieve": SettingDoc(
                "How many abstracts a round takes from each source.",
                "AESOP-ROUNDS",
            ),
            "screening_max_rounds": SettingDoc(
                "After how many rounds the evidence is called insufficient.",
                "AESOP-DECAY",
            ),
            "screening_least_rounds": SettingDoc(
                "How many rounds of a screening there are at least, however good the first ones are.",
                "one that is searched further makes another round though an earlier one sufficed",
            ),
            "screening_required_first": SettingDoc(
                "Average quality that the kept abstracts of the first round must reach.",
                "AESOP-DECAY",
            ),
            "screening_required_step": SettingDoc(
                "By how much the required average falls with each further round.",
                "AESOP-DECAY",
            ),
            "screening_required_least": SettingDoc(
                "The lowest required average of any round.",
                "AESOP-DECAY",
            ),
            "screening_keep_share": SettingDoc(
                "The share of abstracts to keep from which the evidence can be sufficient.",
                "AESOP-CONSENSUS",
            ),
            "screening_discard_share": SettingDoc(
                "The share to discard from which more is retrieved in any case.",
                "AESOP-CONSENSUS",
            ),
            "screening_memory": SettingDoc(
                "Whether what was accepted before may move the required average a little.",
                "AESOP-MEMORY",
            ),
            "screening_memory_bound": SettingDoc(
                "The most by which memory moves it, up or down.",
                "what was learned must not run away with the threshold",
            ),
            "screening_criteria": SettingDoc(
                "Criteria of the team, a line each: 'include: adults', 'exclude: no control group'.",
                "shown with the result, and offered as reasons to people; no machine judges by them",
            ),
            "screening_concepts": SettingDoc(
                "Concepts of the question, a line each: 'population: adults', 'outcome: death = mortality, stroke'.",
                "they take the place of what is read of the question; for one screening, not for a workbench",
            ),
            "screening_pubmed_email": SettingDoc(
                "The e-mail address PubMed may write to about searches made here; it asks for one.",
                "PubMed asks who searches",
            ),
            "screening_pubmed_address": SettingDoc(
                "Where PubMed's E-utilities are reached.",
                "for a mirror, or a server of a test",
            ),
        },
    ),
    Group(
        "Review",
        "review",
        "",
        "When a run needs review.",
        {
            "review_threshold": SettingDoc(
                "A run needs review where confidence in the chosen answer is under this.",
                "a run of low confidence needs review",
            ),
            "review_quality": SettingDoc(
                "A run needs review where the quality score of the chosen answer is under this.",
                "docs/acceptance.md says what needs review",
            ),
            "review_disagreement": SettingDoc(
                "A run needs review where citation engine, critic and evaluator are further apart than this.",
                "chosen on development data: docs/acceptance.md",
            ),
            "review_uncited_answers": SettingDoc(
                "Whether every answer that cites nothing needs review.",
                "docs/acceptance.md says what needs review",
            ),
            "max_judge_spread": SettingDoc(
                "A run needs review where the samples of a judge lie further apart than this.",
                "where judges disagree, a person decides",
            ),
            "review_revised": SettingDoc(
                "Whether every answer that the loop has revised needs review.",
                "a revision is a model's text until a person has read it",
            ),
            "spot_check_share": SettingDoc(
                "The share of runs that need no review and go to the queue all the same.",
                "so that the miss rate can be estimated",
            ),
            "spot_check_seed": SettingDoc(
                "The seed of those spot checks: the same seed draws the same cases.",
                "so that the draw can be repeated",
            ),
        },
    ),
    Group(
        "Retention",
        "retention",
        "retention_",
        "How long audits and screenings are stored. Cases and decisions are never removed.",
        {
            "retention_days": SettingDoc(
                "After how many days masis purge removes audits nobody has decided on; 0: never.",
                "REQ-CRITIC-COMP-002",
            ),
            "retention_auto": SettingDoc(
                "Whether masis serve does so by itself, when it starts and once a day.",
                "nothing is removed unless somebody asked for it",
            ),
        },
    ),
    Group(
        "Backups",
        "backup",
        "backup_",
        "Backups that masis serve makes by itself: verified copies, on another disk if you name one.",
        {
            "backup_folder": SettingDoc(
                "The folder in which masis serve makes backups by itself; empty: none.",
                "a backup that nobody asked for would fill somebody's disk",
            ),
            "backup_hours": SettingDoc(
                "After how many hours the next backup is made.",
                "what is lost at worst is what was done since",
            ),
            "backup_keep": SettingDoc(
                "How many backups stay in the folder; older ones are removed.",
                "two weeks of a backup a day",
            ),
        },
    ),
    Group(
        "Log and telemetry",
        "log",
        "log_",
        "What the log and telemetry contain. Nothing is sent unless telemetry is switched on.",
        {
            "log_texts": SettingDoc(
                "Whether the log at DEBUG may hold whole answers, critiques and revisions.",
                "REQ-CRITIC-SEC-003",
            ),
            "log_format": SettingDoc(
                "text writes lines for people, json one object a line for machines.",
                "REQ-CRITIC-OBS-001",
            ),
            "telemetry": SettingDoc(
                "off sends nothing, otlp sends spans and metrics to a collector, console prints them.",
                "REQ-CRITIC-OBS-001",
            ),
            "telemetry_texts": SettingDoc(
                "Whether spans may hold questions, answers and evidence.",
                "REQ-CRITIC-SEC-003",
            ),
        },
    ),
)

DOCS = {name: doc for group in GROUPS for name, doc in group.settings.items()}
"""The documentation of every setting, by its name."""

INSIDE = {
    "providers": {
        "kind": "Which API the server has: OpenAI's Chat Completions, as most are, or Anthropic's Messages.",
        "address": "Its address, up to what comes before /chat/completions: http://127.0.0.1:8000/v1.",
        "key_env": "The variable, or the entry of the secrets file, that holds its key. The key goes to it alone.",
        "concurrency": "How many calls it gets at once, at most; 16 by default.",
        "adapts": "Whether it gets one call at first, and as many at once as it answers without delay; so at local "
        "addresses by default.",
        "mode": "How a typed reply is asked for; by default, found out from what the server accepts.",
        "effort": "How long a model that thinks before it replies may do so.",
    },
    "prices": {
        "input": "US dollars for a million tokens sent.",
        "output": "US dollars for a million tokens received.",
        "cached_input": "For tokens served from the cache; by default the price of input.",
        "cache_write": "For tokens written to the cache; by default the price of input.",
    },
}
"""The keys of the tables inside of settings: ``[providers.NAME]``, ``[prices."PROVIDER:MODEL"]``."""
