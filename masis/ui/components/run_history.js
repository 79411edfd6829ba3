export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const table = tabled(["Started", "State", "Judged by, settings", "Iterations", "Quality", "Confidence", "Overall", "Ended because"])
  const figure = value => make("td", "figure", value === null ? "–" : value.toFixed(2))
  for (const row of data.rows) {
    const line = make("tr", row.side ? "compared" : "")
    const started = make("td")
    const link = make("a", "", new Date(row.at).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" }))
    link.href = row.href
    link.target = "_self"
    link.title = `${row.at}, run ${row.id}`
    link.onclick = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", row.id)
    }
    started.append(link)
    if (row.side) started.append(make("div", "side", row.side))
    const state = make("td")
    state.append(pill(row.state))
    if (row.review) state.append(make("div", "small dim", row.review))
    const told = make("td", "told", row.models)
    told.append(make("div", "small dim", row.settings))
    line.append(started, state, told, make("td", "figure", row.iterations ?? "–"), figure(row.quality), figure(row.confidence), figure(row.overall), make("td", "ended dim", row.ended))
    table.tBodies[0].append(line)
  }
  root.append(table)
}
