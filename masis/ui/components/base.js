// Shared by the components. Text from outside only ever becomes text: textContent, never markup.
const make = (tag, className, text) => {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined && text !== null) element.textContent = text
  return element
}
const pill = (label, extra) => {
  const element = make("span", `pill tone-${label.tone} ${extra ?? ""}`, label.text)
  if (label.meaning) element.title = label.meaning
  return element
}
// An empty table below its head; a column is its title, or its title and its class.
const tabled = columns => {
  const table = make("table")
  const head = make("tr")
  for (const column of columns) {
    const [title, kind] = Array.isArray(column) ? column : [column, ""]
    const cell = make("th", kind, title)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"), make("tbody"))
  table.tHead.append(head)
  return table
}
