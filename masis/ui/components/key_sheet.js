// Shared by the forms and the sheet of keys: buttons that show their key, and the sheet.
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
// Returns whether keys are text in this element.
const typesIn = element => {
  if (!(element instanceof HTMLElement)) return false
  if (element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName)) return true
  return element.tagName === "INPUT" && !["radio", "checkbox", "button"].includes(element.type)
}

// Returns whether a control elsewhere on the page has the focus and so gets the keys. The marks of
// the answer and the reasons in the head are only read, so they don't count.
const focusIsOutside = (element, root) => {
  if (!(element instanceof Element) || root.contains(element)) return false
  const read = ".st-key-review, .st-key-head, .st-key-adjudication"
  if (element.getRootNode().host?.closest(read)) return false
  return Boolean(
    element.closest(
      "a, button, input, select, textarea, summary, " +
        "[role=button], [role=radio], [role=option], [contenteditable]",
    ),
  )
}

// Removes null bytes and replaces lone surrogates, as the server can't store either. Browsers older
// than 2023 have no toWellFormed.
const wellFormed = text => (text.toWellFormed ? text.toWellFormed() : text).replaceAll("\u0000", "")
const stopKey = event => event.stopPropagation()
// Opens a dialog of ours. It lets no key out to the page behind it, and the page knows that it is
// open (dialog_keys.js).
const showDialog = dialog => {
  dialog.addEventListener("keydown", stopKey)
  window.masisDialog = dialog
  dialog.showModal()
}
const TYPING_MS = 600 // letters that follow each other sooner are a text, not keys
// Opens the sheet, a dialog, and closes it with the same keys. It is filled on its first use.
const toggleKeySheet = (sheet, groups) => {
  fillKeySheet(sheet, groups)
  if (sheet.open) sheet.close()
  else showDialog(sheet)
  let typedAt = -Infinity
  sheet.onkeydown = event => {
    const isKey = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey
    const isAlone = performance.now() - typedAt > TYPING_MS
    if (isKey) typedAt = performance.now()
    if (isKey && isAlone && !event.repeat && "hH?".includes(event.key)) sheet.close()
  }
}
const fillKeySheet = (sheet, groups) => {
  if (sheet.children.length) return
  const head = make("div", "row")
  head.append(
    make("h2", "", "Keys"),
    button("quiet close", "Close", "Esc", () => sheet.close()),
  )
  const columns = make("div", "key-groups")
  for (const group of groups) {
    const block = make("div")
    const list = make("dl")
    for (const [key, effect] of group.keys) {
      const term = make("dt")
      term.append(make("kbd", "", key))
      list.append(term, make("dd", "", effect))
    }
    block.append(make("h3", "", group.title), list)
    columns.append(block)
  }
  sheet.append(
    head,
    columns,
    make("p", "dim", "While you type, plain keys are text. Press Esc to leave the field first."),
  )
}
