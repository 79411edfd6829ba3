// Shared by the components. Text from outside is set with textContent and never parsed as markup.
const make = (tag, className, text) => {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined && text !== null) element.textContent = text
  return element
}
const named = (tag, className, text, attributes) => {
  const element = make(tag, className, text)
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value)
  return element
}
// Text from outside may be in any language, and so in any direction.
const outsideText = (tag, className, text) => named(tag, className, text, { dir: "auto" })
// Returns the elements of a text's changes, each a kind ("same", "out" or "in") and its words.
const renderDiff = pieces =>
  pieces.map(([kind, words]) => make({ out: "del", in: "ins" }[kind] ?? "span", "", words))
// Returns these fields of an object.
const pick = (names, fields) => Object.fromEntries(names.map(name => [name, fields[name]]))
// Returns whether an element was drawn from other data, and notes the data.
const isOutdated = (element, data) => {
  const drawn = JSON.stringify(data)
  if (element.dataset.drawn === drawn) return false
  element.dataset.drawn = drawn
  return true
}
const isEqual = (left, right) => JSON.stringify(left) === JSON.stringify(right)
const pill = (label, extra) => {
  const element = make("span", `pill tone-${label.tone} ${extra ?? ""}`, label.text)
  if (label.meaning) element.title = label.meaning
  return element
}
// Allows a line break in a name without blanks, such as the id of a case, but only after a
// separator: "med-03_b" splits into "med-", "03_" and "b".
const separable = (element, text) => {
  const parts = text.split(/(?<=[-_./:#@])/)
  element.replaceChildren(
    ...parts.flatMap((part, index) => (index ? [document.createElement("wbr"), part] : [part])),
  )
  element.title = text
  return element
}
// Returns a table with its head and without rows. A column is its title, or an array of title and
// class.
const makeTable = columns => {
  const table = make("table")
  const head = make("tr")
  for (const column of columns) {
    const [title, className] = Array.isArray(column) ? column : [column, ""]
    const cell = make("th", className, title)
    cell.scope = "col"
    head.append(cell)
  }
  table.append(make("thead"), make("tbody"))
  table.tHead.append(head)
  return table
}
// A browser fires a click only if the press and the release hit the same element. Leaving a field
// posts its text, and the answer or the run that follows may move or replace the button that was
// pressed to leave it. Drawing waits for the release, therefore. What the click itself draws doesn't
// wait. If a part is to be drawn several times, only the last one counts.
const CLICK_FOLLOWS_MS = 50 // on a touch screen, the click follows the release after a moment
const presses = new WeakMap()
const whenReleased = (root, draw, part = "") => {
  let press = presses.get(root)
  if (!press) {
    press = { held: false, waiting: new Map() }
    presses.set(root, press)
    const release = () =>
      setTimeout(() => {
        press.held = false
        const waiting = [...press.waiting.values()]
        press.waiting.clear()
        if (root.isConnected) for (const each of waiting) each()
      }, CLICK_FOLLOWS_MS)
    root.addEventListener("click", () => (press.held = false), { capture: true })
    root.addEventListener("pointerdown", () => {
      press.held = true
      for (const end of ["pointerup", "pointercancel"])
        window.addEventListener(end, release, { once: true, capture: true })
    })
  }
  if (press.held) press.waiting.set(part, draw)
  else draw()
}
const HEADER_PX = 64 // Streamlit's header covers the top of the scrolled page
// Sets `--fit` on an element: the height from its present top to the bottom of the window, less the
// height that something else covers there (`below`). CSS alone can't know where the element starts
// while the page scrolls. Returns a function that stops it.
const fitToWindow = (element, below = () => 0) => {
  const fit = () => {
    const top = Math.max(element.getBoundingClientRect().top, HEADER_PX)
    element.style.setProperty(
      "--fit",
      `${Math.max(window.innerHeight - below() - top - 16, 200)}px`,
    )
  }
  const listeners = new AbortController()
  // scroll events don't bubble: capturing them on the window catches those of every container
  for (const type of ["scroll", "resize"])
    window.addEventListener(type, fit, { capture: true, passive: true, signal: listeners.signal })
  const resizes = new ResizeObserver(fit)
  resizes.observe(
    document.querySelector(STREAMLIT.elements.main)?.firstElementChild ?? document.body,
  )
  fit()
  return () => {
    listeners.abort()
    resizes.disconnect()
  }
}
// Markdown. Python parses it and sends blocks and pieces of text; tags come only from these two
// tables, so a text can't name an element. A block is created with its first piece.
const BLOCK_TAGS = {
  p: "p",
  h3: "h3",
  h4: "h4",
  h5: "h5",
  h6: "h6",
  ul: "ul",
  ol: "ol",
  li: "li",
  quote: "blockquote",
  pre: "pre",
  table: "table",
  tr: "tr",
  th: "th",
  td: "td",
  hr: "hr",
}
const STYLE_TAGS = { strong: "strong", em: "em", code: "code", link: "span", url: "span" }
const blockDrawer = (box, blocks) => {
  const drawn = []
  let current = box
  const drawUpTo = index => {
    while (drawn.length <= index) {
      const block = blocks[drawn.length]
      const element = make(BLOCK_TAGS[block.tag] ?? "p", `md md-${block.tag}`)
      if (block.number !== undefined) element.value = block.number
      if (["p", "th", "td", "h3", "h4", "h5", "h6"].includes(block.tag)) element.dir = "auto"
      ;(drawn[block.parent] ?? box).append(element)
      drawn.push(element)
    }
  }
  if (blocks.length) box.classList.add("has-blocks")
  return {
    // returns the block of a piece; a piece without one continues the block before it
    of: piece => {
      if (piece.block !== undefined) {
        drawUpTo(piece.block)
        current = drawn[piece.block]
      }
      return current
    },
    end: () => drawUpTo(blocks.length - 1),
  }
}
// Draws the text of a piece with its styles. Hidden markup leaves an empty element, as marks may
// end on it.
const applyStyles = (element, piece) => {
  if (piece.hidden) {
    element.replaceChildren()
    return element
  }
  if (!piece.styles?.length) return element
  let inner = document.createTextNode(piece.text)
  for (const style of [...piece.styles].reverse()) {
    const wrapper = make(STYLE_TAGS[style] ?? "span", `md-${style}`)
    wrapper.append(inner)
    inner = wrapper
  }
  element.replaceChildren(inner)
  return element
}

// The blanks between two sentences. A sentence ends with its stop, or with a citation behind the
// stop: "... in adults.[2] Women ..." The length of the citation is limited, so that the time grows
// linearly with the text. A line break ends it as well: an item of a list often has no stop.
const SENTENCE_BREAK = new RegExp(
  `\\s*\\n\\s*|(?=\\s)(?<=[.!?](?:\\S{1,80}(?<=${MARKER_END}))?)\\s+`,
)

// Numbers such as 2,917 or 0.87, and words of four letters or more: shorter ones are mostly function
// words. Of a word, the first letters: "refund" and "refunded" say the same.
const termsOf = text =>
  (text.toLowerCase().match(/\d+(?:[.,]\d+)*|\p{L}{4,}/gu) ?? []).map(term =>
    /\d/.test(term) ? term : term.slice(0, 6),
  )
// Returns whether `present` has all numbers of the terms, and lacks at most this share of the terms.
const hasTerms = (present, terms, share) => {
  const missing = terms.filter(term => !present.has(term))
  return missing.length <= share * terms.length && !missing.some(term => /\d/.test(term))
}
const occurrences = (items, item) => items.filter(other => other === item).length

// Returns whether a correction says a point that its answer lacks. "sentence": in one sentence, with
// at least 80% of its words. "words": in words of its own or in several sentences, with most of its
// words. Only sentences that the answer doesn't have count. They must also have new words: another
// sentence of the answer may have the words of the point without saying it, and a comma changes it
// into a new sentence. The point arrives without citation markers, as only Python knows their formats.
const addsPoint = (answer, corrected, point, within) => {
  const wanted = [...new Set(termsOf(point))]
  if (!wanted.length) return corrected.split(point).length > answer.split(point).length
  const old = new Set(answer.split(SENTENCE_BREAK))
  const added = corrected.split(SENTENCE_BREAK).filter(sentence => !old.has(sentence))
  const [before, after] = [termsOf(answer), termsOf(corrected)]
  const gained = new Set(
    wanted.filter(term => occurrences(after, term) > occurrences(before, term)),
  )
  // The gained words say the point themselves, or complete a sentence of the answer
  const isNew = ["", ...old].some(sentence => {
    const has = new Set(termsOf(sentence))
    const rest = wanted.filter(term => !has.has(term))
    return rest.length && hasTerms(gained, rest, 0.5)
  })
  if (!isNew) return false
  return within === "sentence"
    ? added.some(sentence => hasTerms(new Set(termsOf(sentence)), wanted, 0.2))
    : hasTerms(new Set(added.flatMap(termsOf)), wanted, 0.49)
}
