export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  const opened = new Set([...root.querySelectorAll("details[open]")].map(element => element.dataset.name))
  root.replaceChildren()
  const table = make("table")
  table.append(make("thead"), make("tbody"))
  const head = make("tr")
  const headCell = (className, text) => {
    const cell = make("th", className, text)
    cell.scope = "col"
    head.append(cell)
    return cell
  }
  headCell("", "Score")
  for (const column of data.columns) {
    const cell = headCell(column.best ? "best" : "", column.title)
    if (column.best && data.columns.length > 1) cell.append(make("span", "chosen-word", "chosen"))
  }
  table.tHead.append(head)
  for (const row of data.rows) {
    const line = make("tr", ["Overall", "Quality"].includes(row.label.text) ? "strong" : "")
    const name = make("th", "", row.label.text)
    name.scope = "row"
    name.title = row.label.meaning
    line.append(name)
    row.cells.forEach((cell, index) => {
      const box = make("td", data.columns[index].best ? "best" : "")
      box.append(make("span", "value", cell.value === null ? "unscored" : cell.value.toFixed(2)))
      if (cell.delta) box.append(make("span", cell.delta > 0 ? "up" : "down", `${cell.delta > 0 ? "▲" : "▼"} ${Math.abs(cell.delta).toFixed(2)}`))
      for (const rule of cell.bent) box.append(make("span", "bent", rule))
      line.append(box)
    })
    table.tBodies[0].append(line)
  }
  const wide = make("div", "wide")
  wide.tabIndex = 0
  wide.setAttribute("role", "region")
  wide.setAttribute("aria-label", "Scores by iteration")
  wide.append(table)
  root.append(wide, make("h4", "", `How the scores of iteration ${data.shown} came about`))
  for (const origin of data.origins) root.append(drawOrigin(origin, opened.has(origin.label.text)))
}

function drawOrigin(origin, open) {
  const box = make("details")
  box.dataset.name = origin.label.text
  box.open = open
  const line = make("summary")
  line.append(make("span", "name", origin.label.text))
  line.append(make("span", "figure", origin.value === null ? "–" : origin.value.toFixed(2)))
  const steps = make("span", origin.bent ? "steps changed" : "steps")
  for (const step of origin.steps) steps.append(make("div", "", step))
  line.append(steps)
  box.append(line)
  const body = make("div", "body")
  body.append(make("p", "", `${origin.label.meaning}.`))
  if (origin.measured.length) {
    const list = make("dl", "measured")
    for (const each of origin.measured) {
      list.append(make("dt", "", each.name), make("dd", "figure", each.value), make("dd", "meaning", each.meaning))
    }
    body.append(list)
  }
  box.append(body)
  return box
}
