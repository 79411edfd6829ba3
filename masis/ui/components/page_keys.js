// The keys of a page that lists things: the sheet of keys, the rows of its tables, the search field.
const pageKeys = new WeakMap()

class PageKeys {
  constructor(root) {
    this.root = root
    this.sheet = named("dialog", "sheet", "", { "aria-label": "Keys" })
    root.append(this.sheet)
    this.pressed = event => this.key(event)
    document.addEventListener("keydown", this.pressed)
  }

  update({ data }) {
    const groups = JSON.stringify(data.keys)
    if (this.groups === groups) return
    this.groups = groups
    this.data = data
    this.sheet.replaceChildren()
    if (this.sheet.open) fillKeySheet(this.sheet, data.keys)
  }

  leave() { document.removeEventListener("keydown", this.pressed) }

  key(event) {
    if (!this.root.isConnected) { this.leave(); return }
    if (event.ctrlKey || event.metaKey || event.altKey || typesIn(event.composedPath()[0])) return
    const field = this.data.fields[event.key.toLowerCase()]
    if (field && !event.repeat) this.lead(`.st-key-${field} textarea`)
    if (event.defaultPrevented) return
    if (document.querySelector(STREAMLIT.elements.dialog)) return
    const press = event.key.length === 1 ? event.key.toLowerCase() : event.key
    const toggles = press === "h" || press === "?"
    if (this.sheet.open && !toggles) return
    const search = press === "/" && this.data.search ? document.querySelector(`.st-key-${this.data.search} input`) : null
    const does = toggles && !event.repeat ? () => this.help()
      : search ? () => { search.focus(); search.select() }
      : press === "j" && this.data.rows ? () => walk(1)
      : press === "k" && this.data.rows ? () => walk(-1)
      // nothing has the focus: the first case of the queue, which is the one to look at first
      : press === "Enter" && this.data.search && event.target === document.body ? () => walk(0) : null
    if (!does) return
    event.preventDefault()
    does()
  }

  // Focuses the field that a key leads to, once the key itself is past; one that the page has yet to draw is waited for.
  lead(selector, until = Date.now() + 3000, wait = 0) {
    setTimeout(() => {
      const field = document.querySelector(selector)
      if (field) field.focus()
      else if (Date.now() < until) this.lead(selector, until, 30)
    }, wait)
  }

  help() {
    fillKeySheet(this.sheet, this.data.keys)
    if (this.sheet.open) this.sheet.close()
    else this.sheet.showModal()
  }
}

// The table in which the focus is goes on by a row; where it is in none, the first table of the page is entered. A step
// of 0 opens its first row.
function walk(step) {
  for (const within of [true, false]) {
    if (!window.dispatchEvent(new CustomEvent("masis-row", { detail: { step, within }, cancelable: true }))) return
  }
}

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  let keys = pageKeys.get(root)
  if (!keys) {
    keys = new PageKeys(root)
    pageKeys.set(root, keys)
  }
  keys.update(component)
  return () => {
    keys.leave()
    pageKeys.delete(root)
  }
}
