// What forms and the sheet of keys share: elements with attributes, buttons that show their key, and the sheet itself.
const named = (tag, className, text, attributes) => {
  const element = make(tag, className, text)
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value)
  return element
}
const button = (className, text, key, onclick) => {
  const element = named("button", className, "", { type: "button" })
  element.append(make("span", "", text))
  if (key) {
    element.append(named("kbd", "", key, { "aria-hidden": "true" }))
    element.setAttribute("aria-keyshortcuts", key === "Ctrl ↵" ? "Control+Enter" : key)
  }
  element.onclick = onclick
  return element
}
const typesIn = element => {
  if (!(element instanceof HTMLElement)) return false
  if (element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName)) return true
  return element.tagName === "INPUT" && !["radio", "checkbox", "button"].includes(element.type)
}

// Text without halves of surrogate pairs and null bytes, which no store takes.
const wellFormed = text => (text.toWellFormed ? text.toWellFormed() : text).replaceAll("\u0000", "")
// Put the keys into their sheet, a dialog, unless they are in it.
const fillKeySheet = (sheet, groups) => {
  if (sheet.children.length) return
  const head = make("div", "row")
  head.append(make("h2", "", "Keys"), button("quiet close", "Close", "Esc", () => sheet.close()))
  const columns = make("div", "key-groups")
  for (const group of groups) {
    const block = make("div")
    const list = make("dl")
    for (const [shown, does] of group.keys) {
      const term = make("dt")
      term.append(make("kbd", "", shown))
      list.append(term, make("dd", "", does))
    }
    block.append(make("h3", "", group.title), list)
    columns.append(block)
  }
  sheet.append(head, columns, make("p", "dim", "Plain keys do nothing while you type; Esc leaves the field first."))
}
