export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  const open = root.querySelector("details")?.open
  root.dataset.version = version
  root.replaceChildren()
  const sums = make("div", "sums")
  const sum = (kind, amount, ...lines) => {
    const box = make("div", `sum ${kind}`)
    box.append(make("b", "", amount))
    for (const line of lines) if (line) box.append(make("span", "", line), make("br"))
    sums.append(box)
  }
  if (data.rows.length) sum("goes", `${data.goes.amount} would go`, `${data.goes.of}, ${data.goes.size}`, data.goes.parts.join(", "))
  else sum("", "Nothing would go", data.goes.of)
  for (const kept of data.kept) sum("", `${kept.count} stay`, kept.why)
  root.append(sums)
  if (!data.rows.length) return
  const box = make("details")
  box.open = Boolean(open)
  box.append(make("summary", "", "Which ones"))
  const table = tabled([["Ended", "num"], ["What", "narrow"], ["Case or question", ""], ["Id", "narrow"], ["Size", "num"]])
  for (const row of data.rows) {
    const line = make("tr")
    const about = make("td")
    about.dir = "auto"
    if (row.href) {
      const link = make("a", "", row.about)
      link.href = row.href
      link.target = "_self"
      about.append(link)
    } else about.textContent = row.about || "–"
    line.append(make("td", "num", row.ended_at), make("td", "narrow", row.state === "interrupted" ? `${row.kind}, cut short` : row.kind), about, make("td", "narrow", row.id), make("td", "num", row.size))
    table.tBodies[0].append(line)
  }
  const scroll = make("div", "scroll")
  scroll.tabIndex = 0
  scroll.setAttribute("role", "region")
  scroll.setAttribute("aria-label", "What would go")
  scroll.append(table)
  box.append(scroll)
  if (data.more) box.append(make("p", "more", `and ${data.more.toLocaleString("en")} more: masis purge --dry-run --list names all`))
  root.append(box)
}
