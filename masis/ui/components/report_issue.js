// The form for an issue that the audit missed: in words selected in the answer, in a sentence, or
// in the whole answer. The entries are part of the draft from the first key, so that a reload
// reopens the form.
const TONE_OF = { critical: "bad", high: "bad", medium: "warn", low: "calm" }
const DEFAULT_SEVERITY = "medium"
const EXCERPT = 160
const excerpt = text => {
  const words = text.replace(/\s+/gu, " ").trim()
  return words.length > EXCERPT ? `${words.slice(0, EXCERPT).trimEnd()}…` : words
}
const aboutWords = report =>
  report.start === null ? "the whole answer" : `“${excerpt(report.text)}”`
// Ends a sentence of a message, unless the words quoted last have ended it: “It is old.”
const withStop = text => (/[.!?…]”$/u.test(text) ? text : `${text}.`)

class IssueForm {
  constructor(panel) {
    this.panel = panel
    const el = (this.el = {})
    el.dialog = named("dialog", "sheet report", "", { "aria-labelledby": "report-title" })
    el.title = named("h2", "", "", { id: "report-title" })
    el.sentenceBlock = make("div", "block")
    el.sentence = named("select", "text", undefined, { id: "report-sentence" })
    el.sentenceBlock.append(
      named("label", "label", "Sentence", { for: "report-sentence" }),
      el.sentence,
    )
    el.words = outsideText("blockquote", "report-words", "")
    el.types = named("div", "reasons", "", { role: "radiogroup", "aria-label": "Type" })
    el.severities = named("div", "severities", "", { role: "radiogroup", "aria-label": "Severity" })
    el.note = named("textarea", "text", "", {
      id: "report-note",
      rows: "2",
      dir: "auto",
      maxlength: "4000",
      placeholder: "What is wrong, and where to see it",
    })
    el.problem = named("p", "problem", "", { role: "alert" })
    el.save = button("primary", "Report this issue", "Ctrl ↵", () => this.save())
    el.passages = button("quiet", "Report it and name passages", "", () => this.save(true))
    el.cancel = button("quiet", "Cancel", "Esc", () => this.cancel())
    const block = (title, control) => {
      const element = make("div", "block")
      element.append(title, control)
      return element
    }
    const foot = make("div", "row")
    foot.append(el.save, el.passages, el.cancel)
    el.dialog.append(
      el.title,
      el.sentenceBlock,
      el.words,
      block(make("div", "label", "Type"), el.types),
      block(make("div", "label", "Severity"), el.severities),
      block(named("label", "label", "What is wrong (optional)", { for: "report-note" }), el.note),
      el.problem,
      foot,
    )
    el.sentence.onchange = () => {
      this.choose(Number(el.sentence.value))
      this.keep()
    }
    el.note.oninput = () => {
      this.report.note = wellFormed(el.note.value)
      this.keep()
    }
    el.note.onblur = () => panel.save()
    el.dialog.oncancel = event => {
      event.preventDefault()
      this.cancel()
    }
    el.dialog.onclose = () => {
      if (!el.dialog.open) panel.keepReport(null)
    }
    el.dialog.onkeydown = event => {
      event.stopPropagation()
      this.onKeydown(event)
    } // the page's keys are off meanwhile
  }

  get opened() {
    return this.el.dialog.open
  }

  // Opens the form with what is known of the report. With `sentences`, the reviewer chooses one of
  // them first. The one at the offset `at` in the answer is proposed.
  open(report, sentences = [], at = 0) {
    const { el, panel } = this
    if (this.opened) return
    this.answer = panel.digest
    this.report = {
      start: null,
      end: null,
      text: "",
      type: "",
      severity: DEFAULT_SEVERITY,
      note: "",
      evidence: [],
      right_reference: null,
      kind: null,
      place: null,
      ...report,
    }
    el.sentenceBlock.hidden = !sentences.length
    el.sentence.replaceChildren(
      ...sentences.map(({ text }, index) => new Option(excerpt(text), index)),
    )
    this.sentences = sentences
    if (sentences.length) {
      const proposed = Math.max(
        0,
        sentences.findIndex(({ end }) => at < end),
      )
      el.sentence.value = String(proposed)
      this.choose(proposed)
    }
    const whole = this.report.start === null
    el.title.textContent =
      this.report.place !== null
        ? "Edit the reported issue"
        : whole
          ? "Report an issue with the whole answer"
          : sentences.length
            ? "Report an issue in a sentence"
            : "Report an issue in these words"
    el.save.firstChild.textContent =
      this.report.place === null ? "Report this issue" : "Save changes"
    el.passages.hidden = this.report.place !== null
    el.note.value = this.report.note
    el.problem.textContent = ""
    this.draw()
    // The width of the decision form, which is right of answer and evidence
    const beside = window.innerWidth - panel.root.getBoundingClientRect().left
    el.dialog.style.setProperty("--beside", `${beside}px`)
    showDialog(el.dialog)
    panel.view.offerLabel() // takes its button away
    const first = sentences.length
      ? el.sentence
      : (el.types.querySelector("input:checked") ?? el.types.querySelector("input"))
    first.focus()
  }

  // A field of a closed dialog keeps the focus until the page is drawn again, and would get the
  // keys pressed before.
  close() {
    this.el.dialog.close()
    const focused = this.el.dialog.getRootNode().activeElement
    if (this.el.dialog.contains(focused)) focused.blur()
  }

  // Removes the report from the draft at once. The dialog's close event is fired later, and if the
  // page were drawn before it, the form would open again.
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
    if (isOutdated(el.types, types))
      el.types.replaceChildren(
        ...types.map((type, index) => this.makeChoice("type", type.name, type.guidance, index)),
      )
    if (!el.severities.children.length)
      el.severities.append(...severities.map(severity => this.makeChoice("severity", severity, "")))
    for (const input of el.dialog.querySelectorAll("input[type=radio]")) {
      input.checked = input.value === report[input.name]
      input.parentElement.classList.toggle("chosen", input.checked)
    }
  }

  makeChoice(name, value, guidance, index) {
    const label = make("label", "reason")
    const input = named("input", "", undefined, { type: "radio", name, value })
    input.onchange = () => this.set(name, value)
    label.append(input)
    if (index < 9) label.append(named("kbd", "", String(index + 1), { "aria-hidden": "true" }))
    label.append(make("span", "", value))
    if (guidance) label.append(make("span", "dim small guidance", guidance))
    return label
  }

  set(name, value) {
    this.report[name] = value
    this.el.problem.textContent = ""
    this.draw()
    this.keep()
  }

  keep() {
    this.panel.keepReport({ ...this.report, answer: this.answer })
  }

  save(namesPassages = false) {
    const { el, report, panel } = this
    const missing = ["type", "severity"].find(
      name => !el.dialog.querySelector(`input[name=${name}]:checked`),
    )
    if (missing) {
      el.problem.textContent = `Choose a ${missing}.`
      el.dialog.querySelector(`input[name=${missing}]`).focus()
      return
    }
    const { start, end, text, type, severity, note, evidence, right_reference, kind } = report
    const { place } = report
    const { answer } = this
    this.close()
    const entries = { start, end, text, type, severity, evidence, right_reference, kind }
    panel.addReport({ ...entries, note: note.trim() }, place, answer, namesPassages)
  }

  onKeydown(event) {
    const within = event.composedPath()[0]
    if (
      event.key === "Enter" &&
      !event.repeat &&
      (event.ctrlKey || event.metaKey || within.tagName === "INPUT")
    ) {
      event.preventDefault()
      this.save()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    // Digits choose the type also in the list of sentences, where the browser would search for them
    if (typesIn(within) && within !== this.el.sentence) return
    const type = this.panel.data.reporting.types[Number(event.key) - 1]
    if (/^[1-9]$/.test(event.key) && type) {
      event.preventDefault()
      this.set("type", type.name)
      const severities = this.el.severities
      ;(severities.querySelector("input:checked") ?? severities.querySelector("input")).focus()
    }
  }
}
