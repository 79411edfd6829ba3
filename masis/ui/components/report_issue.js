// The small form for an issue that the audit missed: in the words chosen in the answer, in a sentence, or in the whole
// of it. What is filled in is part of the draft from the first key on, so that a reload brings the form back.
const TONE_OF = { critical: "bad", high: "bad", medium: "warn", low: "calm" }
const DEFAULT_SEVERITY = "medium"
const EXCERPT = 160
const excerpt = text => {
  const words = text.replace(/\s+/gu, " ").trim()
  return words.length > EXCERPT ? `${words.slice(0, EXCERPT).trimEnd()}…` : words
}
const aboutWords = report => (report.start === null ? "the whole answer" : `“${excerpt(report.text)}”`)

class IssueForm {
  constructor(panel) {
    this.panel = panel
    const el = (this.el = {})
    el.dialog = named("dialog", "sheet report", "", { "aria-labelledby": "report-title" })
    el.title = named("h2", "", "", { id: "report-title" })
    el.sentenceBlock = make("div", "block")
    el.sentence = named("select", "text", undefined, { id: "report-sentence" })
    el.sentenceBlock.append(named("label", "label", "Sentence", { for: "report-sentence" }), el.sentence)
    el.words = named("blockquote", "report-words", "", { dir: "auto" })
    el.types = named("div", "reasons", "", { role: "radiogroup", "aria-label": "Type" })
    el.severities = named("div", "severities", "", { role: "radiogroup", "aria-label": "Severity" })
    el.note = named("textarea", "text", "", { id: "report-note", rows: "2", dir: "auto", maxlength: "4000", placeholder: "And where it can be seen" })
    el.problem = named("p", "problem", "", { role: "alert" })
    el.save = button("primary", "Add this label", "Ctrl ↵", () => this.save())
    el.cancel = button("quiet", "Cancel", "Esc", () => this.cancel())
    const block = (title, part) => {
      const made = make("div", "block")
      made.append(title, part)
      return made
    }
    const foot = make("div", "row")
    foot.append(el.save, el.cancel)
    el.dialog.append(el.title, el.sentenceBlock, el.words, block(make("div", "label", "Type"), el.types),
      block(make("div", "label", "Severity"), el.severities),
      block(named("label", "label", "What is wrong (optional)", { for: "report-note" }), el.note), el.problem, foot)
    el.sentence.onchange = () => { this.choose(Number(el.sentence.value)); this.keep() }
    el.note.oninput = () => { this.report.note = wellFormed(el.note.value); this.keep() }
    el.note.onblur = () => panel.flush()
    el.dialog.oncancel = event => { event.preventDefault(); this.cancel() }
    el.dialog.onclose = () => { if (!el.dialog.open) panel.keepReport(null) }
    el.dialog.onkeydown = event => { event.stopPropagation(); this.key(event) } // the page's keys wait while it is open
  }

  get opened() { return this.el.dialog.open }

  // A report as far as it is known; with `sentences`, the words are still to be chosen among those of the answer.
  open(report, sentences = []) {
    const { el, panel } = this
    if (this.opened) return
    this.answer = panel.data.shown.digest
    this.report = { start: null, end: null, text: "", type: "", severity: DEFAULT_SEVERITY, note: "", place: null, ...report }
    el.sentenceBlock.hidden = !sentences.length
    el.sentence.replaceChildren(...sentences.map((each, index) => new Option(`${index + 1}. ${excerpt(each.text)}`, index)))
    this.sentences = sentences
    if (sentences.length) this.choose(0)
    const whole = this.report.start === null
    el.title.textContent = this.report.place !== null ? "Edit the reported issue" : whole ? "Report an issue of the whole answer" : sentences.length ? "Label a sentence" : "Label these words"
    el.save.firstChild.textContent = this.report.place !== null ? "Save changes" : whole ? "Report this issue" : "Add this label"
    el.note.value = this.report.note
    el.problem.textContent = ""
    this.draw()
    el.dialog.showModal()
    const first = sentences.length ? el.sentence : el.types.querySelector("input:checked") ?? el.types.querySelector("input")
    first.focus()
  }

  // A field of a closed dialog has the focus until the page is drawn next, and would take the key that comes before.
  close() {
    this.el.dialog.close()
    const focused = this.el.dialog.getRootNode().activeElement
    if (this.el.dialog.contains(focused)) focused.blur()
  }

  // At once: the dialog says that it is closed a moment later, and a page drawn in between would open it again.
  cancel() {
    this.close()
    this.panel.keepReport(null)
  }

  choose(index) {
    this.report = { ...this.report, ...this.sentences[index] }
    this.draw()
  }

  draw() {
    const { el, panel, report } = this
    el.words.hidden = report.start === null
    el.words.textContent = report.text
    const { types, severities } = panel.data.reporting
    const offered = JSON.stringify(types)
    if (el.types.dataset.drawn !== offered) {
      el.types.dataset.drawn = offered
      el.types.replaceChildren(...types.map((each, index) => this.choice("type", each.name, each.guidance, index)))
    }
    if (!el.severities.children.length) el.severities.append(...severities.map(each => this.choice("severity", each, "")))
    for (const input of el.dialog.querySelectorAll("input[type=radio]")) {
      input.checked = input.value === report[input.name]
      input.parentElement.classList.toggle("chosen", input.checked)
    }
  }

  choice(name, value, guidance, index) {
    const made = make("label", "reason")
    const input = named("input", "", undefined, { type: "radio", name, value })
    input.onchange = () => this.set(name, value)
    made.append(input)
    if (index < 9) made.append(named("kbd", "", String(index + 1), { "aria-hidden": "true" }))
    made.append(make("span", "", value))
    if (guidance) made.append(make("span", "dim small guidance", guidance))
    return made
  }

  set(name, value) {
    this.report[name] = value
    this.el.problem.textContent = ""
    this.draw()
    this.keep()
  }

  keep() { this.panel.keepReport({ ...this.report, answer: this.answer }) }

  save() {
    const { el, report, panel } = this
    const missing = ["type", "severity"].find(name => !el.dialog.querySelector(`input[name=${name}]:checked`))
    if (missing) {
      el.problem.textContent = `Choose a ${missing}.`
      el.dialog.querySelector(`input[name=${missing}]`).focus()
      return
    }
    const { place, start, end, text, type, severity, note } = report
    const { answer } = this
    this.close()
    panel.addReport({ start, end, text, type, severity, note: note.trim() }, place, answer)
  }

  key(event) {
    const within = event.composedPath()[0]
    if (event.key === "Enter" && !event.repeat && (event.ctrlKey || event.metaKey || within.tagName === "INPUT")) {
      event.preventDefault()
      this.save()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typesIn(within)) return
    const type = this.panel.data.reporting.types[Number(event.key) - 1]
    if (/^[1-9]$/.test(event.key) && type) {
      event.preventDefault()
      this.set("type", type.name)
      const severities = this.el.severities
      ;(severities.querySelector("input:checked") ?? severities.querySelector("input")).focus()
    }
  }
}
