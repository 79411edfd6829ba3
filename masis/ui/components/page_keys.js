// The keys of a page that lists things: the sheet of keys, the rows of its tables, the search field.
const pageKeys = new WeakMap()

class PageKeys {
  constructor(root) {
    this.root = root
    this.held = []
    this.sheet = named("dialog", "sheet", "", { "aria-label": "Keys" })
    root.append(this.sheet)
    this.pressed = event => this.key(event)
    document.addEventListener("keydown", this.pressed)
    this.leads = event => this.goes(event)
    window.addEventListener("keydown", this.leads, true)
    // a text of somebody else's that a key leads to is selected: what is typed takes its place, and isn't put behind it
    this.enters = ({ target }) => {
      if (!this.pointing && target.closest?.(".st-key-final-form") && this.borrowed?.includes(target.value)) target.select()
    }
    this.points = event => {
      this.pointing = event.type === "pointerdown"
      const reason = this.pointing && event.target.closest?.(".st-key-final-usual li")
      if (reason) this.takes(reason, event)
    }
    document.addEventListener("focusin", this.enters)
    for (const each of ["pointerdown", "keydown"]) document.addEventListener(each, this.points, true)
    // Streamlit takes a text once its field is left: what a correction changes, and that words are the lead's own now, is
    // to show while it is typed
    this.types = ({ target }) => {
      clearTimeout(this.pause)
      if (target.closest(".st-key-final-form")) this.pause = setTimeout(() => target.dispatchEvent(new FocusEvent("focusout", { bubbles: true })), 500)
    }
    document.addEventListener("input", this.types)
    this.clicks = event => this.begins(event)
    document.addEventListener("click", this.clicks, true)
  }

  update({ data, setTriggerValue }) {
    this.begin = () => setTriggerValue("begin", true)
    this.run = data.run
    const otherCase = this.case && data.case && this.case !== data.case
    const otherPage = data.search && this.page !== undefined && this.page !== data.page // of the queue: its list is read from the top
    if (otherCase || otherPage) document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (this.name !== data.name) {
      this.name = data.name
      if (data.at) whenDrawn(() => openAt(data.at))
    }
    this.case = data.case
    this.borrowed = data.borrowed
    this.page = data.page
    if (data.focus && data.focus.token !== this.focused) {
      this.focused = data.focus.token
      document.querySelector(`.st-key-${data.focus.field} textarea`)?.focus()
    }
    if (data.search && window.masisSearch) { // asked for on a case (decision.js)
      window.masisSearch = false
      this.lead(`.st-key-${data.search} input`, { key: "/" })
    }
    const groups = JSON.stringify(data.keys)
    if (this.groups === groups) return
    this.groups = groups
    this.data = data
    this.sheet.replaceChildren()
    if (this.sheet.open) fillKeySheet(this.sheet, data.keys)
  }

  leave() {
    document.removeEventListener("keydown", this.pressed)
    document.removeEventListener("click", this.clicks, true)
    window.removeEventListener("keydown", this.leads, true)
    document.removeEventListener("input", this.types)
    document.removeEventListener("focusin", this.enters)
    for (const each of ["pointerdown", "keydown"]) document.removeEventListener(each, this.points, true)
  }

  // The menu leads to a page as it begins, also from that page: Streamlit would keep its address as it is. The keys that
  // follow are the page's, not the link's.
  begins(event) {
    const link = event.target.closest?.(STREAMLIT.elements.navigation_link)
    if (!link || !this.root.isConnected || event.ctrlKey || event.metaKey || event.shiftKey) return
    link.blur()
    if (link.getAttribute("aria-current") !== "page") return
    event.preventDefault()
    event.stopImmediatePropagation()
    document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (location.search) this.begin()
  }

  // One case of an adjudication gives way to another: until the page is drawn, a key would be meant for the one before,
  // and does nothing, but for one that leads into a field of the case that an undo brings back. What acts on a choice, as
  // recording it and beginning its correction again do, waits until the choice has arrived, also where all keys came at
  // once, and keeps its turn.
  goes(event) {
    if (this.replays || !this.root.isConnected || !document.querySelector(".st-key-adjudication")) return
    const records = event.key === "Enter" && (event.ctrlKey || event.metaKey)
    const letter = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !typesIn(event.composedPath()[0])
    if (!records && (!letter || this.fills)) return // letters that wait for their field are text
    const key = pressedKey(event), leads = this.data.fields[key]
    const waits = !this.leaving && !leads && (this.held.length || (this.chosen && (records || ACT_ON_CHOICE.has(key))))
    if (this.leaving || waits) {
      event.preventDefault()
      event.stopImmediatePropagation()
      if (waits || (this.leaving === "u" && leads)) this.held.push(event)
    } else this.does(key, records)
  }

  does(key, records) {
    const runs = hasButton(records ? "enter" : key)
    if (records || "unp".includes(key)) this.until("leaving", key, runs)
    else if ((key in this.data.fields && !key.endsWith("t")) || ACT_ON_CHOICE.has(key)) this.until("chosen", true, runs)
  }

  // Remembers something until the page is drawn for the last of what was done; keys held meanwhile do then what they do.
  // `runs` says that a button has the key: the page is drawn for it, however long a busy server takes to begin.
  until(name, value, runs) {
    this[name] = value
    const before = this.run
    const turn = this.turn = (this.turn ?? 0) + 1
    const goOn = () => {
      if (turn !== this.turn) return
      if (this.fills) { setTimeout(goOn, 30); return } // what is typed meanwhile comes first
      this.leaving = this.chosen = ""
      while (this.held.length && !this.leaving && !this.chosen) this.replay(this.held.shift())
    }
    whenDrawn(goOn, { runs, drawn: () => this.run !== before })
  }

  replay({ key, code, keyCode, shiftKey, ctrlKey, metaKey }) {
    const again = { key, code, keyCode, shiftKey, ctrlKey: ctrlKey || metaKey, bubbles: true, composed: true, cancelable: true }
    const letter = !again.ctrlKey // it was no text when it was pressed, wherever the focus is by now
    this.does(pressedKey(again), !letter)
    this.replays = true
    for (const type of ["keydown", "keyup"]) (letter ? document.body : document.activeElement).dispatchEvent(new KeyboardEvent(type, again))
    this.replays = false
  }

  key(event) {
    if (!this.root.isConnected) { this.leave(); return }
    const at = event.composedPath()[0]
    // a list that is open, and a dialog, close by it themselves
    if (event.key === "Escape" && typesIn(at) && !event.defaultPrevented && !at.closest("dialog, [role=dialog], [aria-expanded=true]")) at.blur()
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const usual = this.usual(at, event.key)
    if (usual) this.takes(usual, event)
    if (event.key === "Enter" && !event.isComposing && this.data.search && at.closest?.(`.st-key-${this.data.search}`)) {
      at.blur() // the search has been sent: the next keys are for what it finds
      const asked = at.value.trim()
      const searched = () => (new URLSearchParams(location.search).get("q") ?? "") === asked
      whenDrawn(() => { if (document.activeElement === document.body) walk(1) }, { shows: searched })
    }
    if (typesIn(at)) return
    const field = this.data.fields[pressedKey(event)]
    // reason and note are there once a verdict is chosen: until then nothing is waited for
    const there = pressedKey(event).endsWith("t") && !this.chosen ? ".st-key-final-form textarea" : ".st-key-final-form"
    if (field && !event.repeat && document.querySelector(there)) this.lead(`.st-key-${field} textarea`, event)
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
      : press === "f" && this.data.fields.o ? () => window.dispatchEvent(new CustomEvent("masis-issue", { detail: event.shiftKey ? -1 : 1 }))
      : press === "g" && this.data.fields.o ? () => window.dispatchEvent(new Event("masis-turn"))
      // nothing has the focus: the first case of the queue, which is the one to look at first
      : press === "Enter" && this.data.search && event.target === document.body ? () => walk(0) : null
    if (!does) return
    event.preventDefault()
    does()
  }

  // The usual reason that a number names in the empty field of the reason.
  usual(field, number) {
    if (!field.closest?.(".st-key-final-reason") || field.value) return null
    return document.querySelectorAll(".st-key-final-usual li")[Number(number) - 1]
  }

  // Types a usual reason into the field that has the focus; the browser can undo it there like any other text.
  takes(reason, event) {
    event.preventDefault()
    document.execCommand("insertText", false, reason.textContent.trim())
  }

  // Focuses the field that a key leads to, before the next key comes; the key itself is no text. A field that the page has
  // yet to draw is waited for: what is typed meanwhile is no command, and stands in it then.
  lead(selector, event) {
    const field = document.querySelector(selector)
    if (field) {
      field.focus()
      this.keepsFocus(selector)
      const next = new AbortController()
      field.addEventListener("beforeinput", typed => { if (typed.data === event.key) typed.preventDefault() }, { once: true, signal: next.signal })
      window.addEventListener("keydown", () => next.abort(), { once: true, capture: true })
      return
    }
    const waiting = new AbortController(), typed = []
    this.fills = true
    const hold = pressed => {
      if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.key.length > 1 || typesIn(pressed.composedPath()[0])) return
      pressed.preventDefault()
      pressed.stopImmediatePropagation()
      typed.push(pressed.key)
    }
    window.addEventListener("keydown", hold, { capture: true, signal: waiting.signal })
    const until = Date.now() + LONGEST_RUN_MS
    const look = () => {
      const drawn = document.querySelector(selector)
      if (!drawn && Date.now() < until) { setTimeout(look, 30); return }
      waiting.abort()
      this.fills = false
      drawn?.focus()
      if (drawn) this.keepsFocus(selector)
      if (drawn) for (const each of typed) document.execCommand("insertText", false, this.usual(drawn, each)?.textContent.trim() ?? each)
    }
    setTimeout(look)
  }

  // A run that was under way may draw a field anew that a key has just led into, and the focus would be lost with the old
  // one: it goes into the new one, until the next key or a pointer says where it belongs.
  keepsFocus(selector) {
    const acted = new AbortController()
    for (const each of ["keydown", "pointerdown"]) window.addEventListener(each, () => acted.abort(), { capture: true, signal: acted.signal })
    const until = Date.now() + 3000
    const look = () => {
      if (acted.signal.aborted) return
      if (document.activeElement === document.body) document.querySelector(selector)?.focus()
      if (Date.now() < until) setTimeout(look, 50)
      else acted.abort()
    }
    setTimeout(look, 50)
  }

  help() {
    fillKeySheet(this.sheet, this.data.keys)
    if (this.sheet.open) this.sheet.close()
    else this.sheet.showModal()
  }
}

const ACT_ON_CHOICE = new Set(["b", "m"]) // keys of an adjudication that act on what is in its form (keys.py)

// The letter of a key, with Shift where that is held: Caps Lock makes no other key of it.
const pressedKey = ({ key, shiftKey }) => (shiftKey && /^[a-z]$/i.test(key) ? "Shift+" : "") + key.toLowerCase()

// Whether a button that can be pressed has this key: Streamlit writes the key into it ("N", "Ctrl + Enter").
function hasButton(key) {
  const keys = [...document.querySelectorAll("button:enabled kbd")].map(each => each.textContent.toLowerCase())
  return keys.some(each => each.split("+").pop().trim() === key)
}

// Calls when the page is drawn that a key leads to. The server takes a moment to begin: what has not begun after a while
// had nothing to do, unless it `runs` for sure, or what `shows` asks for is not there yet. `drawn` says whether a run has
// drawn the page since: a slow browser hears of the begin and the end of a run at once, and shows neither.
function whenDrawn(then, { shows = () => true, runs = false, drawn = () => false } = {}) {
  const app = document.querySelector(STREAMLIT.elements.app)
  const idle = () => app?.dataset[STREAMLIT.state.script] === STREAMLIT.state.idle
  const pressed = Date.now()
  let began = !idle(), changed = 0
  // the page is watched: looking now and then would miss a run that begins and ends between two looks of a slow browser
  const changes = new MutationObserver(() => { began ||= !idle(); changed = Date.now() })
  if (app) changes.observe(app, { attributes: true, childList: true, subtree: true })
  let ended = 0
  const look = () => {
    const there = shows(), now = Date.now()
    began ||= drawn()
    const most = !there || (began && !idle()) ? LONGEST_RUN_MS : began || runs ? 3000 : 250
    const waits = now < pressed + most && (!idle() || !began || !there)
    if (!waits) ended ||= now
    // once the run has ended React goes on: a button that is drawn does not know its key yet, nor a field its text
    const draws = began && now < Math.min(changed + QUIET_MS, ended + LONGEST_DRAWING_MS)
    if (waits || draws) { setTimeout(look, 30); return }
    changes.disconnect()
    then()
  }
  setTimeout(look, 30)
}

const LONGEST_RUN_MS = 10000 // a key that waits for a longer run does then what it does on the page that is there
const QUIET_MS = 100 // about twice what React took for it on a processor slowed to a quarter
const LONGEST_DRAWING_MS = 1000 // something else on the page moves

// What a link from another page named stands at the top of the window.
function openAt(container) {
  const main = document.querySelector(STREAMLIT.elements.main)
  const found = document.querySelector(`.st-key-${container}`)
  if (main && found) main.scrollTo(0, main.scrollTop + found.getBoundingClientRect().top - HEADER_PX)
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
