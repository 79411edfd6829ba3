export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const table = make("table", data.compact ? "list compact" : "list")
  const head = make("tr")
  const titles = ["Question", "State", "Found in the answer as it came", "Quality", "Confidence"]
  // The compact list is of cases in one state, and says so above it.
  for (const title of data.compact ? [titles[0], titles[2], titles[3]] : titles) {
    const cell = make("th", "", title)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"))
  table.tHead.append(head)
  const body = make("tbody")
  const links = []
  const score = value => {
    const cell = make("td", "figure", value === null ? "–" : value.toFixed(2))
    if (value === null) return cell
    const bar = make("span", "bar")
    const fill = make("span", "fill")
    fill.style.width = `${Math.round(value * 100)}%`
    bar.append(fill)
    cell.append(bar)
    return cell
  }
  for (const row of data.rows) {
    const line = make("tr")
    const open = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", row.id)
    }
    const question = make("td", "question")
    const link = make("a", "", row.question)
    link.href = row.href
    link.target = "_self"
    link.dir = "auto"
    link.onclick = event => { open(event); event.stopPropagation() }
    links.push(link)
    question.append(link, make("div", "dim small", [row.field, row.id].filter(Boolean).join("  ·  ")))
    const state = make("td", "state")
    state.append(pill(row.state))
    if (row.reviewer) state.append(make("div", "dim by", row.reviewer))
    const found = make("td", "found")
    for (const flag of row.flags) found.append(pill(flag))
    if (!row.flags.length) found.append(make("span", "dim", row.audited ? "nothing" : "–"))
    if (data.compact) line.append(question, found, score(row.quality))
    else line.append(question, state, found, score(row.quality), score(row.confidence))
    line.onclick = event => { if (!window.getSelection()?.toString()) open(event) }
    body.append(line)
  }
  // Up and down go from row to row, Home and End to the first and the last; Enter opens, as it does with every link.
  body.onkeydown = event => {
    const here = links.indexOf(event.target)
    const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key]
    if (here < 0 || there === undefined || event.metaKey || event.ctrlKey || event.altKey) return
    event.preventDefault()
    links[Math.min(Math.max(there, 0), links.length - 1)].focus()
  }
  table.append(body)
  root.append(table)
}
