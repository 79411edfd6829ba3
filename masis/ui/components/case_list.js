export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const table = make("table", "list")
  const head = make("tr")
  for (const title of ["Question", "State", "Found in the answer as it came", "Quality", "Confidence"]) {
    const cell = make("th", "", title)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"))
  table.tHead.append(head)
  const body = make("tbody")
  const percent = value => (value === null ? "–" : value.toFixed(2))
  for (const row of data.rows) {
    const line = make("tr")
    const open = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", row.id)
    }
    const question = make("td", "question")
    const link = make("a", "", row.question)
    link.href = `review?case=${encodeURIComponent(row.id)}`
    link.target = "_self"
    link.dir = "auto"
    link.onclick = event => { open(event); event.stopPropagation() }
    question.append(link, make("div", "dim small", [row.field, row.id].filter(Boolean).join("  ·  ")))
    const state = make("td", "state")
    state.append(pill(row.state))
    const found = make("td", "found")
    for (const flag of row.flags) found.append(pill(flag))
    if (!row.flags.length) found.append(make("span", "dim", row.audited ? "nothing" : "–"))
    const quality = make("td", "figure", percent(row.quality))
    if (row.quality !== null) {
      const bar = make("span", "bar")
      const fill = make("span", "fill")
      fill.style.width = `${Math.round(row.quality * 100)}%`
      bar.append(fill)
      quality.append(bar)
    }
    line.append(question, state, found, quality, make("td", "figure", percent(row.confidence)))
    line.onclick = event => { if (!window.getSelection()?.toString()) open(event) }
    body.append(line)
  }
  table.append(body)
  root.append(table)
}
