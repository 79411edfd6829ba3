export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const table = tabled([["When", "num"], ["Who", ""], ["What", ""], ["Rule", "narrow"], ["Size", "num"]])
  for (const row of data.rows) {
    const line = make("tr")
    const when = make("td", "num", row.at.slice(0, 16).replace("T", " "))
    when.append(make("div", "small", `removal ${row.seq}`))
    const who = make("td", "", row.by)
    who.append(make("div", "small", row.how))
    const what = make("td", "", row.amount)
    what.append(make("div", "small", row.parts))
    line.append(when, who, what, make("td", "narrow", row.rule), make("td", "num", row.size))
    table.tBodies[0].append(line)
  }
  root.append(table)
}
