// Entries of the decision log: a brief list, or a table in which an entry unfolds its details.
export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  whenReleased(root, () => drawLog(root, component))
  return listenForRowKeys(root)
}

function drawLog(root, { data, setTriggerValue }) {
  const version = JSON.stringify(data)
  // Streamlit calls this after every run of the page, usually with the same data.
  if (root.dataset.version === version) return
  root.dataset.version = version
  // Replacing an element that has the focus moves the focus to the page, so it's restored below.
  const focused = root.getRootNode().activeElement?.dataset?.entry
  root.replaceChildren()

  const time = row => {
    const element = make("time", "", row.when)
    element.dateTime = row.at
    element.title = row.at
    return element
  }
  const caseLink = (target, trigger) => {
    const link = make("a", "", target.question)
    link.href = target.href
    link.target = "_self"
    link.dir = "auto"
    link.onclick = event => {
      // with these keys, the browser opens the link in a new tab or window
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", trigger)
    }
    return link
  }
  const what = row => {
    const box = make("div", row.undone ? "gone" : "")
    box.append(pill(row.label))
    if (row.about) box.append(make("div", "small dim", row.about))
    if (row.undone) box.append(make("div", "small dim", row.undone))
    if (row.batch && data.batch !== row.batch) {
      const batch = make("button", "batch", `batch ${row.batch}`)
      batch.type = "button"
      batch.setAttribute("aria-label", `Show all entries of batch ${row.batch}`)
      batch.onclick = () => setTriggerValue("batch", row.batch)
      box.append(batch)
    }
    return box
  }

  if (data.brief) {
    const list = make("ul", "brief")
    for (const row of data.rows) {
      const item = make("li", row.undone ? "gone" : "")
      const line = make("div", "line")
      const at = make("span", "dim")
      at.append(time(row))
      line.append(pill(row.label), make("span", "", row.who), at)
      item.append(line)
      if (row.case) item.append(caseLink(row.case, { case: row.case.id }))
      if (row.undone) item.append(make("div", "small dim", row.undone))
      list.append(item)
    }
    root.append(list)
    return
  }

  const controls = [] // of each entry, the link to its case or else the button of its details
  const table = makeTable(["When", "Who", "What", "Case", "Why"])
  const detailRow = detail => {
    const line = make("tr", "detail")
    const box = make("td")
    box.colSpan = 5
    if (detail.correction.length) {
      box.append(make("h2", "", "Changes to the answer that was shown"))
      const text = outsideText("div", "text")
      text.append(...renderDiff(detail.correction.map(({ kind, text }) => [kind, text])))
      box.append(text)
    } else if (detail.corrected) {
      box.append(make("h2", "", "Corrected answer"))
      const text = outsideText("div", "text", detail.corrected)
      box.append(text)
    }
    const appendList = (title, labels) => {
      if (!labels.length) return
      const list = make("ul")
      for (const { text, details } of labels) {
        const item = outsideText("li", "", text)
        for (const words of details) {
          const line = outsideText("div", "small dim", words)
          item.append(line)
        }
        list.append(item)
      }
      box.append(make("h2", "", title), list)
    }
    appendList(
      "Labels",
      detail.labels.filter(({ reports }) => !reports),
    )
    appendList(
      "Issues that the reviewer reported",
      detail.labels.filter(({ reports }) => reports),
    )
    box.append(make("h2", "", "Recorded with it"))
    const facts = make("dl")
    for (const [name, text] of detail.facts)
      facts.append(make("dt", "", name), make("dd", "", text))
    if (detail.run) {
      const cell = make("dd")
      cell.append(caseLink(detail.run, { href: detail.run.href }))
      facts.append(make("dt", "", "Run"), cell)
    }
    box.append(facts)
    line.append(box)
    return line
  }
  for (const row of data.rows) {
    const opened = data.opened === row.id
    const line = make("tr", `${row.undone ? "gone" : ""} ${opened ? "open" : ""}`)
    const when = make("td", "when")
    when.append(time(row), make("div", "small dim", `entry ${row.seq}`))
    const who = make("td", "who", row.who || "–")
    if (row.source) who.append(make("div", "small dim", row.source))
    const verdict = make("td", "what")
    verdict.append(what(row))
    const about = make("td", "case")
    if (row.case)
      about.append(caseLink(row.case, { case: row.case.id }), make("div", "small dim", row.case.id))
    const why = make("td", "why")
    if (row.reason) why.append(make("div", "", row.reason))
    if (row.note) why.append(make("div", "note small", row.note))
    const more = make(
      "button",
      "more",
      opened ? "Hide details" : row.more.length ? `Show ${row.more.join(", ")}` : "Show details",
    )
    more.type = "button"
    more.dataset.entry = row.id
    more.setAttribute("aria-expanded", String(opened))
    more.setAttribute("aria-label", `${more.textContent} of entry ${row.seq}`)
    more.onclick = () => setTriggerValue("entry", opened ? "" : row.id)
    why.append(more)
    controls.push(about.querySelector("a") ?? more)
    line.append(when, who, verdict, about, why)
    table.tBodies[0].append(line)
    if (opened && data.detail) table.tBodies[0].append(detailRow(data.detail))
  }
  root.append(table)
  rowsOf.set(root, controls)
  if (focused) root.querySelector(`button[data-entry="${CSS.escape(focused)}"]`)?.focus()
}
