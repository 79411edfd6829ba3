// While a dialog is open, keys belong to it: one of Streamlit's, on any page, or one of ours
// (`showDialog` in key_sheet.js). Streamlit's buttons and its own R, which closes its dialogs, listen
// on the document, and so do our pages. Keys are stopped before they get there.
//
// People look at the dialog, not at the keyboard: what they type while it opens, while it's open, or
// just after it has closed is meant for it, and must not decide a case.
const BURST_MS = 600 // a longer pause between two keys ends the typing
const OPENING_MS = 500 // Streamlit starts the run that draws a dialog within this time
const LONGEST_OPENING_MS = 10000
const FIELD_TRIES = 60 // every 50 ms: Streamlit draws the fields of a dialog after the dialog
// The buttons of a case that open a dialog, by their keys (keys.py)
const OPENERS = { y: ".st-key-case-add-code button", z: ".st-key-minimal-open button" }
const TEXT_FIELDS =
  "textarea, input:not([type=radio], [type=checkbox], [type=button], [type=file], [type=range])"

const DESK = ".st-key-review, .st-key-adjudication"
const isOffline = () => {
  const state = document.querySelector(STREAMLIT.elements.app)?.dataset[STREAMLIT.state.connection]
  return state !== undefined && state !== STREAMLIT.state.connected
}

class DialogKeys {
  constructor() {
    this.typedAt = -Infinity // the last letter that was typed in a dialog, or was meant for one
    this.openingAt = -Infinity
    window.addEventListener("keydown", event => this.onKeydown(event), { capture: true })
    // Only a press that nothing else has used, such as the label bar, reaches Streamlit's buttons
    document.addEventListener("keydown", event => {
      const opener = document.querySelector(OPENERS[event.key.toLowerCase()] ?? "none")
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey
      if (opener && !opener.disabled && isPlain && !this.typesIn(event)) this.expectDialog()
    })
    document.addEventListener("click", event => {
      if (event.target.closest?.(Object.values(OPENERS).join())) this.expectDialog()
    })
    // React puts a dialog into an element of its own at the end of the page
    new MutationObserver(changes => {
      for (const { addedNodes } of changes) for (const node of addedNodes) this.onAdded(node)
    }).observe(document.body, { childList: true })
  }

  get dialog() {
    const own = window.masisDialog
    return own?.isConnected && own.open ? own : document.querySelector(STREAMLIT.elements.dialog)
  }

  expectDialog() {
    this.openingAt = performance.now()
  }

  // Returns whether a dialog was asked for that the server has yet to draw.
  isOpening() {
    const since = performance.now() - this.openingAt
    const app = document.querySelector(STREAMLIT.elements.app)
    const isRunning = app?.dataset[STREAMLIT.state.script] !== STREAMLIT.state.idle
    const isOpening = since < OPENING_MS || (isRunning && since < LONGEST_OPENING_MS)
    if (!isOpening) this.openingAt = -Infinity
    return isOpening
  }

  typesIn(event) {
    const target = event.composedPath()[0]
    return Boolean(target.isContentEditable || target.matches?.(`${TEXT_FIELDS}, select`))
  }

  // Focuses the first field of a dialog once it is drawn, unless the reader has acted.
  onAdded(node) {
    const dialog = node.parentElement?.querySelector(STREAMLIT.elements.dialog)
    if (!dialog || !(node.contains(dialog) || dialog.contains(node))) return
    this.openingAt = -Infinity
    if (isOffline() && document.querySelector(DESK)) {
      this.replaceOfflineDialog(dialog)
      return
    }
    const acted = new AbortController()
    for (const name of ["keydown", "pointerdown"])
      window.addEventListener(name, () => acted.abort(), { capture: true, signal: acted.signal })
    const focusField = tries => {
      const field = this.fieldOf(dialog)
      if (acted.signal.aborted || !dialog.isConnected) return
      if (field && document.activeElement !== field) field.focus()
      if (tries) setTimeout(() => focusField(tries - 1), 50)
      else acted.abort()
    }
    focusField(FIELD_TRIES)
  }

  // While the server doesn't answer, Streamlit's dialog covers the desk, which says more (desk.js).
  // Once closed, it stays away until the next time.
  replaceOfflineDialog(dialog) {
    dialog.querySelector("section > button")?.click()
    const tell = () =>
      window.dispatchEvent(new CustomEvent("masis-offline", { detail: isOffline() }))
    tell()
    const app = document.querySelector(STREAMLIT.elements.app)
    const changes = new MutationObserver(() => {
      if (isOffline()) return
      changes.disconnect()
      tell()
    })
    changes.observe(app, { attributes: true })
  }

  fieldOf(dialog) {
    const isUsable = field => !field.disabled && !field.readOnly && field.getClientRects().length
    return [...dialog.querySelectorAll(TEXT_FIELDS)].find(isUsable)
  }

  onKeydown(event) {
    const isText = event.key?.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey
    const { dialog } = this
    if (dialog) this.onDialogKey(event, dialog, isText)
    else if (!this.typesIn(event) && (isText || event.key === "Enter")) {
      if (performance.now() - this.typedAt > BURST_MS && !this.isOpening()) return
      this.typedAt = performance.now()
      this.stop(event)
      window.dispatchEvent(new Event("masis-key-ignored"))
    }
  }

  onDialogKey(event, dialog, isText) {
    const isOwn = dialog === window.masisDialog
    const isInside = event.composedPath().includes(dialog)
    if (!isText) {
      // a command, such as Enter or Esc, ends the typing
      if (["Enter", "Escape", "Tab"].includes(event.key)) this.typedAt = -Infinity
      // after a click beside one of ours, the keys would be the page's
      if (isOwn && !isInside && event.key === "Enter") this.stop(event)
      return
    }
    const hasControl =
      isInside && event.composedPath()[0].closest("a, button, input, [tabindex='0']")
    if (event.key === " " && hasControl) return
    this.typedAt = performance.now()
    if (isInside && (isOwn || this.typesIn(event))) return // ours let no key out
    const field = isOwn || hasControl ? null : this.fieldOf(dialog)
    if (!field) {
      this.stop(event)
      return
    }
    event.stopImmediatePropagation()
    field.focus() // the browser types the letter into the field that has the focus after this
  }

  stop(event) {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
}

if (!window.masisDialogKeys) window.masisDialogKeys = new DialogKeys()
