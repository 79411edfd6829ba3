// A field that doesn't lose typed text. Until the server confirms that a text is stored, this tab
// keeps it in the session storage, posts it again and never replaces it, so that it survives a
// rebuilt field, a lost post and a restarted server.
const TYPING_PAUSE_MS = 800
const ANSWER_TIMEOUT_MS = 3000
const fields = new WeakMap()

class Field {
  constructor(root) {
    this.root = root
    // Tells this element from an earlier one of the same field
    this.mount = Math.random().toString(36).slice(2)
    // Edits are numbered; posted and stored are the newest that were
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
    this.area.oninput = () => {
      this.edit += 1
      this.remember()
      this.postSoon()
      this.drawNote()
    }
    this.area.onblur = this.area.onchange = () => this.post()
    this.area.onkeydown = event => this.onKeydown(event)
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
    if (data.stored?.mount === this.mount && data.stored.edit > this.stored)
      this.confirm(data.stored.edit)
    if (first) this.show(data.text)
    if (first) this.recall()
    else if (this.version !== data.version && this.stored === this.edit) this.show(data.text)
    else if (this.version !== data.version) this.remember()
    this.version = data.version
    this.drawNote()
  }

  show(text) {
    if (this.area.value !== text) this.area.value = text
  }

  confirm(edit) {
    this.stored = edit
    if (edit < this.posted) return
    clearTimeout(this.answerTimer)
    this.tries = 0
    if (edit === this.edit) this.forget()
  }

  storageKey() {
    return `masis-typed:${this.data.key}`
  }

  remember() {
    const { version } = this.data
    try {
      sessionStorage.setItem(this.storageKey(), JSON.stringify({ version, text: this.area.value }))
    } catch {
      /* full or forbidden */
    }
  }

  forget() {
    try {
      sessionStorage.removeItem(this.storageKey())
    } catch {
      /* storage is forbidden */
    }
  }

  // Restores text that was typed in this tab and never confirmed, unless the field has been filled
  // by something else since.
  recall() {
    let typed = null
    try {
      typed = JSON.parse(sessionStorage.getItem(this.storageKey()) ?? "null")
    } catch {
      return
    }
    if (
      typeof typed?.text !== "string" ||
      typed.version !== this.data.version ||
      typed.text === this.data.text
    )
      return
    this.area.value = typed.text
    this.edit += 1
    this.postSoon(0)
  }

  postSoon(delay = TYPING_PAUSE_MS) {
    clearTimeout(this.postTimer)
    this.postTimer = setTimeout(() => this.post(), delay)
  }

  post() {
    clearTimeout(this.postTimer)
    if (this.edit > this.posted) this.postNow()
  }

  postNow() {
    this.posted = this.edit
    this.send("typed", {
      text: this.area.value,
      mount: this.mount,
      edit: this.edit,
      tries: this.tries,
    })
    clearTimeout(this.answerTimer)
    this.answerTimer = setTimeout(
      () => this.onAnswerTimeout(),
      ANSWER_TIMEOUT_MS * Math.min(1 + this.tries, 5),
    )
  }

  // A restarted server ignores posts until the whole page has run once. "masis-wake" asks the frame
  // for that run (reviewer.js).
  onAnswerTimeout() {
    if (!this.root.isConnected || this.stored >= this.posted) return
    this.tries += 1
    if (this.tries > 1) window.dispatchEvent(new Event("masis-wake"))
    this.postNow()
    this.drawNote()
  }

  onKeydown(event) {
    if (event.key === "Escape") this.area.blur()
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || this.data.rows === 1))
      this.post()
    // plain keys are text here and must not reach the page's shortcuts
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation()
  }

  drawNote() {
    const { most } = this.data
    const full =
      this.area.value.length >= most
        ? `This field holds up to ${most.toLocaleString("en")} characters. The rest was cut off. `
        : ""
    this.note.textContent =
      full +
      (this.tries > 1
        ? "The server doesn't answer, so the text isn't stored yet. This tab keeps it."
        : "")
  }

  leave() {
    this.post()
    clearTimeout(this.answerTimer)
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
