"""The third step: write the rules, severities and examples of a draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import streamlit as st

from masis.schema.case import Severity
from masis.schema.judge import (
    CHECK_KINDS,
    FORCES,
    MOST_EXAMPLES,
    MOST_SHOWN,
    CheckKind,
    CodeCheck,
    HouseRule,
    JudgeContent,
    JudgeVersion,
    LengthUnit,
    RuleExample,
    SeverityRule,
    rule_id_from,
)
from masis.schema.judge_trials import DecidedSplit
from masis.schema.rules import ISSUE_TYPES, IssueType
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.judge.proposals import PROPOSAL_KINDS, RuleProposal
from masis.services.judge.words import effect_text
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.judge.reports import (
    MESSAGE_KEY,
    alignment_report,
    chosen_split,
    chosen_version,
    proposals,
    show_message,
)
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.words import SEVERITY

NO_SEVERITY = "none"
NO_CHECK = "none"
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def show_rules(workbench: Workbench) -> None:
    """Draw the proposals, the chosen version, and the forms that change a draft."""
    show_message()
    split = chosen_split(workbench)
    if split is None:
        return
    version = chosen_version(workbench)
    _draw_new_version(workbench, split, version)
    _draw_rule_proposals(workbench, split, version)
    if version is None:
        return
    content = version.content
    st.subheader(f"Rules of {escape_markdown(version.name)} ({len(content.rules):,})", anchor=False)
    if version.state != "draft":
        st.caption(
            f"This version is {version.state} and can't be changed. Make a new one from it above."
        )
    elif frozenset(content.held_out) != frozenset(split.held_out):
        st.warning(
            "This draft's held-out questions differ from the current selection.",
            icon=":material/error:",
        )
        held_out = st.button(
            "Hold out the chosen half", key="judge-hold-out", **button_state("oversee")
        )
        if held_out and run_action(lambda: workbench.alignment.hold_out(actor(), version, split)):
            st.rerun()
    cases = _example_cases(workbench, split, version)
    for rule in content.rules:
        _draw_rule(workbench, version, rule, cases)
    if version.state == "draft":
        with st.expander("Add a rule", icon=":material/add:", expanded=not content.rules):
            _draw_rule_form(workbench, version, None, cases)
        with st.expander(f"Severities ({len(content.severities):,})"):
            _draw_severities(workbench, version)
        with st.expander(f"Examples to choose from ({len(content.example_cases):,})"):
            _draw_examples(workbench, version, cases)
    if content.rules or content.severities or content.example_cases:
        st.button(
            "Try it on the held-out half",
            key="judge-to-trial",
            icon=":material/arrow_forward:",
            type="primary",
            on_click=address.set_param,
            args=("step", "try"),
        )


def _change(workbench: Workbench, version: JudgeVersion, **changes: Any) -> bool:
    """Change the content of a draft, and return whether that succeeded. Errors are shown."""

    def change() -> None:
        # model_copy wouldn't check the limits and the distinct ids.
        current = workbench.judge.get(actor(), version.id).content
        content = JudgeContent.model_validate(dict(current) | changes)
        workbench.judge.change(actor(), version.id, content)

    return run_action(change)


# Versions


def _draw_new_version(
    workbench: Workbench, split: DecidedSplit, version: JudgeVersion | None
) -> None:
    with (
        st.expander("New version", icon=":material/add:", expanded=version is None),
        st.form("judge-new", border=False, clear_on_submit=True),
    ):
        name = st.text_input("Name", key="judge-new-name", max_chars=80, placeholder="prices 1")
        note = st.text_input("Why (optional)", key="judge-new-note", max_chars=500)
        copied = version is not None and st.checkbox(
            f"With the rules of {escape_markdown(version.name)}", value=True, key="judge-new-copy"
        )
        sent = st.form_submit_button("Write a new draft", **button_state("oversee"))
    if not sent:
        return

    def draft() -> None:
        base = version.content if version is not None and copied else JudgeContent()
        content = base.model_copy(update={"held_out": split.held_out})
        based_on = version.id if version is not None and copied else None
        made = workbench.judge.draft(actor(), name, content, note=note, based_on=based_on)
        address.set_param("version", made.id)
        st.session_state[MESSAGE_KEY] = f"{escape_markdown(made.name)} is a draft now."

    if run_action(draft):
        st.rerun()


# Proposals


def _draw_rule_proposals(
    workbench: Workbench, split: DecidedSplit, version: JudgeVersion | None
) -> None:
    found = proposals(workbench, split)
    st.subheader(f"Proposed rules ({len(found):,})", anchor=False)
    st.caption(
        "Reviewers disagreed with the audit at least three times on the same kind of flag. The"
        " wording is theirs; you can edit it after you add the rule."
    )
    for number, proposal in enumerate(found):
        _draw_proposal(workbench, version, proposal, f"judge-proposal-{number}")


def _draw_proposal(
    workbench: Workbench, version: JudgeVersion | None, proposal: RuleProposal, key: str
) -> None:
    kind = PROPOSAL_KINDS[proposal.kind]
    with st.container(border=True, key=key):
        st.markdown(
            f"**{kind.words}: {escape_markdown(proposal.rule.sentence)}**"
            f" ({FORCES[proposal.rule.force].words})"
        )
        such_as = (
            ""
            if proposal.typical in proposal.rule.sentence
            else f", such as “{escape_markdown(proposal.typical)}”"
        )
        st.caption(f"{kind.meaning}: {count_noun(len(proposal.cases), 'case')}{such_as}")
        st.text(effect_text(proposal))
        with st.expander("Reasons and cases"):
            if proposal.reasons:
                linked_table(
                    [column("Reason", "main"), column("Cases", "figure")],
                    [row({"text": reason}, count) for reason, count in proposal.reasons],
                    description="Reasons of the reviewers",
                    key=f"{key}-reasons",
                )
            linked_table(
                [column("Case", "main"), column("With the rule", "text")],
                [
                    row(
                        {"text": case_id, "href": address.link("review", case=case_id)},
                        {"text": _case_effect(proposal, case_id)},
                    )
                    for case_id in dict.fromkeys((*proposal.cases, *proposal.effect.spoiled))
                ],
                description="Cases of the proposal",
                key=f"{key}-cases",
            )
        hint = _why_not_addable(version, proposal)
        added = st.button(
            f"Add it to {escape_markdown(version.name)}" if version is not None else "Add it",
            key=f"{key}-add",
            icon=":material/add:",
            **button_state("oversee", disabled=bool(hint), help=hint or None),
        )
    if added and version is not None:
        taken = [rule.id for rule in version.content.rules]
        rule_id = rule_id_from(proposal.rule.sentence, taken)
        rule = proposal.rule.model_copy(update={"id": rule_id})
        if _change(workbench, version, rules=(*version.content.rules, rule)):
            st.rerun()


def _why_not_addable(version: JudgeVersion | None, proposal: RuleProposal) -> str:
    if version is None or version.state != "draft":
        return "Write a new draft first."
    if proposal.rule.sentence in {rule.sentence for rule in version.content.rules}:
        return "This version has the rule."
    return ""


def _case_effect(proposal: RuleProposal, case_id: str) -> str:
    if case_id in proposal.effect.spoiled:
        return "not flagged, although people found it faulty"
    if proposal.effect.unknown:
        return "missed by the audit; only a trial shows whether the rule finds it"
    if case_id in proposal.effect.corrected:
        return "as people decided"
    return "still flagged for other issues"


# Rules


def _draw_rule(
    workbench: Workbench, version: JudgeVersion, rule: HouseRule, cases: Sequence[str]
) -> None:
    severity = f", {SEVERITY[rule.severity].text.lower()}" if rule.severity else ""
    check = f", checked as {CHECK_KINDS[rule.check.kind].words}" if rule.check else ""
    label = f"{escape_markdown(rule.sentence)} *({FORCES[rule.force].words}{severity}{check})*"
    with st.expander(label):
        if version.state != "draft":
            examples = ", ".join(example.case_id for example in rule.examples) or "none"
            st.text(f"Id: {rule.id}\nExamples: {examples}")
            return
        _draw_rule_form(workbench, version, rule, cases)
        if st.button(
            "Remove the rule",
            key=f"judge-remove-{rule.id}",
            icon=":material/delete:",
            **button_state("oversee"),
        ):
            remaining = tuple(other for other in version.content.rules if other.id != rule.id)
            if _change(workbench, version, rules=remaining):
                st.rerun()


def _draw_rule_form(
    workbench: Workbench, version: JudgeVersion, rule: HouseRule | None, cases: Sequence[str]
) -> None:
    key = f"judge-rule-{version.id}-{rule.id if rule else ''}"
    check = rule.check if rule else None
    examples = rule.examples if rule else ()
    with st.form(key, border=False, clear_on_submit=rule is None):
        sentence = st.text_area(
            "Requirement",
            value=rule.sentence if rule else "",
            key=f"{key}-sentence",
            max_chars=1000,
            height=80,
            placeholder="A price without its currency is a serious issue.",
        )
        with st.container(horizontal=True):
            force = st.selectbox(
                "Type of rule",
                list(FORCES),
                index=list(FORCES).index(rule.force) if rule else 0,
                format_func=lambda name: FORCES[name].words,
                key=f"{key}-force",
                width=170,
                help="\n\n".join(f"{row.words}: {row.meaning}." for row in FORCES.values()),
            )
            severity = st.selectbox(
                "Severity",
                [*SEVERITIES, NO_SEVERITY],
                index=_option_index([*SEVERITIES, NO_SEVERITY], _shown_severity(rule)),
                format_func=lambda name: SEVERITY[name].text if name in SEVERITY else "None",
                key=f"{key}-severity",
                width=150,
                help="Severity of the issues this rule raises. For a “doesn't matter” rule: the"
                " severity to lower issues to, or none to drop them.",
            )
            issue_types = st.multiselect(
                "Only issues of these types",
                list(ISSUE_TYPES),
                default=list(rule.issue_types) if rule else [],
                format_func=lambda name: name.replace("_", " "),
                key=f"{key}-types",
                placeholder="All but safety",
                width=300,
                help="Only for rules that say what doesn't matter.",
            )
        with st.container(horizontal=True):
            kind = st.selectbox(
                "Check without a model",
                [NO_CHECK, *CHECK_KINDS],
                index=_option_index([NO_CHECK, *CHECK_KINDS], check.kind if check else NO_CHECK),
                format_func=lambda name: CHECK_KINDS[name].words if name in CHECK_KINDS else "None",
                key=f"{key}-check",
                width=200,
                help="\n\n".join(f"{row.words}: {row.meaning}." for row in CHECK_KINDS.values()),
            )
            text = st.text_input(
                "Text to look for",
                value=check.text if check else "",
                key=f"{key}-check-text",
                max_chars=500,
                width=240,
            )
            limit = st.number_input(
                "Maximum length",
                min_value=1,
                max_value=1_000_000,
                value=check.limit if check else None,
                key=f"{key}-check-limit",
                width=150,
            )
            unit = st.selectbox(
                "Unit",
                get_args(LengthUnit),
                index=_option_index(get_args(LengthUnit), check.unit if check else "words"),
                key=f"{key}-check-unit",
                width=140,
            )
        chosen = [example.case_id for example in examples]
        offered = list(dict.fromkeys((*chosen, *cases)))
        breaking = st.multiselect(
            "Decided cases that break it",
            offered,
            default=[example.case_id for example in examples if example.breaks],
            key=f"{key}-breaks",
            max_selections=MOST_EXAMPLES,
        )
        following = st.multiselect(
            "Decided cases that follow it",
            offered,
            default=[example.case_id for example in examples if not example.breaks],
            key=f"{key}-follows",
            max_selections=MOST_EXAMPLES,
        )
        sent = st.form_submit_button(
            "Save the rule" if rule else "Add the rule", **button_state("oversee")
        )
    if not sent:
        return

    def make_rule() -> HouseRule:
        taken = [other.id for other in version.content.rules]
        return HouseRule(
            id=rule.id if rule else rule_id_from(sentence, taken),
            sentence=sentence,
            force=force,
            severity=None if severity == NO_SEVERITY else severity,
            issue_types=tuple(issue_types) if force == "does_not_matter" else (),
            check=_make_check(kind, text, limit, unit),
            examples=(
                *(RuleExample(case_id=case_id) for case_id in breaking),
                *(RuleExample(case_id=case_id, breaks=False) for case_id in following),
            ),
        )

    _store_rule(workbench, version, rule, make_rule)


def _store_rule(
    workbench: Workbench,
    version: JudgeVersion,
    replaced: HouseRule | None,
    make_rule: Callable[[], HouseRule],
) -> None:
    made: list[HouseRule] = []
    if not run_action(lambda: made.append(make_rule())):
        return
    rules = version.content.rules
    changed = (
        (*rules, *made)
        if replaced is None
        else tuple(made[0] if other.id == replaced.id else other for other in rules)
    )
    if _change(workbench, version, rules=changed):
        st.rerun()


def _make_check(
    kind: CheckKind | str, text: str, limit: int | None, unit: LengthUnit
) -> CodeCheck | None:
    row_ = next((known for known in CHECK_KINDS if known == kind), None)
    if row_ is None:
        return None
    needs_limit = CHECK_KINDS[row_].needs_limit
    return CodeCheck(
        kind=row_,
        text="" if needs_limit else text,
        limit=limit if needs_limit else None,
        unit=unit,
    )


def _shown_severity(rule: HouseRule | None) -> str:
    if rule is None:
        return "high"
    return rule.severity or NO_SEVERITY


def _option_index(options: Sequence[str], chosen: str) -> int:
    return list(options).index(chosen)


# Severities and examples


def _draw_severities(workbench: Workbench, version: JudgeVersion) -> None:
    st.caption("Overrides the severity the critic gives issues of this type.")
    current = {line.type: line for line in version.content.severities}
    for line in current.values():
        st.text(f"{line.type.replace('_', ' ')}: {SEVERITY[line.severity].text}")
    with st.form(f"judge-severities-{version.id}", border=False):
        with st.container(horizontal=True):
            type_: IssueType = st.selectbox(
                "Type of issue",
                list(ISSUE_TYPES),
                format_func=lambda name: name.replace("_", " "),
                key="judge-severity-type",
                width=220,
            )
            severity = st.selectbox(
                "Severity",
                [*SEVERITIES, NO_SEVERITY],
                format_func=lambda name: SEVERITY[name].text if name in SEVERITY else "No override",
                key="judge-severity",
                width=180,
            )
        sent = st.form_submit_button("Set the severity", **button_state("oversee"))
    if not sent:
        return
    lines = [line for line in current.values() if line.type != type_]
    if severity != NO_SEVERITY:
        lines.append(SeverityRule(type=type_, severity=severity))
    if _change(workbench, version, severities=tuple(lines)):
        st.rerun()


def _draw_examples(workbench: Workbench, version: JudgeVersion, cases: Sequence[str]) -> None:
    content = version.content
    st.caption(
        "The judge is shown the most similar of these decided cases with their verdicts. When it"
        " judges a case, the judge never sees another answer to the same question, or a held-out"
        " question."
    )
    with st.form(f"judge-examples-{version.id}", border=False):
        chosen = st.multiselect(
            "Decided cases",
            list(dict.fromkeys((*content.example_cases, *cases))),
            default=list(content.example_cases),
            key=f"judge-example-cases-{version.id}",
        )
        shown = st.slider(
            "Examples per case",
            0,
            MOST_SHOWN,
            content.examples_shown,
            key=f"judge-examples-shown-{version.id}",
        )
        sent = st.form_submit_button("Save the examples", **button_state("oversee"))
    if sent and _change(workbench, version, example_cases=tuple(chosen), examples_shown=shown):
        st.rerun()


def _example_cases(
    workbench: Workbench, split: DecidedSplit, version: JudgeVersion
) -> tuple[str, ...]:
    """Return the cases that are offered as examples: those of the first half that differ."""
    report = alignment_report(workbench, split, "first")
    cases = (case.case_id for case in (*report.misses, *report.false_flags))
    return tuple(dict.fromkeys((*version.content.all_example_cases, *cases)))
