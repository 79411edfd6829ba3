"""Write reports of stored cases: one as an HTML page, several as a folder of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from masis.datasets.writers.files import whole_folder
from masis.schema.run import Run
from masis.services.cases import CaseView, shown_flags
from masis.services.records import CaseFilter, LogHead
from masis.services.workbench import Workbench
from masis.views import report
from masis.views.report import ReportSubject, report_index, report_name

INDEX = "index.html"
_AT_ONCE = 100


def case_report(
    view: CaseView, head: LogHead | None, run: Run | None = None, index: str = ""
) -> str:
    """Return the report of a case as HTML, of its newest finished run by default.

    ``index`` is the address of a page that lists the reports.
    """
    shown = ReportSubject(
        view.case, view.state, view.summary.flags, run or view.run, view.decision, view.history
    )
    return report.case_report(shown, head, index)


def write_reports(
    workbench: Workbench,
    folder: Path,
    cases: Sequence[str] | CaseFilter,
    on_case: Callable[[int], None] | None = None,
) -> int:
    """Write a folder of reports with ``index.html`` and a page for each case, and return how many.

    The folder is written completely or not at all. A folder with other files is rejected.

    Args:
        workbench: The workbench.
        folder: The folder to write.
        cases: The ids of the cases, or a filter, whose order is used.
        on_case: Called with the number of finished cases.

    Raises:
        InputError: The folder holds other files.
        UnknownRecord: There is no such case.

    """
    head = workbench.store.decisions.head()
    rows: list[tuple[str, ReportSubject]] = []
    names: set[str] = {INDEX}
    with whole_folder(folder, INDEX) as made:
        for done, case_id in enumerate(_case_ids(workbench, cases), 1):
            view = workbench.cases.open(case_id)
            name = _new_name(case_id, names)
            (made / name).write_text(case_report(view, head, index=INDEX), encoding="utf-8")
            flags = shown_flags(view.run, 0) if view.run and view.run.iterations else ()
            rows.append(
                (name, ReportSubject(view.case, view.state, flags, view.run, view.decision))
            )
            if on_case:
                on_case(done)
        (made / INDEX).write_text(report_index(rows, _filter_lines(cases), head), encoding="utf-8")
    return len(rows)


def _case_ids(workbench: Workbench, cases: Sequence[str] | CaseFilter) -> Iterator[str]:
    if not isinstance(cases, CaseFilter):
        # one page for a case that is named twice
        yield from dict.fromkeys(cases)
        return
    for number in count(1):
        page = workbench.cases.find(cases.model_copy(update={"page": number, "size": _AT_ONCE}))
        if not page.rows:
            return
        yield from (row.id for row in page.rows)


def _new_name(case_id: str, names: set[str]) -> str:
    """Return a file name that differs from ``names`` on any file system, and add it to them.

    Names are compared without case, because some file systems ignore it.
    """
    first = name = report_name(case_id)
    number = 2
    while name.casefold() in names:
        name, number = f"{first.removesuffix('.html')}-{number}.html", number + 1
    names.add(name.casefold())
    return name


def _filter_lines(cases: Sequence[str] | CaseFilter) -> Iterator[str]:
    """Yield the conditions of a filter, as a person would write them."""
    if not isinstance(cases, CaseFilter):
        return
    for name, value in cases.model_dump(exclude_defaults=True).items():
        words = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        yield f"{name.replace('_', ' ')}: {words}"
