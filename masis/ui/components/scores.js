export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const table = make("table")
  table.append(make("thead"), make("tbody"))
  const head = make("tr")
  head.append(make("th", "", "Score"))
  for (const column of data.columns) {
    const cell = make("th", column.best ? "best" : "", column.title)
    if (column.best) cell.append(make("span", "chosen-word", "chosen"))
    head.append(cell)
  }
  table.tHead.append(head)
  for (const row of data.rows) {
    const line = make("tr")
    const name = make("th", "", row.label.text)
    name.scope = "row"
    name.title = row.label.meaning
    line.append(name)
    row.cells.forEach((cell, index) => {
      const box = make("td", data.columns[index].best ? "best" : "")
      box.append(make("span", "value", cell.value === null ? "unscored" : cell.value.toFixed(2)))
      if (cell.delta) box.append(make("span", cell.delta > 0 ? "up" : "down", `${cell.delta > 0 ? "▲" : "▼"} ${Math.abs(cell.delta).toFixed(2)}`))
      line.append(box)
    })
    table.tBodies[0].append(line)
  }
  root.append(table)
  if (data.rules.length) {
    root.append(make("h4", "", "Rules that changed a score"))
    const list = make("ul")
    for (const rule of data.rules) list.append(make("li", "", rule))
    root.append(list)
  }
}
