// The graded abstracts of a screening; a click opens one below.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  const focused = root.getRootNode().activeElement?.dataset?.id
  root.dataset.version = version
  root.replaceChildren()
  const table = make("table", "list")
  const head = make("tr")
  for (const [name, kind] of [["Abstract", ""], ["Recommendation", "says"], ["Study", "study"], ["Relevance", "figure"], ["Method", "figure"], ["Quality", "figure"]]) {
    const cell = make("th", kind, name)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"), make("tbody"))
  table.tHead.append(head)
  const links = []
  const figure = value => {
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
    const line = make("tr", row.opened ? "opened" : "")
    const open = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", row.id)
    }
    const title = make("td", "title")
    const link = make("a", "", row.title)
    link.href = row.href
    link.target = "_self"
    link.dir = "auto"
    link.dataset.id = row.id
    if (row.opened) link.setAttribute("aria-current", "true")
    link.onclick = event => { open(event); event.stopPropagation() }
    links.push(link)
    const below = [row.facts, row.round === null ? "" : `round ${row.round}`].filter(Boolean).join("  ·  ")
    title.append(link, make("div", "dim small", below))
    const says = make("td", "says")
    says.append(pill(row.recommendation))
    if (row.overridden) says.append(make("span", "person", "set by a person"))
    says.append(make("div", "dim small", row.rule))
    const study = make("td", "study")
    study.append(make("div", "", row.study_type))
    const size = [row.size, row.adequate === false ? "too few" : ""].filter(Boolean).join(", ")
    study.append(make("div", "dim small", size || "size not told"))
    line.append(title, says, study, figure(row.relevance), figure(row.methodology), figure(row.quality))
    line.onclick = event => { if (!window.getSelection()?.toString()) open(event) }
    table.tBodies[0].append(line)
    if (row.id === focused) queueMicrotask(() => link.focus())
  }
  // Up and down go from row to row, Home and End to the first and the last; Enter opens, as it does with every link.
  table.tBodies[0].onkeydown = event => {
    const here = links.indexOf(event.target)
    const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key]
    if (here < 0 || there === undefined || event.metaKey || event.ctrlKey || event.altKey) return
    event.preventDefault()
    links[Math.min(Math.max(there, 0), links.length - 1)].focus()
  }
  root.append(table)
}
