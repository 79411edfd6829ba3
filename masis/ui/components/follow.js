const GLYPHS = { new: "●", persisting: "→", fixed: "✓", regressed: "↺" }

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  root.tabIndex = 0
  root.setAttribute("role", "region")
  root.setAttribute("aria-label", "Issues across iterations")
  const table = make("table")
  table.append(make("thead"), make("tbody"))
  const head = make("tr")
  const corner = make("th", "", "Issue")
  corner.scope = "col"
  head.append(corner)
  data.columns.forEach((title, index) => {
    const cell = make("th", index + 1 === data.shown ? "here" : "", index + 1 === data.shown ? `${title}, shown` : title)
    cell.scope = "col"
    cell.append(make("small", "dim", data.counts[index].join(", ")))
    head.append(cell)
  })
  table.tHead.append(head)
  for (const row of data.rows) {
    const last = row.courses.at(-1)
    const line = make("tr", !last || last.text === "fixed" ? "gone" : "")
    const name = make("th", `what tone-${row.label.tone}`)
    name.scope = "row"
    const words = make("span", "words", row.description)
    words.dir = "auto"
    name.append(make("b", "", row.label.text), words)
    line.append(name)
    for (const course of row.courses) {
      const cell = make("td")
      if (course) {
        const mark = make("span", `course tone-${course.tone}`)
        mark.title = course.meaning
        mark.append(make("i", "", GLYPHS[course.text]), make("span", "", course.text))
        cell.append(mark)
      }
      line.append(cell)
    }
    table.tBodies[0].append(line)
  }
  root.append(table)
  if (data.left_out) root.append(make("p", "dim", `and ${data.left_out.toLocaleString("en")} more issues`))
}
