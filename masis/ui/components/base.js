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
// A name without blanks, such as the id of a case, goes on in the next line behind one of its separators only.
const separable = (element, text) => {
  element.replaceChildren(...text.split(/(?<=[-_./:#@])/).flatMap((part, place) => (place ? [document.createElement("wbr"), part] : [part])))
  element.title = text
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
// What stays in view reaches to the window's foot and no further: `--fit` is its height from where it begins just now.
// `below` is how much of the foot something else covers.
const HEADER_PX = 64 // the frame's head lies over what is scrolled below it
const fitToWindow = (element, below = () => 0) => {
  const fit = () => {
    const top = Math.max(element.getBoundingClientRect().top, HEADER_PX)
    element.style.setProperty("--fit", `${Math.max(window.innerHeight - below() - top - 16, 200)}px`)
  }
  const leaving = new AbortController()
  for (const moved of ["scroll", "resize"]) window.addEventListener(moved, fit, { capture: true, passive: true, signal: leaving.signal })
  const resized = new ResizeObserver(fit)
  resized.observe(document.querySelector(STREAMLIT.elements.main)?.firstElementChild ?? document.body)
  fit()
  return () => { leaving.abort(); resized.disconnect() }
}
// Markdown: blocks are made as their first piece is drawn, from names of our own; a piece only ever becomes text.
const BLOCK_TAGS = { p: "p", h3: "h3", h4: "h4", h5: "h5", h6: "h6", ul: "ul", ol: "ol", li: "li", quote: "blockquote", pre: "pre", table: "table", tr: "tr", th: "th", td: "td", hr: "hr" }
const STYLE_TAGS = { strong: "strong", em: "em", code: "code", link: "span", url: "span" }
const blockDrawer = (box, blocks) => {
  const drawn = []
  let current = box
  const upTo = place => {
    while (drawn.length <= place) {
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
    // where a piece is drawn: the block it belongs to, else the one before it
    of: piece => {
      if (piece.block !== undefined) { upTo(piece.block); current = drawn[piece.block] }
      return current
    },
    end: () => upTo(blocks.length - 1),
  }
}
// The words of a piece in its styles; hidden markup leaves an empty element, on which marks may still end.
const styled = (element, piece) => {
  if (piece.hidden) { element.replaceChildren(); return element }
  if (!piece.styles?.length) return element
  let inner = document.createTextNode(piece.text)
  for (const style of [...piece.styles].reverse()) {
    const around = make(STYLE_TAGS[style] ?? "span", `md-${style}`)
    around.append(inner)
    inner = around
  }
  element.replaceChildren(inner)
  return element
}

// Whether a sentence of the text says this already: all of its figures and nearly all of its words. The point comes
// without citation markers: only Python knows how those look.
const saidIn = (text, point) => {
  const parts = of => of.toLowerCase().match(/\d+(?:[.,]\d+)*|\p{L}{4,}/gu) ?? []
  const wanted = [...new Set(parts(point))]
  if (!wanted.length) return text.includes(point)
  return text.split(/(?<=[.!?\]])\s+/).some(sentence => {
    const has = new Set(parts(sentence))
    const missing = wanted.filter(each => !has.has(each))
    return missing.length <= wanted.length * 0.2 && !missing.some(each => /\d/.test(each))
  })
}
