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
// A click is a press and a release on one element. What a person presses on is drawn again only after the release:
// leaving a field posts its text, and the page that comes back may replace the button that was pressed to leave it.
const CLICK_FOLLOWS_MS = 50 // by touch, the click comes a moment after the release
const presses = new WeakMap()
const whenReleased = (root, draw) => {
  let press = presses.get(root)
  if (!press) {
    press = { held: false, waiting: null }
    presses.set(root, press)
    const release = () => setTimeout(() => {
      press.held = false
      const { waiting } = press
      press.waiting = null
      if (root.isConnected) waiting?.()
    }, CLICK_FOLLOWS_MS)
    root.addEventListener("pointerdown", () => {
      press.held = true
      for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release, { once: true, capture: true })
    })
  }
  if (press.held) press.waiting = draw
  else draw()
}
