// The keyboard shortcuts of a page with lists: the sheet of keys, table rows and the search field.
const pageKeys = new WeakMap()

class PageKeys {
  constructor(root) {
    this.root = root
    this.sheet = named("dialog", "sheet", "", { "aria-label": "Keys" })
    root.append(this.sheet)
    this.listeners = new AbortController()
    const listen = (target, type, handler, capture = false) =>
      target.addEventListener(type, handler, { capture, signal: this.listeners.signal })
    listen(document, "keydown", event => this.onKeydown(event))
    listen(document, "click", event => this.onNavigationClick(event), true)
    // A filter that was clicked loses the focus, because Enter would switch it off again instead of
    // opening the first case. One that was pressed with a key keeps it. React focuses the button
    // itself after the press.
    listen(document, "pointerup", event => {
      const filter = event.target.closest?.(`${STREAMLIT.elements.choices} button`)
      if (filter) setTimeout(() => filter.blur(), AFTER_PRESS_MS)
    })
  }

  update({ data, setTriggerValue }) {
    this.resetPage = () => setTriggerValue("begin", true)
    // another page of a list is read from the top
    const isOtherPage = this.name === data.name && this.page !== data.page
    if (isOtherPage) document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (this.name !== data.name) {
      this.name = data.name
      if (data.at) whenDrawn(() => scrollToContainer(data.at))
    }
    this.page = data.page
    if (data.search && window.masisSearch) {
      // "/" was pressed on a case (desk.js)
      window.masisSearch = false
      focusSearch(`.st-key-${data.search} input`)
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

  // A link in the menu opens a page at its top. If the page is already open, Streamlit would keep
  // its query, so the page is reset here. The link loses the focus, because it would otherwise get
  // the next keys.
  onNavigationClick(event) {
    const { navigation_link, navigation_menu_link } = STREAMLIT.elements
    const link = event.target.closest?.(`${navigation_link}, ${navigation_menu_link}`)
    if (!link || !this.root.isConnected || event.ctrlKey || event.metaKey || event.shiftKey) return
    link.blur()
    blurMenuOnce()
    if (link.getAttribute("aria-current") !== "page") return
    event.preventDefault()
    event.stopImmediatePropagation()
    document.querySelector(STREAMLIT.elements.main)?.scrollTo(0, 0)
    if (location.search) this.resetPage()
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
    if (
      event.key === "Enter" &&
      !event.isComposing &&
      this.data.search &&
      target.closest?.(`.st-key-${this.data.search}`)
    )
      this.onSearchEnter(target)
    if (typesIn(target)) return
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
    if (this.sheet.open) return null
    if ((key === "h" || key === "?") && !event.repeat) return () => this.toggleSheet()
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
    // without a focused element, Enter opens the first case of the queue: the most urgent one
    if (key === "Enter" && this.data.search && event.target === document.body)
      return () => moveFocus(0)
    return null
  }

  toggleSheet() {
    toggleKeySheet(this.sheet, this.data.keys)
  }
}

// Focuses the search once it is there. A run that was in progress may replace the field, and the
// focus would be lost with it. For three seconds the new one gets it, unless a key or the pointer
// acts first.
// A menu that closes gives the focus back to its button, which would get the next keys.
function blurMenuOnce() {
  const signal = AbortSignal.timeout(LONGEST_DRAWING_MS)
  const blur = event => event.target.closest?.(STREAMLIT.elements.navigation_menu)?.blur()
  document.addEventListener("focusin", blur, { once: true, signal })
}

function focusSearch(selector) {
  const acted = new AbortController()
  const deadline = Date.now() + 3000
  let focused = null
  const poll = () => {
    if (acted.signal.aborted || Date.now() > deadline) return
    const field = document.querySelector(selector)
    if (field && field !== focused) {
      field.focus()
      if (!focused)
        for (const type of ["keydown", "pointerdown"])
          window.addEventListener(type, () => acted.abort(), {
            capture: true,
            signal: acted.signal,
          })
      focused = field
    }
    setTimeout(poll, 50)
  }
  poll()
}

// Calls `then` once the page is drawn after a key. The server takes a moment to start a run. If no
// run has started after a while, the key had no effect, unless `isReady` still returns false.
function whenDrawn(then, { isReady = () => true } = {}) {
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
    const limit = !ready || (started && !isIdle()) ? LONGEST_RUN_MS : started ? 3000 : 250
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

const AFTER_PRESS_MS = 50
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

// Moves the focus by a row in the list that has it, or else into the first list of the page. A step
// of 0 opens the first row. A list that acts cancels the event (row_keys.js). Rows that Streamlit
// draws, as those of failure modes, come last.
function moveFocus(step) {
  for (const within of [true, false]) {
    const moves = new CustomEvent("masis-row", { detail: { step, within }, cancelable: true })
    if (!window.dispatchEvent(moves)) return
  }
  const rows = [...document.querySelectorAll('[class*="st-key-list-row-"]')].filter(
    row => row.offsetParent,
  )
  const current = rows.findIndex(row => row.contains(document.activeElement))
  const start = step > 0 ? 0 : rows.length - 1
  const next = current < 0 ? start : Math.min(Math.max(current + step, 0), rows.length - 1)
  rows[next]?.querySelector("input, a")?.focus()
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
