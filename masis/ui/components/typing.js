// A field whose text belongs to the person. Text that the server has not confirmed as stored is remembered in this tab,
// posted again until it is, and never replaced: neither a page that rebuilds the field, nor a post lost on its way, nor
// a server that was restarted loses it.
const RESTED_MS = 800
const UNANSWERED_MS = 3000
const fields = new WeakMap()

class Field {
  constructor(root) {
    this.root = root
    this.mount = Math.random().toString(36).slice(2)
    this.edit = this.posted = this.stored = this.tries = 0
  }

  build(data) {
    this.label = make("label")
    this.label.append(make("span"), make("span", "dim"))
    this.label.htmlFor = "area"
    this.hint = make("p", "hint")
    this.area = make(data.rows > 1 ? "textarea" : "input")
    this.area.id = "area"
    this.area.spellcheck = false
    this.area.autocomplete = "off"
    this.area.dir = "auto"
    this.note = make("p", "note")
    this.note.setAttribute("role", "status")
    this.root.replaceChildren(this.label, this.hint, this.area, this.note)
    this.area.oninput = () => { this.edit += 1; this.remember(); this.postSoon(); this.say() }
    this.area.onblur = this.area.onchange = () => this.post()
    this.area.onkeydown = event => this.key(event)
  }

  update({ data, setStateValue }) {
    const first = !this.data
    this.data = data
    this.send = setStateValue
    if (first) this.build(data)
    this.label.firstChild.textContent = data.label
    this.label.lastChild.textContent = data.optional ? "optional" : ""
    this.hint.textContent = data.hint
    this.hint.hidden = !data.hint
    if (data.rows > 1) this.area.rows = data.rows
    this.root.classList.toggle("short", data.rows === 1)
    this.area.maxLength = data.most
    this.area.placeholder = data.placeholder
    if (data.stored?.mount === this.mount && data.stored.edit > this.stored) this.confirm(data.stored.edit)
    if (first) this.show(data.text)
    if (first) this.recall()
    else if (this.version !== data.version && this.stored === this.edit) this.show(data.text)
    else if (this.version !== data.version) this.remember()
    this.version = data.version
    this.say()
  }

  show(text) { if (this.area.value !== text) this.area.value = text }

  confirm(edit) {
    this.stored = edit
    if (edit < this.posted) return
    clearTimeout(this.late)
    this.tries = 0
    if (edit === this.edit) this.forget()
  }

  place() { return `masis-typed:${this.data.key}` }

  remember() {
    const { version } = this.data
    try { sessionStorage.setItem(this.place(), JSON.stringify({ version, text: this.area.value })) } catch { /* full or forbidden */ }
  }

  forget() { try { sessionStorage.removeItem(this.place()) } catch { /* a browser that stores nothing */ } }

  // Text that this tab typed and no server has confirmed, unless the field was filled otherwise since.
  recall() {
    let typed = null
    try { typed = JSON.parse(sessionStorage.getItem(this.place()) ?? "null") } catch { return }
    if (typeof typed?.text !== "string" || typed.version !== this.data.version || typed.text === this.data.text) return
    this.area.value = typed.text
    this.edit += 1
    this.postSoon(0)
  }

  postSoon(delay = RESTED_MS) {
    clearTimeout(this.resting)
    this.resting = setTimeout(() => this.post(), delay)
  }

  post() {
    clearTimeout(this.resting)
    if (this.edit > this.posted) this.postNow()
  }

  postNow() {
    this.posted = this.edit
    this.send("typed", { text: this.area.value, mount: this.mount, edit: this.edit, tries: this.tries })
    clearTimeout(this.late)
    this.late = setTimeout(() => this.unanswered(), UNANSWERED_MS * Math.min(1 + this.tries, 5))
  }

  // A server that was restarted ignores what is posted until the whole page has run once: the frame is asked for that.
  unanswered() {
    if (!this.root.isConnected || this.stored >= this.posted) return
    this.tries += 1
    if (this.tries > 1) window.dispatchEvent(new Event("masis-wake"))
    this.postNow()
    this.say()
  }

  key(event) {
    if (event.key === "Escape") this.area.blur()
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || this.data.rows === 1)) this.post()
    // A plain key is text here, not a shortcut of the page.
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation()
  }

  say() {
    const { most } = this.data
    const full = this.area.value.length >= most ? `This field takes ${most.toLocaleString("en")} characters; the rest was cut off. ` : ""
    this.note.textContent = full + (this.tries > 1 ? "Not stored yet: the server does not answer. This tab keeps the text." : "")
  }

  leave() {
    this.post()
    clearTimeout(this.late)
  }
}

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  let field = fields.get(root)
  if (!field) {
    field = new Field(root)
    fields.set(root, field)
  }
  field.update(component)
  return () => {
    field.leave()
    fields.delete(root)
  }
}
