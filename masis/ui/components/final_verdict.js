// What the desk adds for an adjudication: a final verdict that can start from a reviewer's decision.
// The methods are the desk's own (desk.js).

// The fields of the form that a decision or own entries replace
const LABEL_FIELDS = ["labels", "chunks", "missing", "reported"]
const VERSION_FIELDS = ["verdict", "other", "note", "corrected", "taken", "wrote", "given"]
const versionOf = fields => pick([...VERSION_FIELDS, ...LABEL_FIELDS], fields)

const FINAL_VERDICT = {
  // Returns the reviewer's decision whose answer the verdict is about (`side` in final_desk.py).
  side() {
    const { sides } = this.data.final
    const { taken, about, verdict } = this.fields
    return (
      sides.find(side => side.name === taken) ??
      sides.find(side => side.name === about && side.verdict === verdict) ??
      sides.find(side => side.verdict === verdict) ??
      sides[0]
    )
  },

  // Returns the texts that were typed, rather than filled in from a decision.
  typedFields() {
    const { fields } = this
    return ["other", "note", "corrected"].filter(
      name => fields[name]?.trim() && fields[name] !== (fields.given[name] ?? ""),
    )
  },

  // Returns whether the labels differ from those that were filled in from a decision.
  hasOwnLabels() {
    const { sides, standing } = this.data.final
    const { wrote } = this.fields
    const author = [...sides, standing].find(made => made?.wrote === wrote) ?? this.data.blank
    return !isEqual(pick(LABEL_FIELDS, author), pick(LABEL_FIELDS, this.fields))
  },

  // Returns what a number key takes: the reviewers' decisions, then the texts that were replaced.
  versions() {
    const isOwn = this.typedFields().length || this.hasOwnLabels()
    const own = this.fields.aside.length && isOwn ? [this.fields] : []
    const names = ["Mine", "Mine, earlier"]
    const mine = [...own, ...this.fields.aside].slice(0, names.length)
    return [
      ...this.data.final.sides,
      ...mine.map((version, index) => ({ ...versionOf(version), name: names[index], lines: [] })),
    ]
  },

  // Puts a decision or own texts into the form. Typed texts that it replaces are kept aside.
  take(version) {
    if (this.refuseIfBusy()) return
    const { fields } = this
    const labelsOf = entries => pick(LABEL_FIELDS, entries)
    const isLost =
      this.typedFields().some(name => version[name] !== fields[name]) ||
      (this.hasOwnLabels() && !isEqual(labelsOf(version), labelsOf(fields)))
    const aside = [
      ...(isLost ? [versionOf(fields)] : []),
      ...fields.aside.filter(kept => !isEqual(versionOf(kept), versionOf(version))),
    ].slice(0, 2)
    this.restored = "" // the form has the taken decision now, not the draft
    this.load({ ...versionOf(version), aside }, isLost ? this.keptMessage() : "")
    const { labels: onParts, chunks } = this.fields
    this.el.labels.open = Boolean(Object.keys({ ...onParts, ...chunks }).length)
    this.showSides()
  },

  load(fields, says = "") {
    this.change(fields, { now: true, says })
    this.fill(this.fields)
    this.draw()
  },

  // Names the number key that brings back the typed text that was just replaced.
  keptMessage() {
    const place = this.data.final.sides.length + 1
    return `Your entries are kept as “Mine”. Press ${place} to take them back.`
  },

  // Returns the texts that a chosen verdict changes. A reason and a note that were filled in from a
  // decision explain its verdict, so another verdict starts without them, and choosing the
  // decision's own verdict fills them in again.
  textsFor(verdict) {
    const { fields } = this
    const author = this.data.final.sides.find(side => side.name === fields.wrote)
    if (!author) return {}
    const isAuthors = author.verdict === verdict
    return Object.fromEntries(
      ["other", "note"]
        .filter(name => fields.given[name])
        .filter(name => fields[name] === (isAuthors ? "" : fields.given[name]))
        .map(name => [name, isAuthors ? fields.given[name] : ""]),
    )
  },

  // Scrolls the reviewers' decisions above the docked editor of the correction, which would cover
  // them. The editor has the answer's text.
  showSides() {
    if (!this.dock) return
    const { top, bottom } = this.sides.getBoundingClientRect()
    const end = window.innerHeight - this.dock
    const distance = Math.min(bottom - end, top - HEADER_PX)
    if (bottom > end) document.querySelector(STREAMLIT.elements.main).scrollBy({ top: distance })
  },

  // Returns the texts that a correction can start from, with their names.
  starts() {
    const { sides, standing } = this.data.final
    const corrections = [...sides, ...(standing ? [{ ...standing, name: standing.taken }] : [])]
    return [
      ["the original", this.base()],
      ...corrections.filter(each => each.corrected).map(each => [`${each.name}’s`, each.corrected]),
    ]
  },

  // Starts the correction again: from `text`, or from the text after the present one.
  restartCorrection(text) {
    if (this.fields.verdict !== "override" || !this.isOpen()) return
    const texts = this.starts().map(([, start]) => start)
    const present = texts.indexOf(this.fields.corrected ?? this.base())
    const corrected = text ?? texts[(present + 1) % texts.length]
    this.take({
      ...versionOf(this.fields),
      corrected: corrected === this.base() ? null : corrected,
      given: { ...this.fields.given, corrected },
    })
  },

  // Opens the form with the recorded verdict to change it, without its reason, or keeps it. Entries
  // that were made before somebody else settled the case are shown instead.
  toggleChange() {
    const { final, blank } = this.data
    if (!final.can || final.open || this.refuseIfBusy()) return
    if (this.fields.changing) {
      this.load(blank)
      return
    }
    if (this.hasInput()) {
      this.load({ changing: true })
      return
    }
    const start = final.standing?.verdict === "escalate" ? null : final.standing
    this.load({ ...blank, ...(start && { ...start, other: "" }), changing: true })
  },

  // Focuses a text. One that somebody else wrote is selected, so that typing replaces it.
  focusText(name) {
    if (!this.isOpen() || !this.fields.verdict) return
    const field = this.el[name]
    field.focus()
    if (field.value && field.value === this.fields.given[name]) field.select()
  },

  // Types a usual reason into its empty field. execCommand is deprecated, but what it inserts can
  // be undone with Ctrl+Z like typed text; a value that is set cannot.
  insertUsual(item, event) {
    if (!item || this.el.other.value) return
    event.preventDefault()
    document.execCommand("insertText", false, item.textContent)
  },

  // Returns the title of a text, with its author or that it is optional.
  titleOf(title, name, optional) {
    const { wrote, given, [name]: text } = this.fields
    if (!text?.trim() || !given[name] || !wrote) return optional ? `${title} (optional)` : title
    return text === given[name]
      ? `${title} (${wrote}’s, unchanged)`
      : `${title} (changed from ${wrote}’s)`
  },

  settledMessage() {
    return this.data.final.can
      ? "This case has a final verdict. Press M to change it."
      : (this.data.notice?.text ?? "")
  },

  verdictName(code) {
    return this.data.verdicts.find(verdict => verdict.code === code)?.text ?? ""
  },

  // Makes the fields for the cause of the disagreement and for the sentence that it may propose.
  buildCause() {
    const { el } = this
    const block = make("div", "block")
    el.cause = named("select", "text", undefined, { id: "cause" })
    el.cause.onchange = () => this.change({ cause: el.cause.value || null }, { now: true })
    el.sentenceLabel = named("label", "label", "Sentence for the rubric (optional)", {
      for: "rubric-sentence",
    })
    el.sentence = named("textarea", "text", "", {
      id: "rubric-sentence",
      rows: "2",
      dir: "auto",
      placeholder: "How such cases are decided from now on",
    })
    el.sentence.oninput = () =>
      this.change({ sentence: wellFormed(el.sentence.value) }, { typed: true })
    block.append(
      named("label", "label", "Why they differ (optional)", { for: "cause" }),
      el.cause,
      el.sentenceLabel,
      el.sentence,
    )
    return block
  },

  drawCause() {
    const { el, fields } = this
    const { causes, longest_sentence: longest } = this.data.final
    el.causeBlock.hidden = !fields.verdict
    if (el.cause.options.length !== causes.length + 1)
      el.cause.replaceChildren(
        new Option("Not given", ""),
        ...causes.map(({ code, text, meaning }) => new Option(`${text}: ${meaning}`, code)),
      )
    el.cause.value = fields.cause ?? ""
    el.sentence.maxLength = longest
    const proposes = causes.some(({ code, proposes: can }) => can && code === fields.cause)
    el.sentence.hidden = el.sentenceLabel.hidden = !proposes
  },

  isOptional() {
    return this.data.final.optional.includes(this.fields.verdict)
  },

  // Returns the words of the button that records the verdict, or what is missing.
  finalWords() {
    const { verdict, corrected, other } = this.fields
    if (verdict === "override" && corrected === null) return "Nothing is changed yet"
    if (verdict && !other.trim() && !this.isOptional()) return "A reason is needed"
    const { serious, decided: about } = this.side()
    const open = serious ? ` with ${plural(serious, "serious issue")} open` : ""
    const words = {
      approve: `Approve ${about || "the original answer"}${open}`,
      override: "Record the corrected answer",
      reject: "Reject the answer",
      escalate: "Escalate the case",
    }
    return words[verdict] ?? "Record"
  },

  drawFinal() {
    const { el, fields } = this
    const { final, standing } = this.data
    el.title.textContent = `Final verdict${standing?.settled ? " (settled)" : ""}`
    el.change.hidden = !final.can || final.open
    const change = standing?.settled ? "Change it" : "Decide it"
    el.change.firstChild.textContent = fields.changing ? "Keep it" : change
    el.reasonBlock.hidden = el.noteBlock.hidden = !fields.verdict
    el.reasons.hidden = el.reasonHint.hidden = true
    el.other.hidden = false
    el.reasonTitle.textContent = this.titleOf("Reason", "other", this.isOptional())
    el.other.setAttribute("aria-label", el.reasonTitle.textContent)
    el.other.maxLength = 2000
    el.other.placeholder = "Type it, or press the number of one below"
    el.noteTitle.textContent = `${this.titleOf("Note", "note", true)} `
    const usual = final.reasons[fields.verdict] ?? []
    if (
      !isEqual(
        [...el.usual.children].map(item => item.textContent),
        usual,
      )
    )
      el.usual.replaceChildren(...usual.map(text => make("li", "", text)))
    this.drawCause()
    this.drawStarts()
    const approved = final.sides.filter(side => side.verdict === fields.verdict && side.decided)
    const answers = [...new Map(approved.toReversed().map(side => [side.decided, side.name]))]
    el.answers.hidden = answers.length < 2 || Boolean(fields.taken)
    el.answers.replaceChildren(...answers.map(([text, name]) => new Option(text, name)))
    el.answers.value = this.side().name
    this.sides.replaceChildren(...this.versions().map((version, at) => this.drawSide(version, at)))
  },

  drawStarts() {
    const { el, fields } = this
    const text = fields.corrected ?? this.base()
    const given = fields.given.corrected || this.base()
    const starts = this.starts()
    const origin = starts.find(([, start]) => start === given)?.[0]
    const state = text === given ? `${origin}, unchanged` : `changed from ${origin}`
    el.correctedTitle.textContent = `Corrected answer${origin ? ` (${state})` : ""} `
    el.starts.replaceChildren(
      make("span", "dim small", "Start again with"),
      ...starts.map(([name, start]) => {
        const again = button("quiet", name, "", () => this.restartCorrection(start))
        again.disabled = start === text
        return again
      }),
      named("kbd", "", "B", { "aria-hidden": "true" }),
    )
  },

  // Returns the card of a reviewer's decision or of own texts, below the answer.
  drawSide(version, index) {
    const { name, lines } = version
    const side = make("article", "side")
    const head = make("div", "side-head")
    head.append(make("b", "", name))
    if (version.label) head.append(pill(version.label))
    if (version.decided) head.append(make("span", "dim", version.decided))
    if (this.isOpen()) {
      const isTaken = isEqual(versionOf(version), versionOf(this.fields))
      const words = lines.length ? `${name}'s decision` : name.toLowerCase()
      const title = isTaken ? "In the form" : `Take ${words}`
      head.append(button("take-side", title, index + 1, () => this.take(version)))
    }
    side.append(head)
    const texts = [version.other, version.note, version.corrected]
    for (const line of lines.length ? lines : texts.filter(Boolean))
      side.append(outsideText("p", "side-line", line))
    const { first, before } = version
    if (!lines.length && version.verdict)
      head.append(make("span", "dim", this.verdictName(version.verdict)))
    const addChanges = (title, changes) => {
      if (!changes?.length) return
      const row = outsideText("p", "side-line changed", "")
      row.append(make("span", "dim", `${title}: `), ...renderDiff(changes))
      side.append(row)
    }
    addChanges(before === null ? "Corrected answer" : "Changes to the answer", version.changes)
    addChanges(`Changes to ${first}'s correction`, first && version.first_changes)
    return side
  },
}
