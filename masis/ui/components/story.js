export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const list = make("dl")
  for (const [title, lines, tone] of data.rows) {
    list.append(make("dt", "", title))
    const box = make("dd", tone)
    box.dir = "auto"
    if (lines.length === 1) box.append(make("span", "", tone === "warning" ? `⚠ ${lines[0]}` : lines[0]))
    else {
      const items = make("ul")
      for (const line of lines) items.append(make("li", "", line))
      box.append(items)
    }
    list.append(box)
  }
  root.append(list)
}
