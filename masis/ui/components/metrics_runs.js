export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const titles = ["Finished", "Question", ...(data.column ? [data.column] : []), "Quality", "Iterations", "Time", "Judged by", "Ended because"]
  const table = tabled(titles.map(title => [title, { "Judged by": "models", "Ended because": "ended" }[title] ?? ""]))
  for (const row of data.rows) {
    const line = make("tr")
    const at = make("time", "", new Date(row.at).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }))
    at.dateTime = row.at
    at.title = `${row.at}, run ${row.id}`
    const when = make("td", "when")
    when.append(at)
    const what = make("td", "what")
    if (row.href) {
      const link = make("a", "", row.question)
      link.href = row.href
      link.target = "_self"
      link.dir = "auto"
      link.onclick = event => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        setTriggerValue("open", row.way)
      }
      what.append(link)
    } else {
      what.append(make("span", "dim", "The run was removed; its figures are kept."))
    }
    const signs = make("div", "signs")
    for (const sign of row.signs) signs.append(pill(sign))
    if (row.signs.length) what.append(signs)
    line.append(when, what)
    if (data.column) line.append(make("td", "figure strong", row.value))
    line.append(make("td", "figure", row.quality), make("td", "figure", row.iterations), make("td", "figure", row.time), make("td", "models", row.models), make("td", "dim ended", row.ended))
    table.tBodies[0].append(line)
  }
  root.append(table)
}
