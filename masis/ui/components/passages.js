// Places of words in a drawn text. A place counts the characters of the stored text as code points,
// because Python counts so. Hidden markup counts. Signs drawn by a style sheet are no text and don't
// count. A text is drawn in pieces: `pieces` holds the element and the offset of each.

// Returns the selected range of a page, or null. A selection within a shadow root isn't visible to
// window.getSelection() in every browser: Chromium has getSelection() on the shadow root, and
// getComposedRanges() is the standard way (https://w3c.github.io/selection-api/).
const selectedRangeIn = root => {
  const selection = root.getRootNode().getSelection?.() ?? window.getSelection()
  if (!selection || (selection.isCollapsed && !selection.getComposedRanges)) return null
  const selected =
    selection.getComposedRanges?.({ shadowRoots: [root.getRootNode()] })[0] ??
    (selection.rangeCount ? selection.getRangeAt(0) : null)
  if (!selected || selected.collapsed) return null
  const range = document.createRange() // composed ranges are static and have no methods
  range.setStart(selected.startContainer, selected.startOffset)
  range.setEnd(selected.endContainer, selected.endOffset)
  return range
}

// Returns the words of a text within a range and their place, or null. `letters` are the characters
// of the text. Spaces around the words are left out, and a word that the range cuts is completed:
// the pointer was a little off.
const wordsInRange = (range, pieces, letters) => {
  let start = Infinity
  let end = -1
  for (const { element, at } of pieces) {
    if (!range.intersectsNode(element)) continue
    const inside = document.createRange()
    inside.selectNodeContents(element)
    const before = inside.cloneRange()
    if (range.compareBoundaryPoints(Range.START_TO_START, inside) > 0)
      inside.setStart(range.startContainer, range.startOffset)
    if (range.compareBoundaryPoints(Range.END_TO_END, inside) < 0)
      inside.setEnd(range.endContainer, range.endOffset)
    before.setEnd(inside.startContainer, inside.startOffset)
    const from = at + lettersIn(before.toString())
    const chosen = lettersIn(inside.toString())
    if (!chosen) continue
    start = Math.min(start, from)
    end = Math.max(end, from + chosen)
  }
  while (start < end && !letters[start].trim()) start += 1
  while (end > start && !letters[end - 1].trim()) end -= 1
  while (start < end && start > 0 && inWord(letters[start - 1]) && inWord(letters[start]))
    start -= 1
  while (end > start && end < letters.length && inWord(letters[end - 1]) && inWord(letters[end]))
    end += 1
  return end > start ? { start, end, text: letters.slice(start, end).join("") } : null
}

// The text of a drawn chunk of the evidence.
class ChunkText {
  constructor(id, card) {
    this.id = id
    this.body = card.body // the start of the first sentence that isn't a heading
    this.element = card.element
    this.pieces = []
    const texts = []
    let at = 0
    for (const [element, { text, hidden }] of card.pieces) {
      if (text === undefined) continue // the line with the source isn't part of the text
      if (!hidden) this.pieces.push({ element, at })
      at += lettersIn(text)
      texts.push(text)
    }
    this.text = texts.join("")
    this.letters = Array.from(this.text)
  }

  passage(start, end) {
    return { evidence_id: this.id, start, end, text: this.letters.slice(start, end).join("") }
  }

  // Returns the selected words as a passage, or null if they aren't in this chunk.
  selected(range) {
    if (!range.intersectsNode(this.element)) return null
    const words = wordsInRange(range, this.pieces, this.letters)
    return words && this.passage(words.start, words.end)
  }

  // Returns the ranges of the document in which a place is drawn.
  ranges({ start, end }) {
    const ranges = []
    for (const { element, at } of this.pieces) {
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
      let passed = at
      while (texts.nextNode()) {
        const own = Array.from(texts.currentNode.data)
        const from = Math.max(0, start - passed)
        const to = Math.min(own.length, end - passed)
        passed += own.length
        if (from >= to) continue
        const range = document.createRange()
        const before = own.slice(0, from).join("").length
        range.setStart(texts.currentNode, before)
        range.setEnd(texts.currentNode, before + own.slice(from, to).join("").length)
        ranges.push(range)
      }
    }
    return ranges
  }

  // The places of the sentences. They are only steps for the reader's cursor, so that the browser's
  // own division is good enough, and the server needn't send those of every chunk.
  get sentences() {
    if (this.steps) return this.steps
    this.steps = []
    let at = 0
    const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" })
    for (const { segment } of segmenter.segment(this.text)) {
      const start = at + lettersIn(segment) - lettersIn(segment.trimStart())
      if (/[\p{L}\p{N}]/u.test(segment))
        this.steps.push({ start, end: start + lettersIn(segment.trim()) })
      at += lettersIn(segment)
    }
    return this.steps
  }
}
