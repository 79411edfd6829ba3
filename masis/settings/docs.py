"""What each setting does and where it comes from, in the groups in which pages, files and docs show them.

A group is also a table of the configuration file: ``[loop] max_iterations = 3`` says what ``max_iterations = 3`` above
all tables says, and in ``[screening]`` the prefix may be left out (``max_rounds``).
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """One setting: what it does, in a sentence; and its source, a spec or DESIGN.md, or why it is ours."""

    meaning: str
    source: str


class Group(NamedTuple):
    """Settings that belong together. ``table`` is theirs in the file; there a name may leave out ``prefix``."""

    title: str
    table: str
    prefix: str
    meaning: str
    settings: dict[str, Words]


GROUPS = (
    Group(
        "Who judges",
        "models",
        "",
        "The model of each role. “offline” is rules and measurements on this machine: no key, no network, no cost.",
        {
            "drafter": Words(
                "Writes an answer from the evidence where a case came without one.",
                "DESIGN.md, 2: a case can come without a draft",
            ),
            "verifier": Words(
                "Checks each claim of the answer against the evidence.",
                "specs/draft-critique.md, verifyClaims",
            ),
            "critic": Words(
                "Objects: what the answer gets wrong, leaves out or does not bear out.",
                "specs/masis-critic.md, Problem 1",
            ),
            "reviser": Words(
                "Rewrites the answer so that the objections are met.",
                "specs/critic-loop.md, 8, Q1",
            ),
            "evaluator": Words(
                "Scores faithfulness, relevance, completeness and reasoning.",
                "specs/masis-evaluator.md, Problem 1",
            ),
        },
    ),
    Group(
        "Calls to models",
        "calls",
        "",
        "How models are reached. Keys are no settings: they come from the environment or a secrets file.",
        {
            "max_retries": Words(
                "How often a call is tried again when the server is busy, fails or answers out of form.",
                "specs/critic-loop.md, REQ-CRITIC-032",
            ),
            "retry_base_s": Words(
                "Seconds to wait before the first retry, twice that before the second, less some chance.",
                "specs/critic-loop.md, REQ-CRITIC-032",
            ),
            "retry_cap_s": Words(
                "The longest such wait. What the server asks for comes first.",
                "specs/critic-loop.md, REQ-CRITIC-032",
            ),
            "claims_batch": Words(
                "How many claims are checked in one call.",
                "specs/draft-critique.md, Performance Considerations",
            ),
            "providers": Words(
                "Servers of your own, and other addresses for known ones: tables of the configuration file.",
                "specs/critic-loop.md, REQ-CRITIC-SEC-002",
            ),
            "prices": Words(
                "Prices of your own in US dollars a million tokens: tables of the configuration file.",
                "ours: what a run cost is told only where prices are known",
            ),
            "programs_folder": Words(
                "Where compiled critics lie; empty: programs in your data folder.",
                "ours: specs/critic-loop.md, REQ-CRITIC-007, asks that critics can be optimised",
            ),
        },
    ),
    Group(
        "Citations",
        "citations",
        "citation_",
        "What counts as a citation, and what a wrong or missing one costs.",
        {
            "citation_mode": Words(
                "standard reads ranges, names and links too; literal takes ids only as they are written.",
                "specs/masis-critic.md, Problems 3 and 4",
            ),
            "invalid_citation_penalty": Words(
                "Confidence is multiplied by this where a reference names no evidence.",
                "specs/masis-critic.md, Problem 3",
            ),
            "uncited_claim_penalty": Words(
                "Confidence is multiplied by this where a sentence that asserts cites nothing.",
                "specs/masis-critic.md, Problem 4",
            ),
        },
    ),
    Group(
        "Claims and objections",
        "claims",
        "",
        "Which faults of the answer become findings.",
        {
            "strictness": Words(
                "lenient keeps grave findings only, moderate drops minor ones, strict keeps all.",
                "specs/draft-critique.md, Configuration",
            ),
            "check_factual": Words(
                "Whether claims the evidence does not bear become findings.",
                "specs/draft-critique.md, Configuration",
            ),
            "check_completeness": Words(
                "Whether what is asked for and in the evidence, but not in the answer, is a finding.",
                "specs/draft-critique.md, Configuration",
            ),
            "check_contradictions": Words(
                "Whether claims the evidence speaks against become findings.",
                "specs/draft-critique.md, Configuration",
            ),
        },
    ),
    Group(
        "Critique of drafts",
        "drafts",
        "draft_",
        "Drafts that a query pipeline hands over (critique_draft). They are checked by the settings for claims too.",
        {
            "draft_critique": Words(
                "Whether a pipeline has its drafts checked at all.",
                "specs/draft-critique.md, Configuration",
            ),
            "draft_auto_revise": Words(
                "Whether a draft with findings is revised at once.",
                "specs/draft-critique.md, Configuration",
            ),
            "draft_max_revisions": Words(
                "How many revisions one draft may take; each is checked anew.",
                "specs/draft-critique.md, Configuration",
            ),
            "draft_min_length": Words(
                "Drafts with fewer characters than this pass a pipeline unchecked.",
                "specs/draft-critique.md, Configuration",
            ),
        },
    ),
    Group(
        "Scores",
        "scores",
        "",
        "How the judge's four scores are bounded and weighed. The weights, of the overall score, add up to 1.",
        {
            "hallucination_faithfulness_cap": Words(
                "Faithfulness is at most this where something was made up.",
                "specs/masis-evaluator.md, Problem 5",
            ),
            "uncited_faithfulness_cap": Words(
                "Faithfulness is at most this with several uncited sentences.",
                "specs/masis-evaluator.md, Problem 5",
            ),
            "uncited_cap_from": Words(
                "How many uncited sentences are several.",
                "specs/masis-evaluator.md, Problem 5",
            ),
            "many_uncited_faithfulness_cap": Words(
                "Faithfulness is at most this with many uncited sentences.",
                "specs/masis-evaluator.md, Problem 5",
            ),
            "many_uncited_cap_from": Words(
                "How many uncited sentences are many.",
                "specs/masis-evaluator.md, Problem 5",
            ),
            "faithfulness_weight": Words(
                "Weight of faithfulness: the answer says only what the evidence bears.",
                "specs/masis-evaluator.md, The Four Evaluation Dimensions",
            ),
            "relevance_weight": Words(
                "Weight of relevance: it answers the question.",
                "specs/masis-evaluator.md, The Four Evaluation Dimensions",
            ),
            "completeness_weight": Words(
                "Weight of completeness: it uses what the evidence offers.",
                "specs/masis-evaluator.md, The Four Evaluation Dimensions",
            ),
            "reasoning_weight": Words(
                "Weight of reasoning: its steps hold together.",
                "specs/masis-evaluator.md, The Four Evaluation Dimensions",
            ),
            "evaluate": Words(
                "every scores each iteration, final only the last one, never none.",
                "DESIGN.md, 4.3: the source judges once, at the end (final)",
            ),
        },
    ),
    Group(
        "Loop",
        "loop",
        "",
        "When an audit stops revising.",
        {
            "max_iterations": Words(
                "How many versions of the answer are audited at most, the first included.",
                "specs/critic-loop.md, REQ-CRITIC-016",
            ),
            "output_validator": Words(
                "What an improved answer passes before it is taken: pydantic, or baml, which also mends replies out of "
                "form.",
                "specs/critic-loop.md, REQ-CRITIC-028",
            ),
            "improvement_threshold": Words(
                "It stops when a revision raises quality by less than this.",
                "specs/critic-loop.md, REQ-CRITIC-017",
            ),
            "call_deadline_s": Words(
                "Seconds that one call to a model may take, over all its tries.",
                "specs/critic-loop.md, REQ-CRITIC-NFR-001 and 002",
            ),
            "iteration_deadline_s": Words(
                "Seconds that one iteration may take, its revision included.",
                "specs/critic-loop.md, REQ-CRITIC-NFR-003",
            ),
            "loop_deadline_s": Words(
                "Seconds that a whole run may take; what is finished by then stands.",
                "specs/critic-loop.md, REQ-CRITIC-NFR-004",
            ),
            "judge_samples": Words(
                "How often critic and evaluator, where they are models, judge each answer.",
                "ours: judges that sample vary, and their spread tells how much",
            ),
            "sample_temperature": Words(
                "How freely they may vary when they judge more than once.",
                "ours: judges that sample vary, and their spread tells how much",
            ),
        },
    ),
    Group(
        "Screening of abstracts",
        "screening",
        "screening_",
        "When the evidence found is good enough, and when more is retrieved.",
        {
            "screening_graders": Words(
                "Who grades an abstract: “offline”, a model, or several with commas between them.",
                "specs/aesop-evidence-critic.md, Disagreement-Aware CRAG",
            ),
            "screening_retrieve": Words(
                "How many abstracts a round takes from each source.",
                "specs/aesop-evidence-critic.md, Corrective RAG",
            ),
            "screening_max_rounds": Words(
                "After how many rounds the evidence is called insufficient.",
                "specs/aesop-evidence-critic.md, Reviewer Confidence Decay",
            ),
            "screening_required_first": Words(
                "Quality that the kept abstracts of the first round must reach on average.",
                "specs/aesop-evidence-critic.md, Reviewer Confidence Decay",
            ),
            "screening_required_step": Words(
                "How much less each further round asks for.",
                "specs/aesop-evidence-critic.md, Reviewer Confidence Decay",
            ),
            "screening_required_least": Words(
                "No round asks for less than this.",
                "specs/aesop-evidence-critic.md, Reviewer Confidence Decay",
            ),
            "screening_keep_share": Words(
                "The share of abstracts to keep from which the graders count as agreed.",
                "specs/aesop-evidence-critic.md, Disagreement-Aware CRAG",
            ),
            "screening_discard_share": Words(
                "The share to discard from which more is retrieved in any case.",
                "specs/aesop-evidence-critic.md, Disagreement-Aware CRAG",
            ),
            "screening_memory": Words(
                "Whether what was accepted before may move the required quality a little.",
                "specs/aesop-evidence-critic.md, Learning From Past Acceptances",
            ),
            "screening_memory_bound": Words(
                "The most by which memory moves it, up or down.",
                "ours: what was learned may not run away with the threshold (DESIGN.md, 4.4)",
            ),
            "screening_pubmed_email": Words(
                "Whom PubMed may write to about the searches made here; it asks for one.",
                "ours: PubMed asks who searches",
            ),
            "screening_pubmed_address": Words(
                "Where PubMed's E-utilities are reached.",
                "ours: a mirror, or a server of a test's own",
            ),
        },
    ),
    Group(
        "Who looks",
        "review",
        "",
        "When a person is asked.",
        {
            "review_threshold": Words(
                "A person looks where confidence in the chosen answer is under this.",
                "DESIGN.md, 4.3: a run that needs review",
            ),
            "review_quality": Words(
                "A person looks where the quality score of the chosen answer is under this.",
                "ours: docs/acceptance.md",
            ),
            "review_disagreement": Words(
                "A person looks where citation engine, critic and evaluator are further apart than this.",
                "ours: chosen on development data, docs/acceptance.md",
            ),
            "review_uncited_answers": Words(
                "Whether a person looks at every answer that cites nothing.",
                "ours: docs/acceptance.md",
            ),
            "max_judge_spread": Words(
                "A person looks where samples of a judge lie further apart than this.",
                "ours: judges who disagree are looked at",
            ),
            "review_revised": Words(
                "Whether a person looks at every answer that the loop has revised.",
                "ours: a revision is a model's text until a person has read it",
            ),
            "spot_check_share": Words(
                "The share of answers without findings that a person sees all the same.",
                "DESIGN.md, 4.3: the miss rate can be estimated",
            ),
            "spot_check_seed": Words(
                "The draw of those spot checks: the same seed draws the same cases.",
                "DESIGN.md, 4.3: a draw that can be repeated",
            ),
        },
    ),
    Group(
        "Retention",
        "retention",
        "retention_",
        "How long audits and screenings are kept. Cases and decisions are kept for good.",
        {
            "retention_days": Words(
                "After how many days masis purge removes audits nobody has decided on; 0 keeps them for ever.",
                "specs/critic-loop.md, REQ-CRITIC-COMP-002",
            ),
            "retention_auto": Words(
                "Whether masis serve does so by itself, when it starts and once a day.",
                "ours: nothing goes that nobody told to go",
            ),
        },
    ),
    Group(
        "Log and telemetry",
        "log",
        "log_",
        "What is told to whoever watches the workbench. Nothing is sent unless telemetry is switched on.",
        {
            "log_texts": Words(
                "Whether the log at DEBUG may hold answers, critiques and revisions whole.",
                "specs/critic-loop.md, REQ-CRITIC-SEC-003",
            ),
            "log_format": Words(
                "text writes lines for people, json one object a line for machines.",
                "specs/critic-loop.md, Observability",
            ),
            "telemetry": Words(
                "off sends nothing, otlp sends spans and metrics to a collector, console prints them.",
                "specs/critic-loop.md, Observability",
            ),
            "telemetry_texts": Words(
                "Whether spans may hold questions, answers and evidence.",
                "specs/critic-loop.md, REQ-CRITIC-SEC-003",
            ),
        },
    ),
)

WORDS = {name: words for group in GROUPS for name, words in group.settings.items()}
"""The words of every setting, by its name."""

INSIDE = {
    "providers": {
        "kind": "How the server is spoken to: OpenAI's Chat Completions, as most are, or Anthropic's Messages.",
        "address": "Where it is, up to what comes before /chat/completions: http://127.0.0.1:8000/v1.",
        "key_env": "The variable, or the entry of the secrets file, that holds its key. The key goes to it alone.",
        "concurrency": "How many calls it is given at once; 16 where nothing is said.",
        "mode": "How a typed reply is asked for, instead of finding out what the server takes.",
        "effort": "How long a model that thinks before it replies may do so.",
    },
    "prices": {
        "input": "US dollars for a million tokens sent.",
        "output": "US dollars for a million tokens received.",
        "cached_input": "For those that the server had kept; what input costs where nothing is said.",
        "cache_write": "For those that the server then keeps; what input costs where nothing is said.",
    },
}
"""The keys of the tables inside of settings: ``[providers.NAME]``, ``[prices."PROVIDER:MODEL"]``."""
