// The keyboard shortcuts of a page with lists: the sheet of keys, table rows and the search field.
const pageKeys = new WeakMap()

class PageKeys {
  constructor(root) {
    this.root = root
    this.heldKeys = []
    this.sheet = named("dialog", "sheet", "", { "aria-label": "Keys" })
    root.append(this.sheet)
    this.listeners = new AbortController()
    const listen = (target, type, handler, capture = false) =>
      target.addEventListener(type, handler, { capture, signal: this.listeners.signal })
    listen(document, "keydown", event => this.onKeydown(event))
    listen(window, "keydown", event => this.onAdjudicationKeydown(event), true)
    listen(document, "click", event => this.onNavigationClick(event), true)
    listen(document, "focusin", event => this.onFocusin(event))
    for (const type of ["pointerdown", "keydown"])
      listen(document, type, event => this.onPointerOrKey(event), true)
    listen(document, "input", event => this.onInput(event))
  }

  update({ data, setTriggerValue }) {
    this.resetPage = () => setTriggerValue("begin", true)
    this.run = data.run
    const isOtherCase = this.case && data.case && this.case !== data.case
    // another page of the queue: its list is read from the top
    const isOtherPage = data.search && this.page !== undefined && this.page !== data.page
    if (isOtherCase || isOtherPage) document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (this.name !== data.name) {
      this.name = data.name
      if (data.at) whenDrawn(() => scrollToContainer(data.at))
    }
    this.case = data.case
    this.borrowed = data.borrowed
    this.page = data.page
    if (data.focus && data.focus.token !== this.focusToken) {
      this.focusToken = data.focus.token
      document.querySelector(`.st-key-${data.focus.field} textarea`)?.focus()
    }
    if (data.search && window.masisSearch) {
      // "/" was pressed on a case (decision.js)
      window.masisSearch = false
      this.focusField(`.st-key-${data.search} input`, { key: "/" })
    }
    const groups = JSON.stringify(data.keys)
    if (this.groups === groups) return
    this.groups = groups
    this.data = data
    this.sheet.replaceChildren()
    if (this.sheet.open) fillKeySheet(this.sheet, data.keys)
  }

  leave() {
    this.listeners.abort()
  }

  // Selects another person's text when a key focuses its field, so that typing replaces it.
  onFocusin({ target }) {
    if (
      !this.usesPointer &&
      target.closest?.(".st-key-final-form") &&
      this.borrowed?.includes(target.value)
    )
      target.select()
  }

  onPointerOrKey(event) {
    this.usesPointer = event.type === "pointerdown"
    const reason = this.usesPointer && event.target.closest?.(".st-key-final-usual li")
    if (reason) this.insertReason(reason, event)
  }

  // Streamlit sends a text only when its field loses the focus. This also sends it after a pause in
  // typing, so that the list of changes is updated while the lead types.
  onInput({ target }) {
    clearTimeout(this.typingPause)
    const send = () => target.dispatchEvent(new FocusEvent("focusout", { bubbles: true }))
    if (target.closest(".st-key-final-form")) this.typingPause = setTimeout(send, 500)
  }

  // A link in the menu opens a page at its top. If the page is already open, Streamlit would keep
  // its query, so the page is reset here. The link loses the focus, because it would otherwise get
  // the next keys.
  onNavigationClick(event) {
    const link = event.target.closest?.(STREAMLIT.elements.navigation_link)
    if (!link || !this.root.isConnected || event.ctrlKey || event.metaKey || event.shiftKey) return
    link.blur()
    if (link.getAttribute("aria-current") !== "page") return
    event.preventDefault()
    event.stopImmediatePropagation()
    document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (location.search) this.resetPage()
  }

  // While one case of an adjudication is replaced by the next, a key pressed now would be meant for
  // the old case. It is dropped, except for a key that focuses a field of the case that an undo
  // brings back. Keys that act on a choice (record the decision, restart its correction) wait until
  // the server has the choice, in their order, even if all of them were pressed at once.
  onAdjudicationKeydown(event) {
    if (
      this.isReplaying ||
      !this.root.isConnected ||
      !document.querySelector(".st-key-adjudication")
    )
      return
    const records = event.key === "Enter" && (event.ctrlKey || event.metaKey)
    const isLetter =
      event.key.length === 1 &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey &&
      !typesIn(event.composedPath()[0])
    // Letters typed before their field is drawn are text
    if (!records && (!isLetter || this.awaitsField)) return
    const key = pressedKey(event),
      focusesField = this.data.fields[key]
    const waits =
      !this.leavingBy &&
      !focusesField &&
      (this.heldKeys.length || (this.hasChosen && (records || ACT_ON_CHOICE.has(key))))
    if (this.leavingBy || waits) {
      event.preventDefault()
      event.stopImmediatePropagation()
      if (waits || (this.leavingBy === "u" && focusesField)) this.heldKeys.push(event)
    } else this.trackCommand(key, records)
  }

  // Remembers that a key leaves the case or changes a choice, until the page is drawn again.
  trackCommand(key, records) {
    const pressesButton = hasButton(records ? "enter" : key)
    if (records || "unp".includes(key)) this.setUntilDrawn("leavingBy", key, pressesButton)
    else if ((key in this.data.fields && !key.endsWith("t")) || ACT_ON_CHOICE.has(key))
      this.setUntilDrawn("hasChosen", true, pressesButton)
  }

  // Sets a property until the page is drawn for the last command, then replays the keys that were
  // held meanwhile. `expectsRun` means that a button has the key, so a run will start, however long
  // a busy server takes.
  setUntilDrawn(name, value, expectsRun) {
    this[name] = value
    const runBefore = this.run
    const turn = (this.turn = (this.turn ?? 0) + 1)
    const release = () => {
      if (turn !== this.turn) return
      if (this.awaitsField) {
        setTimeout(release, 30)
        return
      } // text typed for a field is inserted first
      this.leavingBy = ""
      this.hasChosen = false
      while (this.heldKeys.length && !this.leavingBy && !this.hasChosen)
        this.replay(this.heldKeys.shift())
    }
    whenDrawn(release, { expectsRun, wasDrawn: () => this.run !== runBefore })
  }

  replay({ key, code, keyCode, shiftKey, ctrlKey, metaKey }) {
    const copy = {
      key,
      code,
      keyCode,
      shiftKey,
      ctrlKey: ctrlKey || metaKey,
      bubbles: true,
      composed: true,
      cancelable: true,
    }
    // The key was a command when it was pressed, even if a text field has the focus now
    const isLetter = !copy.ctrlKey
    this.trackCommand(pressedKey(copy), !isLetter)
    this.isReplaying = true
    const target = isLetter ? document.body : document.activeElement
    for (const type of ["keydown", "keyup"]) target.dispatchEvent(new KeyboardEvent(type, copy))
    this.isReplaying = false
  }

  onKeydown(event) {
    if (!this.root.isConnected) {
      this.leave()
      return
    }
    const target = event.composedPath()[0]
    // Escape leaves a field. An open list and a dialog close by it themselves.
    if (
      event.key === "Escape" &&
      typesIn(target) &&
      !event.defaultPrevented &&
      !target.closest("dialog, [role=dialog], [aria-expanded=true]")
    )
      target.blur()
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const reason = this.usualReason(target, event.key)
    if (reason) this.insertReason(reason, event)
    if (
      event.key === "Enter" &&
      !event.isComposing &&
      this.data.search &&
      target.closest?.(`.st-key-${this.data.search}`)
    )
      this.onSearchEnter(target)
    if (typesIn(target)) return
    const key = pressedKey(event)
    const field = this.data.fields[key]
    // the fields of reason and note are drawn once a verdict is chosen: without one, there is
    // nothing to wait for
    const form =
      key.endsWith("t") && !this.hasChosen ? ".st-key-final-form textarea" : ".st-key-final-form"
    if (field && !event.repeat && document.querySelector(form))
      this.focusField(`.st-key-${field} textarea`, event)
    if (event.defaultPrevented) return
    if (document.querySelector(STREAMLIT.elements.dialog)) return
    const command = this.commandFor(event)
    if (!command) return
    event.preventDefault()
    command()
  }

  // Leaves the search field, as the next keys are for its results, and focuses the first of them.
  onSearchEnter(field) {
    field.blur()
    const query = field.value.trim()
    const isApplied = () => (new URLSearchParams(location.search).get("q") ?? "") === query
    whenDrawn(
      () => {
        if (document.activeElement === document.body) moveFocus(1)
      },
      { isReady: isApplied },
    )
  }

  commandFor(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    const togglesSheet = key === "h" || key === "?"
    if (this.sheet.open && !togglesSheet) return null
    if (togglesSheet && !event.repeat) return () => this.toggleSheet()
    const search =
      key === "/" && this.data.search
        ? document.querySelector(`.st-key-${this.data.search} input`)
        : null
    if (search)
      return () => {
        search.focus()
        search.select()
      }
    if (key === "j" && this.data.rows) return () => moveFocus(1)
    if (key === "k" && this.data.rows) return () => moveFocus(-1)
    if (key === "f" && this.data.fields.o)
      return () =>
        window.dispatchEvent(new CustomEvent("masis-issue", { detail: event.shiftKey ? -1 : 1 }))
    if (key === "g" && this.data.fields.o)
      return () => window.dispatchEvent(new Event("masis-turn"))
    // without a focused element, Enter opens the first case of the queue: the most urgent one
    if (key === "Enter" && this.data.search && event.target === document.body)
      return () => moveFocus(0)
    return null
  }

  // Returns the usual reason with this number if the field of the reason is empty.
  usualReason(field, number) {
    if (!field.closest?.(".st-key-final-reason") || field.value) return null
    return document.querySelectorAll(".st-key-final-usual li")[Number(number) - 1]
  }

  // Types a usual reason into the focused field. execCommand is deprecated, but what it inserts can
  // be undone with Ctrl+Z like typed text; a value that is set cannot.
  insertReason(reason, event) {
    event.preventDefault()
    document.execCommand("insertText", false, reason.textContent.trim())
  }

  // Focuses the field of a key at once, so that the next key is text in it; the key itself isn't.
  // If the page has yet to draw the field, the letters typed meanwhile are held and inserted once
  // it is there.
  focusField(selector, event) {
    const field = document.querySelector(selector)
    if (field) {
      field.focus()
      this.keepFocus(selector)
      const nextKey = new AbortController()
      field.addEventListener(
        "beforeinput",
        input => {
          if (input.data === event.key) input.preventDefault()
        },
        { once: true, signal: nextKey.signal },
      )
      window.addEventListener("keydown", () => nextKey.abort(), { once: true, capture: true })
      return
    }
    const waiting = new AbortController(),
      letters = []
    this.awaitsField = true
    const holdLetter = pressed => {
      if (
        pressed.ctrlKey ||
        pressed.metaKey ||
        pressed.altKey ||
        pressed.key.length > 1 ||
        typesIn(pressed.composedPath()[0])
      )
        return
      pressed.preventDefault()
      pressed.stopImmediatePropagation()
      letters.push(pressed.key)
    }
    window.addEventListener("keydown", holdLetter, { capture: true, signal: waiting.signal })
    const deadline = Date.now() + LONGEST_RUN_MS
    const poll = () => {
      const drawn = document.querySelector(selector)
      if (!drawn && Date.now() < deadline) {
        setTimeout(poll, 30)
        return
      }
      waiting.abort()
      this.awaitsField = false
      if (!drawn) return
      drawn.focus()
      this.keepFocus(selector)
      for (const letter of letters)
        document.execCommand(
          "insertText",
          false,
          this.usualReason(drawn, letter)?.textContent.trim() ?? letter,
        )
    }
    setTimeout(poll)
  }

  // A run that was under way may replace the field that a key has just focused, and the focus would
  // be lost with the old element. For three seconds the new one gets it, unless a key or the
  // pointer acts first.
  keepFocus(selector) {
    const acted = new AbortController()
    for (const type of ["keydown", "pointerdown"])
      window.addEventListener(type, () => acted.abort(), { capture: true, signal: acted.signal })
    const deadline = Date.now() + 3000
    const poll = () => {
      if (acted.signal.aborted) return
      if (document.activeElement === document.body) document.querySelector(selector)?.focus()
      if (Date.now() < deadline) setTimeout(poll, 50)
      else acted.abort()
    }
    setTimeout(poll, 50)
  }

  toggleSheet() {
    fillKeySheet(this.sheet, this.data.keys)
    if (this.sheet.open) this.sheet.close()
    else this.sheet.showModal()
  }
}

// Keys of an adjudication that act on the state of its form (keys.py)
const ACT_ON_CHOICE = new Set(["b", "m"])

// Returns the letter of a key, with Shift if it is held. Caps Lock makes no difference.
const pressedKey = ({ key, shiftKey }) =>
  (shiftKey && /^[a-z]$/i.test(key) ? "Shift+" : "") + key.toLowerCase()

// Returns whether an enabled button has this key. Streamlit writes the key into the button ("N",
// "Ctrl + Enter").
function hasButton(key) {
  const labels = [...document.querySelectorAll("button:enabled kbd")].map(kbd =>
    kbd.textContent.toLowerCase(),
  )
  return labels.some(label => label.split("+").pop().trim() === key)
}

// Calls `then` once the page is drawn after a key. The server takes a moment to start a run. If no
// run has started after a while, the key had no effect, unless `expectsRun` is set or `isReady`
// still returns false. `wasDrawn` returns whether a run has drawn the page since, because a slow
// browser may receive the start and the end of a run at once and show neither.
function whenDrawn(
  then,
  { isReady = () => true, expectsRun = false, wasDrawn = () => false } = {},
) {
  const app = document.querySelector(STREAMLIT.elements.app)
  const isIdle = () => app?.dataset[STREAMLIT.state.script] === STREAMLIT.state.idle
  const pressedAt = Date.now()
  let started = !isIdle(),
    changedAt = 0,
    endedAt = 0
  // an observer, because polling would miss a run that starts and ends between two polls of a slow
  // browser
  const changes = new MutationObserver(() => {
    started ||= !isIdle()
    changedAt = Date.now()
  })
  if (app) changes.observe(app, { attributes: true, childList: true, subtree: true })
  const poll = () => {
    const ready = isReady(),
      time = Date.now()
    started ||= wasDrawn()
    const limit =
      !ready || (started && !isIdle()) ? LONGEST_RUN_MS : started || expectsRun ? 3000 : 250
    const waits = time < pressedAt + limit && (!isIdle() || !started || !ready)
    if (!waits) endedAt ||= time
    // React continues to draw after the run has ended: a new button may not have its key yet, and a
    // field may not have its text
    const isDrawing = started && time < Math.min(changedAt + QUIET_MS, endedAt + LONGEST_DRAWING_MS)
    if (waits || isDrawing) {
      setTimeout(poll, 30)
      return
    }
    changes.disconnect()
    then()
  }
  setTimeout(poll, 30)
}

const LONGEST_RUN_MS = 10000 // after a longer run, a waiting key acts on the page as it is
const QUIET_MS = 100 // about twice what React needed on a processor slowed to a quarter
const LONGEST_DRAWING_MS = 1000 // changes that go on for longer have another cause

// Scrolls the container that a link from another page named to the top of the window.
function scrollToContainer(key) {
  const main = document.querySelector(STREAMLIT.elements.main)
  const container = document.querySelector(`.st-key-${key}`)
  if (main && container)
    main.scrollTo(0, main.scrollTop + container.getBoundingClientRect().top - HEADER_PX)
}

// Moves the focus by a row in the table that has it, or else into the first table of the page. A
// step of 0 opens the first row. A table that acts cancels the event (linked_table.js).
function moveFocus(step) {
  for (const within of [true, false]) {
    if (
      !window.dispatchEvent(
        new CustomEvent("masis-row", { detail: { step, within }, cancelable: true }),
      )
    )
      return
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
