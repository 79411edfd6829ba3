export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  for (const group of data.groups) {
    const box = make("section")
    box.append(make("h3", "", group.title), make("p", "about", group.meaning))
    const table = make("table")
    table.setAttribute("aria-label", group.title)
    table.append(make("tbody"))
    for (const row of group.rows) {
      const line = make("tr", row.changed ? "changed" : "")
      const name = make("th", "name")
      for (const part of row.name.split(/(?<=[_.])/)) name.append(part, make("wbr"))
      name.scope = "row"
      const value = make("td", "value", row.value)
      if (row.changed && row.default) value.append(make("span", "dim", `default ${row.default}`))
      const origin = make("td", "origin")
      if (row.origin.text === "default") origin.append(make("span", "dim", "default"))
      else origin.append(pill(row.origin), make("div", "dim place", row.origin.meaning))
      line.append(name, value, make("td", "meaning", row.meaning), origin)
      table.tBodies[0].append(line)
    }
    box.append(table)
    root.append(box)
  }
}
