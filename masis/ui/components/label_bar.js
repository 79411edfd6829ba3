// The bar that labels the part of the answer, the reported issue or the chunk that the reader stands
// on: its label by a digit, and the passages of the evidence that support or contradict it. It is
// shown with the reasons beside the evidence. While it's open, it has the keys. What it gives is part
// of the draft at once, so closing it loses nothing.
const HIGHLIGHTS = { cursor: "masis-cursor", supports: "masis-for", contradicts: "masis-against" }
const MOST_NUMBERED = 9
const capitalized = text => text[0].toUpperCase() + text.slice(1)
const NOTHING_GIVEN = { label: "", evidence: [], right_reference: null, kind: null }
const placeOf = ({ evidence_id: id, start, end }) => `${id}:${start}-${end}`

// Returns a list of recorded labels, which Python has put in words.
const labelList = labels => {
  const list = make("ul", "reports")
  for (const { text, details } of labels) {
    const item = outsideText("li", "", "")
    item.append(make("div", "", text))
    for (const detail of details) item.append(make("div", "dim small", detail))
    list.append(item)
  }
  return list
}

class LabelBar {
  constructor(desk, signal) {
    this.desk = desk
    this.target = null
    this.asks = "" // "right": for the right reference; "other": for the chunk that is contradicted
    this.cursor = null // the sentences of the evidence under the cursor
    this.element = named("section", "label-bar", "", { tabindex: "-1", "aria-live": "off" })
    // A press must not clear the selection in the evidence before the click uses it
    this.element.onpointerdown = event => event.preventDefault()
    this.status = named("p", "bar-status", "", { role: "status", "aria-live": "polite" })
    // Capturing, because Streamlit has its own C (clear the cache) on the document
    window.addEventListener("keydown", event => this.onKeydown(event), { capture: true, signal })
    document.addEventListener("selectionchange", () => this.onSelection(), { signal })
  }

  // --- what can be labelled
  // ------------------------------------------------------------------------

  get words() {
    return this.desk.labels
  }

  get chunks() {
    return this.view.chunks
  }

  rowOf(target) {
    return this.words.rows.find(row => row.key === target.key)
  }

  // The parts that J and K go through: those of the answer and the reported issues, or the chunks.
  // Parts of another answer than the one shown are labelled in the list of the form.
  targets(kind = this.target?.kind) {
    if (kind === "evidence") return [...this.chunks.keys()].map(id => this.chunk(id))
    if (this.desk.isOtherAnswer()) return []
    return [
      ...this.words.rows.map(({ key, kind }) => ({ key, kind })),
      ...this.desk
        .reportedIssues()
        .map((_, place) => ({ key: `report:${place}`, kind: "report", place })),
    ]
  }

  chunk(id) {
    return { key: `evidence:${id}`, kind: "evidence", id }
  }

  // Returns what the draft has for the target, or null.
  given(target = this.target) {
    const { fields } = this.desk
    if (target.kind === "evidence") return fields.chunks[target.id] ?? null
    if (target.kind === "report") return this.desk.reportedIssues()[target.place] ?? null
    return fields.labels[this.words.base]?.[target.key] ?? null
  }

  offered() {
    return this.rowOf(this.target)?.offered ?? []
  }

  // --- opening and closing
  // -------------------------------------------------------------------------

  // Draws the controls that belong to an answer's evidence. The desk calls it after it has drawn the
  // answer.
  attach(view) {
    this.close()
    this.view = view
    this.texts = null
    this.cards = new Map()
    for (const [id, { element }] of view.chunks) {
      const group = named("div", "card-labels", "", { role: "group", "aria-label": `Label ${id}` })
      const buttons = this.words.choices.evidence.map(([code, text]) => {
        const choice = button("card-label", text, "", event => {
          event.stopPropagation() // a click on the card shows what relies on it
          this.labelChunk(id, code)
        })
        choice.dataset.code = code
        return choice
      })
      group.append(...buttons)
      element.append(group)
      this.cards.set(id, buttons)
    }
    // A click on a card answers the question for a chunk
    view.evidence.addEventListener(
      "click",
      event => {
        const id = event.target.closest(".card")?.dataset.id
        if (!this.asks || !id || selectedRangeIn(view.evidence)) return
        event.stopPropagation()
        this.choose(id)
      },
      { capture: true },
    )
    this.buildMissing()
  }

  // Opens the bar for the claim, reference, sentence or chunk with this key.
  open(key) {
    const { desk } = this
    const chunk = [...this.chunks.keys()].map(id => this.chunk(id)).find(each => each.key === key)
    if (chunk) {
      this.show(chunk)
      return
    }
    const targets = this.targets()
    const made = this.suggested
    const isSuggested = made?.selections === this.view.selections() && made?.key === key
    const suggested = isSuggested && `report:${made.place}`
    const target =
      targets.find(each => each.key === (suggested || key)) ?? (key ? null : this.firstOf(targets))
    if (target) {
      this.show(target)
      return
    }
    const why = desk.isOtherAnswer() ? "The form is about another answer." : this.words.nothing
    desk.showMessage(
      `${why} ${desk.isFinal ? "" : "M labels words. "}L labels the chunk that has the focus.`,
    )
  }

  // Returns the first part that the audit doubts and that has no label yet, or else the first one.
  firstOf(targets) {
    const isOpen = target => this.rowOf(target)?.doubtful && !this.given(target)
    return targets.find(isOpen) ?? targets[0]
  }

  // The next L without another choice opens a report that was just added.
  suggest(place) {
    const { view } = this
    this.suggested = { key: view.target(), selections: view.selections(), place }
  }

  show(target) {
    const { desk } = this
    if (desk.refuseIfClosed()) return
    if (!this.targets(target.kind).some(each => each.key === target.key)) {
      desk.showMessage("The form is about another answer, so no passage can be named here.")
      return
    }
    if (!this.target) this.cameFrom = desk.answerRoot.getRootNode().activeElement
    else if (target.key !== this.target.key) this.cameFrom = null
    this.target = target
    this.asks = ""
    this.cursor = null
    this.status.textContent = ""
    desk.reopen()
    desk.el.panel.classList.add("labelling")
    if (this.rowOf(target)) this.view.showTarget(target.key)
    this.view.reasons.prepend(this.element)
    this.markCard(target)
    desk.draw()
    const [passage] = [...(this.given()?.evidence ?? []), ...this.offered()]
    if (passage) this.reveal(passage, false)
    else if (target.kind === "evidence") this.view.reveal(this.chunks.get(target.id).element, true)
    this.element.focus({ preventScroll: true })
  }

  // Outlines the card of the chunk that is labelled.
  markCard(target) {
    for (const [id, { element }] of this.chunks)
      element.classList.toggle("labelling", target?.kind === "evidence" && target.id === id)
  }

  close() {
    if (!this.target) return
    this.markCard(null)
    const hadFocus = this.element.contains(this.element.getRootNode().activeElement)
    const { key } = this.target
    this.target = null
    this.element.remove()
    this.desk.el.panel.classList.remove("labelling")
    this.highlight()
    // A removed element takes the focus with it: the keys go on from where the reader was, or from
    // the part that was labelled last
    const from = this.cameFrom?.isConnected ? this.cameFrom : this.view.elementOf(key)
    if (hadFocus) from?.focus({ preventScroll: true })
  }

  // --- changes
  // -----------------------------------------------------------------------------

  // Changes what the draft has for the target, and says so.
  set(change, says) {
    const { desk, target } = this
    if (desk.refuseIfBusy()) return
    desk.reopen()
    if (target.kind === "report") {
      const reports = [...desk.reportedIssues()]
      reports[target.place] = this.complete({ ...reports[target.place], ...change })
      desk.setReported(reports, says)
      return
    }
    const given = this.given() ?? NOTHING_GIVEN
    desk.setLabel(target.key, change && this.complete({ ...given, ...change }), says)
  }

  // Removes a kind of support that has lost its supporting passage.
  complete(given) {
    const supports = given.evidence?.some(({ stance }) => stance === "supports")
    return supports ? given : { ...given, kind: null }
  }

  textOf(code) {
    return this.words.choices[this.target.kind].find(([known]) => known === code)?.[1] ?? code
  }

  label(code) {
    const { target } = this
    if (target.kind === "evidence") {
      this.labelChunk(target.id, code)
      return
    }
    this.set({ label: code }, `Labelled: ${this.textOf(code)}.`)
    const isWrong = target.kind === "reference" && this.words.wrong_references.includes(code)
    if (isWrong && this.chunks.size && !this.given()?.right_reference) this.ask("right")
  }

  // Labels a chunk, or removes its label if it has this one already.
  labelChunk(id, code) {
    const { desk } = this
    if (desk.refuseIfClosed()) return
    const isGiven = desk.fields.chunks[id]?.label === code
    if (code === "conflicting" && !isGiven) {
      if (this.target?.key !== `evidence:${id}`) this.show(this.chunk(id))
      this.ask("other")
      return
    }
    this.setChunk(id, isGiven ? null : { label: code, conflicts_with: null })
  }

  setChunk(id, given) {
    const { desk } = this
    if (desk.refuseIfBusy()) return
    desk.reopen()
    const chunks = { ...desk.fields.chunks }
    if (given) chunks[id] = given
    else delete chunks[id]
    const says = given
      ? `Labelled: ${id}, ${this.textOfChunkLabel(given)}.`
      : `Label on ${id} removed.`
    desk.change({ chunks }, { now: true, says })
  }

  textOfChunkLabel({ label, conflicts_with: other }) {
    if (other) return `contradicts ${other}`
    return this.words.choices.evidence.find(([code]) => code === label)[1]
  }

  // Asks for a chunk: the right reference, or the one that the labelled chunk contradicts.
  ask(what) {
    this.asks = what
    this.draw()
  }

  choose(id) {
    const { asks, target } = this
    if (asks === "other" && id === target.id) {
      this.say("A chunk can't contradict itself. Choose another one.")
      return
    }
    this.asks = ""
    if (asks === "other") this.setChunk(target.id, { label: "conflicting", conflicts_with: id })
    else
      this.set({ ...this.implied("contradicts"), right_reference: id }, `Right reference: ${id}.`)
    this.draw()
  }

  // Returns the label that the target gets with a passage of this stance, unless it has one.
  implied(stance) {
    const { kind } = this.target
    return kind === "report" || this.given()?.label
      ? {}
      : { label: this.words.implied[kind][stance] }
  }

  // Adds the passages that the audit names, and its verdict unless another label was chosen.
  confirm() {
    const row = this.rowOf(this.target)
    const offered = this.offered()
    if (!offered.length && !row?.right) {
      this.say("The audit names no passage here.")
      return
    }
    const given = this.given() ?? NOTHING_GIVEN
    const isKnown = this.words.choices[row.kind].some(([code]) => code === row.verdict)
    const label = given.label || (isKnown ? row.verdict : this.words.implied[row.kind].supports)
    const fresh = offered.filter(
      passage => !given.evidence.some(own => placeOf(own) === placeOf(passage)),
    )
    const needsRight = row.kind === "sentence" || this.words.wrong_references.includes(label)
    this.asks = ""
    this.set(
      {
        label,
        evidence: [...given.evidence, ...fresh].slice(0, this.words.most_passages),
        right_reference: given.right_reference ?? (needsRight ? row.right : null),
      },
      `Labelled: ${this.textOf(label)}, with the audit's ` +
        `${offered.length === 1 ? "passage" : "passages"}.`,
    )
  }

  // Names the selected words or the sentences under the cursor as a passage. The same key again
  // removes it.
  mark(stance) {
    if (this.target.kind === "evidence") {
      this.say("Passages are named by labels on the answer.")
      return
    }
    const passage = this.selected() ?? this.underCursor()
    if (!passage) {
      this.say("Select words in the evidence or step to a sentence with ↓, then press S or C.")
      return
    }
    if (stance === "contradicts" && this.subject() === "omission") {
      this.say("The answer has no words for what is missing. S names the passage that says it.")
      return
    }
    const evidence = this.given()?.evidence ?? []
    const same = evidence.find(own => placeOf(own) === placeOf(passage))
    const others = evidence.filter(own => own !== same)
    if (same?.stance === stance) {
      this.remove(same)
      return
    }
    if (others.length >= this.words.most_passages) {
      this.say(`A label names at most ${this.words.most_passages} passages.`)
      return
    }
    window.getSelection()?.removeAllRanges()
    this.set(
      { ...this.implied(stance), evidence: [...others, { ...passage, stance }] },
      withStop(`${passage.evidence_id} ${this.stanceText(stance)}: “${excerpt(passage.text)}”`),
    )
  }

  remove(passage) {
    const evidence = (this.given()?.evidence ?? []).filter(own => placeOf(own) !== placeOf(passage))
    this.set({ evidence }, withStop(`Removed: “${excerpt(passage.text)}”`))
  }

  removeLast() {
    const given = this.given()
    const under = this.underCursor()
    const last =
      given?.evidence?.find(own => under && placeOf(own) === placeOf(under)) ??
      given?.evidence?.at(-1)
    if (last) this.remove(last)
    else if (given?.right_reference) this.set({ right_reference: null }, "Right reference removed.")
    else this.say("No passage is named.")
  }

  clear() {
    this.asks = ""
    if (this.target.kind === "evidence") this.setChunk(this.target.id, null)
    else if (this.target.kind === "report") this.set(NOTHING_GIVEN, "Passages removed.")
    else this.set(null, "Label removed.")
  }

  setKind(kind) {
    const given = this.given()
    if (!given?.evidence?.some(({ stance }) => stance === "supports")) {
      this.say("Name a passage that supports the words first (S).")
      return
    }
    const [, text] = this.words.kinds.find(([code]) => code === kind)
    const isGiven = given.kind === kind
    this.set(
      { kind: isGiven ? null : kind },
      `Kind of support ${isGiven ? "removed" : `: ${text}`}.`,
    )
  }

  // Returns what the passages of a reported issue are about (`REPORT_STANCE` in words.py), or "" for
  // another target.
  subject(given = this.given()) {
    if (!given?.type) return ""
    const isOmission = type => type.name === given.type && type.omits
    if (this.desk.data.reporting.types.some(isOmission)) return "omission"
    return given.start === null ? "answer" : "words"
  }

  stanceText(stance, given = this.given()) {
    const texts = this.words.report_stances[this.subject(given)]
    return texts?.[stance] ?? this.words.stances[stance].text
  }

  // --- the evidence
  // --------------------------------------------------------------------------------

  textOfChunk(id) {
    this.texts ??= new Map()
    if (!this.texts.has(id) && this.chunks.has(id))
      this.texts.set(id, new ChunkText(id, this.chunks.get(id)))
    return this.texts.get(id)
  }

  selected() {
    const range = selectedRangeIn(this.view.evidence)
    if (!range) return null
    for (const id of this.chunks.keys()) {
      const passage = this.textOfChunk(id).selected(range)
      if (passage) return passage
    }
    return null
  }

  // Selected words take the place of the sentence under the cursor.
  onSelection() {
    const passage = this.target && this.target.kind !== "evidence" && this.selected()
    if (!passage) return
    this.cursor = null
    this.say(`Selected in ${passage.evidence_id}: “${excerpt(passage.text)}”`)
    this.highlight()
  }

  underCursor() {
    if (!this.cursor) return null
    const { id, from, to } = this.cursor
    const text = this.textOfChunk(id)
    return text.passage(text.sentences[from].start, text.sentences[to].end)
  }

  // Moves the cursor to the next or previous sentence of the evidence; `extends` keeps the present
  // one in it. It starts at the passage that is named, offered or highlighted, or else at the first
  // sentence of the reference's chunk that isn't a heading. For reported words, it starts at the
  // chunk that their sentence cites, because the highlights are about another part.
  step(step, extend) {
    window.getSelection()?.removeAllRanges()
    const ids = [...this.chunks.keys()].filter(id => this.textOfChunk(id).sentences.length)
    if (!ids.length) {
      this.say("The evidence has no text.")
      return
    }
    if (!this.cursor) this.cursor = this.firstPlace(ids)
    else if (extend) {
      const { id, from, to } = this.cursor
      const last = this.textOfChunk(id).sentences.length - 1
      this.cursor = { id, from, to: Math.min(Math.max(to + step, from), last) }
    } else {
      const { id, from, to } = this.cursor
      const next = (step > 0 ? to : from) + step
      const chunk =
        ids.indexOf(id) + (next < 0 ? -1 : next < this.textOfChunk(id).sentences.length ? 0 : 1)
      if (!ids[chunk]) {
        this.say(step > 0 ? "This is the last sentence." : "This is the first sentence.")
        return
      }
      const count = this.textOfChunk(ids[chunk]).sentences.length
      const at = ids[chunk] === id ? next : step > 0 ? 0 : count - 1
      this.cursor = { id: ids[chunk], from: at, to: at }
    }
    const { id, from, to } = this.cursor
    const passage = this.underCursor()
    const count = this.textOfChunk(id).sentences.length
    const which = from === to ? `sentence ${from + 1}` : `sentences ${from + 1} to ${to + 1}`
    this.say(`${id}, ${which} of ${count}: “${excerpt(passage.text)}”`)
    this.reveal(passage, true)
    this.highlight()
  }

  firstPlace(ids) {
    const [passage] = [...(this.given()?.evidence ?? []), ...this.offered()]
    const report = this.target.kind === "report" && this.given()
    const own = report && report.start !== null ? this.view.citedBy(report.start, report.end) : []
    const isOwnKnown = own.some(known => ids.includes(known))
    const highlighted = passage || isOwnKnown ? null : this.highlightedPlace()
    const cited = [...own, highlighted?.id ?? this.view.chosenCard()]
    const id = [passage?.evidence_id, ...cited].find(known => ids.includes(known)) ?? ids[0]
    const text = this.textOfChunk(id)
    const start = passage?.evidence_id === id ? passage.start : (highlighted?.start ?? text.body)
    const at = Math.max(
      0,
      text.sentences.findIndex(({ end }) => start < end),
    )
    return { id, from: at, to: at }
  }

  // Returns the place of the first passage that is highlighted because it contradicts or supports
  // the chosen part, or else resembles it.
  highlightedPlace() {
    for (const kind of ["lit-against", "lit", "lit-near"]) {
      const element = this.view.evidence.querySelector(`.card-text .${kind}`)
      const id = element?.closest(".card").dataset.id
      const piece = id && this.textOfChunk(id).pieces.find(own => own.element === element)
      if (piece) return { id, start: piece.at }
    }
    return null
  }

  // Scrolls to a passage, and unfolds its chunk.
  reveal(passage, turns) {
    const text = this.textOfChunk(passage.evidence_id)
    const start = text?.ranges(passage)[0]?.startContainer.parentElement
    if (start) this.view.reveal(start, turns)
  }

  // Highlights the passages and the cursor. The highlights of CSS leave the elements of the text
  // alone, which marks of their own would split. A browser without them (before 2025 Firefox) lists
  // the passages in the bar only.
  highlight() {
    if (!CSS.highlights) return
    for (const name of Object.values(HIGHLIGHTS)) CSS.highlights.delete(name)
    if (!this.target || this.target.kind === "evidence") return
    const ranges = { cursor: [], supports: [], contradicts: [] }
    const add = (name, passage) =>
      ranges[name].push(...(this.textOfChunk(passage.evidence_id)?.ranges(passage) ?? []))
    for (const passage of this.given()?.evidence ?? []) add(passage.stance, passage)
    if (this.cursor) add("cursor", this.underCursor())
    for (const [name, found] of Object.entries(ranges))
      if (found.length) CSS.highlights.set(HIGHLIGHTS[name], new Highlight(...found))
  }

  // --- keys
  // ----------------------------------------------------------------------------------------

  say(text) {
    this.status.textContent = text
  }

  onKeydown(event) {
    const { desk } = this
    const within = event.composedPath()[0]
    if (!this.target || !this.element.isConnected || event.ctrlKey || event.metaKey || event.altKey)
      return
    if (desk.issue.opened || desk.el.help.open || typesIn(within)) return
    if (document.querySelector(STREAMLIT.elements.dialog) || focusIsOutside(within, desk.root))
      return
    const isOnButton = within instanceof Element && within.closest("button, [role=button], summary")
    if (isOnButton && ["Enter", " "].includes(event.key)) return
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    const command = this.commandFor(key, event.shiftKey)
    if (!command) return // Tab, Page Down and others are the browser's
    event.preventDefault()
    event.stopImmediatePropagation()
    if (!event.repeat || key.startsWith("Arrow")) command()
  }

  commandFor(key, shiftKey) {
    const { desk } = this
    if (/^[1-9]$/.test(key)) return () => this.onDigit(Number(key))
    const commands = {
      0: () => this.clear(),
      y: () => this.confirm(),
      s: () => this.mark("supports"),
      c: () => this.mark("contradicts"),
      q: () => this.setKind("quotation"),
      p: () => this.setKind("paraphrase"),
      i: () => this.setKind("inference"),
      r: () => this.askRight(),
      ArrowDown: () => this.step(1, shiftKey),
      ArrowUp: () => this.step(-1, shiftKey),
      Backspace: () => this.removeLast(),
      Delete: () => this.removeLast(),
      j: () => this.goOn(1),
      k: () => this.goOn(-1),
      Enter: () => this.close(),
      Escape: () => (this.asks ? this.ask("") : this.close()),
      // keys of the page that lead to another part, or take back a step
      f: () => {
        desk.view.stepIssue(shiftKey ? -1 : 1)
        const target = this.targets().find(each => each.key === desk.view.target())
        if (target) this.show(target)
        else this.close()
      },
      g: () => desk.view.turn(),
      l: () => (shiftKey ? this.toggleMissing() : this.open(desk.view.target())),
      u: () => desk.undo(),
      h: () => desk.toggleSheet(),
      "?": () => desk.toggleSheet(),
    }
    if (commands[key]) return commands[key]
    if (/^[a-z]$/.test(key) || ["/", "[", "]"].includes(key))
      return () => this.say("The label bar is open. Press Enter to close it, then the key again.")
    return null
  }

  onDigit(number) {
    if (this.asks) {
      const id = [...this.chunks.keys()][number - 1]
      if (id) this.choose(id)
      return
    }
    const choice = this.words.choices[this.target.kind]?.[number - 1]
    if (choice) this.label(choice[0])
  }

  askRight() {
    if (this.target.kind === "evidence") return
    if (this.asks === "right" && this.cursor) this.choose(this.cursor.id)
    else this.ask(this.asks === "right" ? "" : "right")
  }

  goOn(step) {
    const targets = this.targets()
    const at = targets.findIndex(each => each.key === this.target.key)
    this.show(targets[(at + step + targets.length) % targets.length])
  }

  // --- drawing
  // -------------------------------------------------------------------------------------

  // Draws what depends on the draft. The desk calls it whenever the draft has changed.
  draw() {
    if (!this.view) return
    this.drawCards()
    this.drawMissing()
    if (!this.target) return
    if (!this.targets().some(each => each.key === this.target.key)) {
      this.close()
      return
    }
    if (isOutdated(this.element, [this.target, this.given(), this.asks, this.words.base])) {
      const root = this.element.getRootNode()
      const focused = this.element.contains(root.activeElement) && root.activeElement.dataset.name
      this.element.replaceChildren(...this.parts().filter(Boolean), this.status)
      // a redraw would move the focus of a button to the page
      if (focused) this.element.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus()
      else if (focused === undefined) this.element.focus({ preventScroll: true })
    }
    this.highlight()
  }

  parts() {
    const { target } = this
    const isChunk = target.kind === "evidence"
    return [
      this.head(),
      this.asks ? this.askedChunks() : this.labelChoices(),
      !isChunk && this.offer(),
      !isChunk && this.passageList(),
      !isChunk && this.tools(),
    ]
  }

  control(className, text, key, name, onclick) {
    const element = button(className, text, key, onclick)
    element.dataset.name = name
    return element
  }

  head() {
    const { target } = this
    const row = this.rowOf(target)
    const targets = this.targets()
    const report = target.kind === "report" && this.given()
    const text = report ? aboutWords(report) : row ? `“${row.text}”` : target.id
    const name =
      { evidence: "Chunk", report: "Reported issue" }[target.kind] ?? capitalized(target.kind)
    this.element.setAttribute("aria-label", `Label: ${name.toLowerCase()} ${text}`)
    const head = make("div", "bar-head")
    head.append(make("b", "", name), outsideText("span", "bar-words", text))
    if (row) head.append(pill(row.machine))
    const at = targets.findIndex(each => each.key === target.key)
    const steps = make("span", "bar-steps")
    const previous = this.control("bar-step", "‹", "K", "previous", () => this.goOn(-1))
    const next = this.control("bar-step", "›", "J", "next", () => this.goOn(1))
    previous.setAttribute("aria-label", "Previous part")
    next.setAttribute("aria-label", "Next part")
    steps.append(
      make("span", "dim", `${at + 1} of ${targets.length}`),
      previous,
      next,
      this.control("bar-step", "Done", "↵", "done", () => this.close()),
    )
    head.append(steps)
    return head
  }

  labelChoices() {
    const { target } = this
    const choices = this.words.choices[target.kind]
    if (!choices) return null
    const given = this.given()
    const row = named("div", "bar-row", "", { role: "group", "aria-label": "Label" })
    choices.forEach(([code, text, meaning], index) => {
      const isOther = code === given?.label && given.conflicts_with
      const choice = this.control(
        "bar-choice",
        isOther ? `contradicts ${given.conflicts_with}` : text,
        index + 1,
        `label-${code}`,
        () => this.label(code),
      )
      choice.title = meaning
      choice.setAttribute("aria-pressed", String(given?.label === code))
      row.append(choice)
    })
    if (given) row.append(this.control("bar-quiet", "No label", "0", "clear", () => this.clear()))
    return row
  }

  askedChunks() {
    const { asks, target } = this
    const title = asks === "other" ? `${target.id} contradicts` : "Right reference"
    const row = named("div", "bar-row", "", { role: "group", "aria-label": title })
    row.append(make("b", "", title))
    ;[...this.chunks.keys()].slice(0, MOST_NUMBERED).forEach((id, index) => {
      if (asks === "other" && id === target.id) return
      row.append(this.control("bar-choice", id, index + 1, `chunk-${id}`, () => this.choose(id)))
    })
    row.append(
      make("span", "dim", "or press a card"),
      this.control("bar-quiet", "Skip", "Esc", "skip", () => this.ask("")),
    )
    return row
  }

  offer() {
    const row = this.rowOf(this.target)
    const evidence = this.given()?.evidence ?? []
    const fresh = this.offered().filter(
      passage => !evidence.some(own => placeOf(own) === placeOf(passage)),
    )
    const needsRight = row?.right && !this.given()?.right_reference && row.kind !== "claim"
    if (!fresh.length && !needsRight) return null
    const box = named("div", "bar-offer", "", {
      role: "group",
      "aria-label": "The audit's passage",
    })
    for (const passage of fresh.slice(0, 3)) box.append(this.passageText(passage))
    if (fresh.length > 3) box.append(make("span", "dim", `and ${fresh.length - 3} more`))
    if (needsRight) box.append(make("span", "dim", `The audit would cite ${row.right}.`))
    const title = fresh.length > 1 ? "Confirm the audit's passages" : "Confirm the audit's passage"
    box.append(
      this.control("bar-choice strong", fresh.length ? title : "Confirm", "Y", "confirm", () =>
        this.confirm(),
      ),
    )
    return box
  }

  passageText(passage) {
    const { tone } = this.words.stances[passage.stance]
    const line = outsideText("div", `bar-passage tone-${tone}`, "")
    line.append(
      make("b", "", `${passage.evidence_id} ${this.stanceText(passage.stance)} `),
      make("span", "", `“${excerpt(passage.text)}”`),
    )
    return line
  }

  passageList() {
    const given = this.given()
    if (!given?.evidence?.length && !given?.right_reference) return null
    const list = named("ul", "bar-passages", "", { "aria-label": "Passages named" })
    given.evidence.forEach((passage, index) => {
      const item = make("li")
      const remove = this.control("bar-quiet", "Remove", "", `remove-${index}`, () =>
        this.remove(passage),
      )
      remove.setAttribute("aria-label", `Remove: ${passage.evidence_id} “${excerpt(passage.text)}”`)
      item.append(this.passageText(passage), remove)
      list.append(item)
    })
    if (given.right_reference) {
      const item = make("li")
      item.append(
        outsideText("div", "bar-passage", `Right reference: ${given.right_reference}`),
        this.control("bar-quiet", "Remove", "", "remove-right", () =>
          this.set({ right_reference: null }, "Right reference removed."),
        ),
      )
      list.append(item)
    }
    return list
  }

  tools() {
    const { kinds } = this.words
    const given = this.given()
    const isOmission = this.subject() === "omission"
    const row = named("div", "bar-row", "", { role: "group", "aria-label": "Passages" })
    const stanceControl = (stance, tone) =>
      this.control(
        `bar-choice tone-${tone}`,
        capitalized(this.stanceText(stance)),
        stance[0].toUpperCase(),
        stance,
        () => this.mark(stance),
      )
    row.append(
      make("span", "dim", "Select words or ↑ ↓:"),
      stanceControl("supports", "good"),
      ...(isOmission ? [] : [stanceControl("contradicts", "bad")]),
      this.control("bar-choice", "Right reference", "R", "right", () => this.askRight()),
    )
    if (!isOmission && given?.evidence?.some(({ stance }) => stance === "supports")) {
      row.append(make("span", "dim", "Kind of support:"))
      for (const [code, text, meaning] of kinds) {
        const choice = this.control("bar-choice", text, code[0].toUpperCase(), `kind-${code}`, () =>
          this.setKind(code),
        )
        choice.title = meaning
        choice.setAttribute("aria-pressed", String(given.kind === code))
        row.append(choice)
      }
    }
    return row
  }

  // Returns the passages of a label in the draft, one line each, for the lists of the form.
  lines(given) {
    const kind = this.words.kinds.find(([code]) => code === given?.kind)?.[1]
    return [
      ...(given?.evidence ?? []).map(
        passage =>
          `${passage.evidence_id} ${this.stanceText(passage.stance, given)}: ` +
          `“${excerpt(passage.text)}”`,
      ),
      ...(given?.right_reference ? [`right reference: ${given.right_reference}`] : []),
      ...(kind ? [`kind of support: ${kind}`] : []),
    ]
  }

  drawCards() {
    const { chunks } = this.desk.fields
    for (const [id, buttons] of this.cards) {
      const given = chunks[id]
      for (const choice of buttons) {
        const { code } = choice.dataset
        const isGiven = given?.label === code
        choice.setAttribute("aria-pressed", String(isGiven))
        choice.firstChild.textContent = this.textOfChunkLabel(isGiven ? given : { label: code })
      }
    }
  }

  // --- the missing passage
  // ----------------------------------------------------------------------------

  buildMissing() {
    const { desk, view } = this
    const { missing } = this.words
    const box = make("section", "missing")
    this.missing = named("textarea", "missing-note", "", {
      rows: "2",
      dir: "auto",
      maxlength: "4000",
      "aria-label": "What the missing passage would say (optional)",
      placeholder: "What it would say (optional)",
    })
    this.missing.oninput = () =>
      desk.change({ missing: wellFormed(this.missing.value) }, { typed: true })
    this.missing.onblur = () => desk.save()
    this.missing.onkeydown = event => {
      if (event.key !== "Escape") return
      event.stopPropagation()
      this.missing.blur()
    }
    this.missingButton = button("card-label", missing.text, "⇧ L", () => this.toggleMissing())
    this.missingButton.title = missing.meaning
    this.missingButton.setAttribute("aria-keyshortcuts", "Shift+L")
    box.append(this.missingButton, this.missing)
    view.evidence.append(box)
  }

  toggleMissing() {
    const { desk } = this
    if (desk.refuseIfClosed()) return
    if (desk.refuseIfBusy()) return
    desk.reopen()
    const isMissing = desk.fields.missing === null
    const { text } = this.words.missing
    desk.change(
      { missing: isMissing ? "" : null },
      { now: true, says: isMissing ? `Labelled: ${text.toLowerCase()}.` : "Label removed." },
    )
    if (isMissing) {
      this.view.reveal(this.missing, true)
      this.missing.focus()
    }
  }

  drawMissing() {
    const { missing } = this.desk.fields
    this.missingButton.setAttribute("aria-pressed", String(missing !== null))
    this.missing.hidden = missing === null
    if (missing !== null && this.missing.value !== missing) this.missing.value = missing
  }
}
