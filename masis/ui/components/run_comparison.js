export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const section = title => {
    const box = make("section")
    box.append(make("h3", "", title))
    root.append(box)
    return box
  }
  const heads = (table, titles) => {
    const line = make("tr")
    for (const title of titles) {
      const cell = make("th", "", title)
      cell.scope = "col"
      line.append(cell)
    }
    table.append(make("thead"), make("tbody"))
    table.tHead.append(line)
  }
  const number = value => (value === null ? "unscored" : value.toFixed(2))

  const told = section("What differs in how they were told to judge")
  if (!data.same_content) told.append(make("p", "note", "They audited different content: the case was another one when one of them ran."))
  if (data.differing.length) {
    const table = make("table", "differing")
    heads(table, ["Setting", "Left", "Right"])
    for (const each of data.differing) {
      const line = make("tr")
      const name = make("th", "", each.name)
      name.scope = "row"
      line.append(name, make("td", "", each.left), make("td", "", each.right))
      table.tBodies[0].append(line)
    }
    told.append(table)
  } else told.append(make("p", "note", "Nothing: the same models, settings and versions."))

  const scored = section("Scores by iteration")
  const scroll = make("div", "scores")
  const table = make("table")
  const left = data.columns.left, right = data.columns.right
  const name = (side, column) => `${side} ${column.title}${column.best ? ", chosen" : ""}`
  heads(table, ["Score", ...left.map(column => name("Left", column)), ...right.map(column => name("Right", column)), "Right less left"])
  for (const row of data.rows) {
    const line = make("tr")
    const title = make("th", "", row.label.text)
    title.scope = "row"
    title.title = row.label.meaning
    line.append(title)
    row.left.forEach((value, index) => line.append(make("td", left[index].best ? "best" : "", number(value))))
    row.right.forEach((value, index) => line.append(make("td", `${right[index].best ? "best" : ""} ${index ? "" : "edge"}`, number(value))))
    const delta = row.delta
    const moved = delta !== null && Math.abs(delta) >= 0.005
    line.append(make("td", `edge ${moved ? (delta > 0 ? "up" : "down") : "dim"}`, delta === null ? "–" : moved ? `${delta > 0 ? "▲" : "▼"} ${Math.abs(delta).toFixed(2)}` : "same"))
    table.tBodies[0].append(line)
  }
  scroll.append(table)
  scored.append(scroll)

  const found = section(`Issues: ${data.of.toLowerCase()}`)
  const groups = make("div", "groups")
  for (const group of data.groups) {
    const box = make("div", `group-${group.side}`)
    box.append(make("h4", "", `${group.label.text}: ${group.issues.length}`))
    for (const each of group.issues) {
      const card = make("article", `issue tone-${each.label.tone}`)
      card.append(make("span", "severity", each.severity), make("b", "", each.label.text), make("p", "", each.description))
      if (each.quote) card.append(make("p", "quote", each.quote))
      if (each.why) card.append(make("p", "dim", each.why))
      box.append(card)
    }
    if (!group.issues.length) box.append(make("p", "dim note", "None"))
    groups.append(box)
  }
  found.append(groups)

  const answers = section("The answer each run chose")
  if (data.same_answer) answers.append(make("p", "key", "Both chose the same answer."))
  else {
    const key = make("p", "key")
    key.append(make("del", "", "only left"), " ", make("ins", "", "only right"))
    answers.append(key)
  }
  const text = make("div", "text")
  text.dir = "auto"
  for (const piece of data.answer) text.append(make({ out: "del", in: "ins" }[piece.kind] ?? "span", "", piece.text))
  answers.append(text)
}
