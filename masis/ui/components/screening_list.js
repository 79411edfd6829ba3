// Screenings made before, newest first.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const table = make("table")
  const head = make("tr")
  for (const name of ["Question", "Outcome", "Rounds", "Kept", "Searched", "Started"]) {
    const cell = make("th", "", name)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"), make("tbody"))
  table.tHead.append(head)
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
    question.append(link)
    const state = make("td")
    state.append(pill(row.outcome))
    const at = new Date(row.at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })
    line.append(question, state, make("td", "figure", row.rounds ?? "–"), make("td", "figure", row.kept ?? "–"), make("td", "dim", row.searched), make("td", "dim at", at))
    line.onclick = event => { if (!window.getSelection()?.toString()) open(event) }
    table.tBodies[0].append(line)
  }
  root.append(table)
}
