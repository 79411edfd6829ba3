// The decision form. Typed text stays on the page and in the browser's storage until the server
// confirms it. It's posted after a pause in typing or when a field loses the focus, so that a
// killed server, browser or connection loses nothing.
const TYPING_PAUSE_MS = 600
const ANSWER_TIMEOUT_MS = 4000
// A key pressed sooner was meant for the case before, and must not decide this one
const MIN_READING_MS = 400
const DOUBLE_PRESS_MS = 2000 // a second press on Submit within this time is a double click
const ADVANCE_KEY = "masis-advance"
const GLYPH = { approve: "✓", override: "✎", reject: "✕", escalate: "↗" }
const LETTER = { approve: "A", override: "O", reject: "X", escalate: "E" }
// Returns whether a control elsewhere on the page has the focus and so gets the keys. The marks of
// the answer and the reasons in the head are only read, so they don't count.
const focusIsOutside = (element, root) => {
  if (!(element instanceof Element) || root.contains(element)) return false
  if (element.getRootNode().host?.closest(".st-key-review, .st-key-head")) return false
  return Boolean(
    element.closest(
      "a, button, input, select, textarea, summary, " +
        "[role=button], [role=radio], [role=option], [contenteditable]",
    ),
  )
}
const panels = new WeakMap()
// Two panels may be on the page for a moment while one case replaces another. Only the newest
// handles keys.
let activePanel = null

const isEqual = (left, right) => JSON.stringify(left) === JSON.stringify(right)
const FIELD_NAMES = {
  // in the order in which an undone step is named
  reported: "the reported issue",
  labels: "the label",
  reason: "the reason",
  corrected: "the correction",
  verdict: "the verdict",
  note: "the note",
  other: "the reason",
}
const renderDiff = pieces =>
  pieces.map(([kind, words]) => make({ out: "del", in: "ins" }[kind] ?? "span", "", words))

class Panel {
  constructor(root) {
    this.root = root
    this.mount = Math.random().toString(36).slice(2)
    this.seq = 0
    this.sends = 0
    this.submittedAt = -Infinity
    this.dirty = false
    this.fields = {}
    this.steps = []
    this.build()
    activePanel = this
    this.column = root.getRootNode().host?.closest(STREAMLIT.elements.column)
    const pane = this.column?.querySelector(`:scope > ${STREAMLIT.elements.container}`)
    this.stopFitting = pane ? fitToWindow(pane) : () => {}
    this.drawnAt = performance.now()
    this.listeners = new AbortController()
    const listen = (target, name, handler) =>
      target.addEventListener(name, handler, { signal: this.listeners.signal })
    const listenIfActive = (name, handler) =>
      listen(window, name, event => {
        if (this.isActive()) handler(event.detail)
      })
    listen(window, "masis-shown", () => {
      if (this.data) this.drawEditor()
      this.drawReady()
    })
    listenIfActive("masis-label", words => this.labelWords(words))
    listenIfActive("masis-report-edit", index => this.editReport(index))
    listenIfActive("masis-label-target", target => this.labelTarget(target))
    listenIfActive("masis-insert", point => this.insert(point))
    listen(document, "keydown", event => this.onKeydown(event))
    listen(window, "pagehide", () => this.flush())
    listen(document, "visibilitychange", () => this.flush())
    this.resizes = new ResizeObserver(() => this.placeEditor())
    if (this.column?.previousElementSibling)
      this.resizes.observe(this.column.previousElementSibling)
    this.resizes.observe(this.el.editor) // it grows with its text
  }

  // The newest panel is active; once it has gone, the one that is left takes over.
  isActive() {
    return (activePanel ??= this) === this
  }

  leave() {
    if (activePanel === this) activePanel = null
    this.stopFitting()
    this.listeners.abort()
    this.resizes.disconnect()
    this.el.editor.hidden = true
    this.placeEditor()
    clearTimeout(this.answerTimer)
    clearTimeout(this.readyTimer)
    this.flush()
  }

  // Applies the data of a run of the page.
  update({ data, setStateValue, setTriggerValue }) {
    const first = this.data === undefined
    const before = this.data
    this.data = data
    this.isLeaving = false
    clearTimeout(this.answerTimer)
    this.setState = setStateValue
    this.trigger = setTriggerValue
    if (data.acks?.[this.mount] >= this.seq) this.markSaved()
    // The decision is recorded
    const done = Boolean(this.sentToken) && data.done.includes(this.sentToken)
    if (done) {
      this.markSaved()
      this.sentToken = null
      this.steps = []
    }
    const otherForm = !first && (before.form !== data.form || before.reviewer !== data.reviewer)
    const filled = first || done || (otherForm && !this.dirty)
    if (filled) this.fill(data.draft)
    if (first) this.recall()
    else if (otherForm && this.dirty) this.postSoon()
    if (data.handled && data.handled.mount === this.mount && data.handled.sends === this.sends)
      this.isSubmitting = false
    if (done) this.isSubmitting = false
    // the server that got the decision is gone; the token keeps the next one from recording it
    // twice
    if (this.isSubmitting && otherForm)
      setTimeout(() => {
        this.trigger("submit", this.submitted)
        this.expectAnswer()
      })
    else if (this.isSubmitting) this.expectAnswer()
    const message = data.message?.id ?? null
    // a restarted server opens a new form on the same answer: the question about serious issues
    // stays open
    const otherAnswer =
      first || before.shown.place !== data.shown.place || before.shown.digest !== data.shown.digest
    if (otherAnswer || done || this.fields.verdict !== "approve") this.confirming = null
    if (first) {
      this.drawnAt = performance.now()
      // the next case starts at its question, however far the one before was scrolled
      if (window.masisCase !== undefined && window.masisCase !== data.case)
        document.querySelector(STREAMLIT.elements.main)?.scrollTo({ top: 0 })
      window.masisCase = data.case
    }
    const isNewMessage = message !== this.message
    if (isNewMessage && message) this.localMessage = null
    this.message = message
    this.draw()
    this.drawReady()
    if (isNewMessage && data.message?.where) this.focusField(data.message.where)
    if (done) this.el.next.focus({ preventScroll: true })
    // reopen a report that was being written when the page was reloaded
    if (filled && this.fields.reporting?.answer === data.shown.digest)
      this.issue.open(this.fields.reporting)
  }

  markSaved() {
    clearTimeout(this.saveTimer)
    this.saveTimer = null
    this.dirty = false
    try {
      localStorage.removeItem(this.storageKey())
    } catch {
      /* storage is forbidden */
    }
  }

  storageKey() {
    return `masis-draft:${this.data.case}`
  }

  // Restores a draft that this browser stored because the server hadn't confirmed it.
  recall() {
    let stored = null
    try {
      stored = JSON.parse(localStorage.getItem(this.storageKey()) ?? "null")
    } catch {
      return
    }
    if (!stored || typeof stored.fields !== "object" || this.data.done.includes(stored.token))
      return
    if (stored.reviewer && this.data.reviewer && stored.reviewer !== this.data.reviewer) return
    if (this.data.saved_at && stored.at <= Date.parse(this.data.saved_at)) return
    this.fill(stored.fields)
    this.change({}, { now: true })
  }

  fill(fields) {
    this.fields = { ...this.data.blank, ...fields }
    this.el.other.value = this.fields.other
    this.el.note.value = this.fields.note
    this.el.corrected.value = this.fields.corrected ?? this.data.answer
    this.drawnAnswer = this.data.answer
  }

  // Changes some fields for the reviewer and saves the draft, `now` or after a pause in typing. It
  // replaces the message with `says`. A change is a step that U takes back, except `typed` text,
  // for which the browser has its own undo. The undo of `inserted` text removes only that text,
  // even if the text around it has been changed since.
  change(fields, { now = false, says = "", typed = false, inserted = "" } = {}) {
    const before = Object.fromEntries(
      Object.keys(fields)
        .filter(name => name !== "reporting")
        .map(name => [name, this.fields[name]]),
    )
    if (!typed && Object.keys(before).some(name => !isEqual(before[name], fields[name])))
      this.steps.push({ before, after: fields, inserted })
    this.fields = { ...this.fields, ...fields }
    this.localMessage = says
      ? { text: says, tone: "calm", before: true }
      : this.localMessage?.stays && typed
        ? this.localMessage
        : null
    this.seq += 1
    this.dirty = true
    try {
      const stored = {
        at: Date.now(),
        reviewer: this.data.reviewer,
        token: this.data.form,
        fields: this.fields,
      }
      localStorage.setItem(this.storageKey(), JSON.stringify(stored))
    } catch {
      /* full or forbidden: the server will have it in a moment */
    }
    this.postSoon(now)
    this.draw()
    if (typed) this.scrollAboveFooter() // the field may have grown with its text
  }

  postSoon(now) {
    clearTimeout(this.saveTimer)
    this.saveTimer = setTimeout(() => this.flush(), now ? 0 : TYPING_PAUSE_MS)
  }

  flush() {
    if (!this.saveTimer) return
    clearTimeout(this.saveTimer)
    this.saveTimer = null
    this.setState("draft", {
      case: this.data.case,
      token: this.data.form,
      mount: this.mount,
      seq: this.seq,
      fields: this.fields,
    })
    this.expectAnswer()
  }

  // A restarted server doesn't know this panel and ignores its posts until the whole page has run
  // once. If no answer arrives, "masis-wake" asks the frame for that run (reviewer.js).
  expectAnswer() {
    clearTimeout(this.answerTimer)
    this.answerTimer = setTimeout(() => {
      if (!this.root.isConnected) return
      this.isLeaving = false
      this.drawReady()
      const { elements, state } = STREAMLIT
      const app = document.querySelector(elements.app)?.dataset
      if (app?.[state.connection] === state.connected && app[state.script] === state.idle) {
        window.dispatchEvent(new Event("masis-wake"))
        // Another run of the page may have ended the run that was to record the decision. The token
        // makes it safe to send it again.
        if (this.isSubmitting) this.trigger("submit", this.submitted)
      }
      this.expectAnswer()
    }, ANSWER_TIMEOUT_MS)
  }

  // Returns whether the page shows the answer that this form is about.
  isAnswerShown() {
    return (
      window.masisShown?.place === this.data?.shown.place &&
      window.masisShown.digest === this.data.shown.digest
    )
  }

  // Returns the milliseconds until a reader can have seen what is shown. Keys don't decide before
  // that.
  readingTimeLeft() {
    if (!this.isAnswerShown()) return MIN_READING_MS
    const since = Math.max(this.drawnAt, window.masisShown.at, this.confirming?.at ?? 0)
    return Math.max(0, since + MIN_READING_MS - performance.now())
  }

  // Hides a submitted correction while the page already shows the next case and this form is about
  // to be replaced.
  drawEditor() {
    const gone = (this.isSubmitting || this.isLeaving) && !this.isAnswerShown()
    this.el.editor.hidden = this.fields.verdict !== "override" || !this.isOpen() || gone
    this.placeEditor()
  }

  drawReady() {
    clearTimeout(this.readyTimer)
    const left = this.readingTimeLeft()
    this.root.firstChild.dataset.ready = String(left === 0 && !this.isSubmitting && !this.isLeaving)
    if (left && this.isAnswerShown()) this.readyTimer = setTimeout(() => this.drawReady(), left)
  }

  opensNextCase() {
    try {
      return localStorage.getItem(ADVANCE_KEY) !== "off"
    } catch {
      return true
    }
  }

  // Chooses a verdict. "Approve" is recorded at once if the case has no decision yet.
  onVerdictKey(verdict) {
    if (this.refuseIfBlocked()) return
    const decided = Boolean(this.data.standing)
    this.choose(verdict)
    if (verdict === "approve" && !decided) {
      this.submit()
      return
    }
    this.scrollIntoView()
    if (verdict !== "override") return
    const { corrected } = this.el
    corrected.focus({ preventScroll: true })
    corrected.scrollIntoView({ block: "nearest" })
    this.showIssue()
  }

  // Shows an issue in the answer, with its evidence in view: the one with this number, or the one
  // gone to last, or the most severe. Selects its words in the correction if they are still there.
  // For a missing point, the caret is put where the point would be inserted.
  showIssue(number = null) {
    const { corrected } = this.el
    // The view of the answer fills it in (answer_view.js)
    const request = { number, start: null, end: null, after: null }
    window.dispatchEvent(new CustomEvent("masis-correct", { detail: request }))
    if (request.after !== null) {
      const { end } = this.insertionPoint(request.after)
      corrected.focus({ preventScroll: true })
      selectRange(corrected, [end, end])
      return
    }
    if (request.end === null) return
    const range = findWords(corrected.value, this.data.answer, request)
    if (!range) {
      this.showMessage("You've already changed the words of this issue.")
      return
    }
    corrected.focus({ preventScroll: true })
    selectRange(corrected, range)
  }

  // Returns where a missing point is inserted: after the sentence that cites the same evidence, or
  // else after the sentence with the caret, or else at the end.
  insertionPoint(after) {
    const { corrected } = this.el
    const text = this.fields.corrected ?? this.data.answer
    const index = after ? text.lastIndexOf(after) : -1
    if (index >= 0) {
      // of a long sentence, the last 60 characters without the word that this cuts
      const shown = after.length > 60 ? `…${after.slice(-60).replace(/^\S*\s/, "")}` : after
      return { end: index + after.length, where: `after “${shown}”` }
    }
    const stop = this.hasCaret ? text.slice(corrected.selectionEnd).search(/[.!?](\s|$)/) : -1
    if (stop < 0) return { end: text.trimEnd().length, where: "at the end of the correction" }
    return { end: corrected.selectionEnd + stop + 1, where: "after the sentence with the caret" }
  }

  insert({ text, says, after }) {
    if (this.refuseIfBlocked()) return
    const before = this.fields.corrected ?? this.data.answer
    if (containsStatement(before, says)) {
      this.showMessage("The correction already says this.")
      return
    }
    const { end, where } = this.insertionPoint(after)
    const corrected = `${before.slice(0, end)} ${text}${before.slice(end)}`
    this.reopened = true
    this.confirming = null
    this.el.corrected.value = corrected
    this.change(
      { verdict: "override", corrected },
      { now: true, says: `Inserted ${where}: ${text}`, inserted: ` ${text}` },
    )
    selectRange(this.el.corrected, [end, end + 1 + text.length])
  }

  // If the form can't decide now, shows why and returns true.
  refuseIfBlocked() {
    const reason = this.isClosed()
      ? this.data.notice.text
      : this.isSubmitting
        ? "Your last decision is still being recorded. Press again in a moment."
        : !this.isAnswerShown()
          ? "The answer on the page is changing. Read the new one, then decide."
          : this.readingTimeLeft() && this.confirming
            ? "Nothing was recorded. Read the serious issues listed here, then press again."
            : this.readingTimeLeft()
              ? "Nothing was recorded, because this answer has only just appeared. " +
                "Read it, then press again."
              : ""
    if (!reason) return false
    this.showMessage(reason, "warn")
    // While they type on, reviewers would believe that the verdict was chosen
    this.localMessage.stays = true
    return true
  }

  // Shows a message, with an undo button if `before` is set.
  showMessage(text, tone = "calm", before = false) {
    this.localMessage = { text, tone, before }
    this.draw()
  }

  // Takes back the newest step that is still in effect. Returns false if there is none.
  stepBack() {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      const { before, after, inserted, discards } = step
      const corrected = this.fields.corrected ?? ""
      const around =
        inserted && !isEqual(corrected, after.corrected) && corrected.includes(inserted)
      const back = around
        ? { corrected: corrected.replace(inserted, () => "") }
        : Object.fromEntries(
            Object.entries(before).filter(
              ([name, value]) =>
                isEqual(this.fields[name], after[name]) && !isEqual(value, after[name]),
            ),
          )
      const name = Object.keys(FIELD_NAMES).find(field => field in back)
      if (!name) continue
      if (back.corrected === this.data.answer) back.corrected = null
      this.fill({ ...this.fields, ...back })
      this.reopened = true
      this.change({}, { now: true })
      this.showMessage(
        "Undone: " +
          `${discards ? "the draft is back" : inserted ? "the insertion" : FIELD_NAMES[name]}.`,
      )
      return true
    }
    return false
  }

  // Scrolls to the form when a key opens it: in a narrow window it's below the answer.
  scrollIntoView() {
    const { top, bottom } = this.el.verdicts.getBoundingClientRect()
    if (top < HEADER_PX || bottom > window.innerHeight * 0.6)
      this.el.title.scrollIntoView({ block: "start" })
  }

  choose(verdict) {
    if (!this.isOpen()) this.reopened = true
    if (this.fields.verdict !== verdict) this.confirming = null
    this.change({ verdict }, { now: true })
  }

  // The form is open unless the case has a decision and nothing new has been entered.
  isOpen() {
    return !this.isClosed() && this.hasStarted()
  }

  // Returns whether other people have settled the case or hold it, so that you can't decide it
  // here.
  isClosed() {
    return Boolean(this.data.notice?.closed)
  }

  // Returns whether anything has been entered.
  hasInput() {
    return JSON.stringify(this.fields) !== JSON.stringify(this.data.blank)
  }

  hasStarted() {
    return (
      !this.data.standing ||
      this.reopened ||
      this.dirty ||
      Boolean(
        this.fields.verdict ||
        this.fields.note ||
        this.fields.corrected !== null ||
        this.reportedIssues().length,
      )
    )
  }

  // Returns the issues that the reviewer reports in the answer shown.
  reportedIssues() {
    return this.fields.reported[this.data.shown.digest] ?? []
  }

  // Opens the form for an issue in the words selected in the answer. Without a selection, it offers
  // the sentences.
  labelWords(words) {
    if (!this.data.answer.trim() || !this.isAnswerShown() || this.isSubmitting) return
    const request = { words: words ?? null }
    if (!words) window.dispatchEvent(new CustomEvent("masis-words", { detail: request }))
    if (request.words) {
      this.issue.open(request.words)
      return
    }
    // Python counts code points and JavaScript UTF-16 units: Array.from() splits into code points
    const letters = Array.from(this.data.answer)
    const sentences = this.data.reporting.sentences.map(([start, end]) => ({
      start,
      end,
      text: letters.slice(start, end).join(""),
    }))
    this.issue.open({}, sentences)
  }

  // Focuses the label of the claim or reference chosen in the answer, or else the first label.
  labelTarget(target) {
    if (!this.data.labels.rows.length) return
    this.reopened = true
    this.draw()
    this.el.labels.open = true
    const selects = [...this.el.labelRows.querySelectorAll("select")]
    const select = selects.find(option => option.dataset.key === target) ?? selects[0]
    select.focus({ preventScroll: true })
    select.closest(".label-row").scrollIntoView({ block: "nearest" })
  }

  reportWhole() {
    if (this.data.answer.trim() && this.isAnswerShown() && !this.isSubmitting) this.issue.open({})
  }

  editReport(place) {
    const report = this.reportedIssues()[place]
    if (report && !this.isSubmitting) this.issue.open({ ...report, place })
  }

  keepReport(reporting) {
    if (!reporting && !this.fields.reporting) return
    this.change({ reporting }, { now: !reporting, typed: true })
  }

  addReport(report, place, answer) {
    if (answer !== this.data.shown.digest) {
      this.showMessage(
        "The issue wasn't added, because the answer on the page has changed.",
        "warn",
      )
      return
    }
    const issues = [...this.reportedIssues()]
    if (place === null) issues.push(report)
    else issues[place] = report
    this.setReported(
      issues,
      `${place === null ? "Labelled" : "Changed"}: ${report.type}, ${report.severity}, ` +
        `${aboutWords(report)}.`,
    )
    window.dispatchEvent(new Event("masis-labelled"))
  }

  setReported(issues, says) {
    this.reopened = true
    const { [this.data.shown.digest]: _, ...others } = this.fields.reported
    // `reporting` is cleared here: once the report is added, closing the dialog must not save or
    // clear it as a draft
    this.change(
      {
        reporting: null,
        reported: issues.length ? { ...others, [this.data.shown.digest]: issues } : others,
      },
      { now: true, says },
    )
  }

  // Joins the two spaces that a deleted sentence leaves: "... [1].  Women ..." becomes "... [1].
  // Women ...". An answer that has double spaces itself is left alone.
  joinSpaces() {
    const { corrected } = this.fields
    const doubled = new RegExp(`(?<=[.!?]|${MARKER_END}) {2,}(?=\\S)`, "g")
    const text = corrected?.replace(doubled, " ") ?? null
    if (text === corrected || /\S {2,}\S/.test(this.data.answer)) return
    this.el.corrected.value = text
    this.change({ corrected: text === this.data.answer ? null : text }, { typed: true })
  }

  submit() {
    if (this.refuseIfBlocked()) return
    this.joinSpaces()
    if (!this.isOpen()) {
      // the message of a double click's second press must not replace the confirmation of the first
      if (performance.now() - this.submittedAt > DOUBLE_PRESS_MS)
        this.showMessage("This case has a decision. Choose a verdict to decide again.", "warn")
      return
    }
    if (!this.data.reviewer && !this.nameConfirmed && this.fields.verdict) {
      this.showMessage(
        this.reviewerName()
          ? `You decide as ${this.reviewerName()}. Press Enter to confirm, or type another name.`
          : "Type your name. It's recorded with every decision.",
        "warn",
      )
      this.el.name.focus()
      this.el.name.select()
      return
    }
    if (this.fields.verdict === "approve" && this.data.serious.length) {
      if (!this.confirming) {
        this.confirming = {
          at: performance.now(),
          ids: this.data.serious.flatMap(issue => issue.ids),
        }
        this.change({}, { now: true })
        this.drawReady()
        this.el.ask.scrollIntoView({ block: "nearest" })
        return
      }
    }
    this.localMessage = null
    clearTimeout(this.saveTimer)
    this.saveTimer = null
    this.isSubmitting = true
    this.submittedAt = performance.now()
    this.sends += 1
    this.sentToken = this.data.form
    this.reopened = false
    this.submitted = {
      case: this.data.case,
      token: this.data.form,
      seen: this.data.seen,
      mount: this.mount,
      seq: this.seq,
      sends: this.sends,
      reviewer: this.reviewerName(),
      fields: this.fields,
      shown: { place: window.masisShown.place, digest: window.masisShown.digest },
      acknowledged: this.confirming?.ids ?? [],
      advance: this.opensNextCase(),
    }
    this.trigger("submit", this.submitted)
    this.expectAnswer()
    this.draw()
    this.drawReady()
  }

  reviewerName() {
    return this.data.reviewer || wellFormed(this.el.name.value).trim()
  }

  // Opens the next case that needs review, or else the next one of the list, or else the whole
  // queue.
  openNext() {
    this.leaveCase(
      this.data.go.waiting ? "next" : this.data.message?.narrowed ? "whole_queue" : "forward",
    )
  }

  leaveCase(kind) {
    if (this.confirming) this.withdraw()
    this.isLeaving = true
    this.drawReady()
    this.sendAction(kind)
  }

  discard() {
    this.reopened = false
    this.change(this.data.blank)
    this.fill({})
    if (this.steps.length) this.steps.at(-1).discards = true
    this.markSaved()
    this.sendAction("discard", { seq: this.seq, mount: this.mount })
    this.showMessage("The draft was discarded.", "calm", true)
  }

  sendAction(kind, more) {
    this.flush()
    this.trigger("act", {
      kind,
      case: this.data.case,
      reviewer: this.reviewerName(),
      at: Date.now(),
      ...more,
    })
    this.expectAnswer()
  }

  // Takes back an approval that waits for confirmation because of serious issues.
  withdraw() {
    this.confirming = null
    this.change(
      { verdict: this.data.blank.verdict, reason: this.data.blank.reason },
      { now: true, typed: true },
    )
    this.showMessage("Not approved. Nothing was recorded.")
  }

  // Undoes the newest step in the form, or else the decision on this case, or else the previous
  // decision, which belongs to another case and is named first. Typed text isn't a step: only
  // "Discard draft" removes it.
  undo() {
    if (this.confirming) this.withdraw()
    else if (this.stepBack()) return
    else if (this.isOpen() && this.hasInput())
      this.showMessage(
        "Undo doesn't remove typed text or an earlier draft. Press “Discard draft” to remove it.",
      )
    else if (this.data.standing?.undoable) this.sendAction("undo", { entry: this.data.standing.id })
    else if (this.data.standing && this.data.notice) this.showMessage(this.data.notice.text)
    else if (this.data.previous && this.offersPrevious) this.leaveCase("undo_previous")
    else if (this.data.previous) {
      this.localMessage = this.data.message = null
      this.draw()
    } else this.showMessage("There is nothing to undo.")
  }

  takeRevision() {
    if (this.refuseIfBlocked()) return
    this.reopened = true
    this.sendAction("take_revision")
  }

  focusField(field) {
    const target = {
      corrected: this.el.corrected,
      other: this.el.other,
      reviewer: this.el.name,
      reported: this.el.report.querySelector("button"),
      verdict: this.el.verdicts.querySelector("input"),
      reason:
        this.el.reasons.querySelector(".suggested input") ?? this.el.reasons.querySelector("input"),
    }[field]
    target?.focus()
  }

  onKeydown(event) {
    if (!this.root.isConnected) {
      this.leave()
      return
    }
    if (!this.isActive() || this.isLeaving) return
    if (this.issue.opened) return
    const within = event.composedPath()[0]
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      if (focusIsOutside(within, this.root)) return
      event.preventDefault()
      if (!event.repeat) this.submit()
      return
    }
    const isOutside = focusIsOutside(within, this.root)
    const dialog = document.querySelector(STREAMLIT.elements.dialog)
    // Esc takes the focus from a field or another control, so that the next keys are the form's
    if (
      event.key === "Escape" &&
      !dialog &&
      (isOutside || (this.root.contains(within) && typesIn(within)))
    ) {
      within.blur()
      return
    }
    if (event.key === "Escape" && !dialog && (this.confirming || this.localMessage)) {
      if (this.confirming) this.withdraw()
      else {
        this.localMessage = null
        this.draw()
      }
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typesIn(within) || dialog)
      return
    if (isOutside) {
      // every letter but D: D belongs to a button of the page, which acts wherever the focus is
      if (/^[a-ce-z]$/i.test(event.key))
        this.showMessage(
          "Keys are off while another control has the focus. Press Esc, then the key again.",
          "warn",
        )
      return
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    // a recorded correction is shown first; V switches between it and the answer it corrects
    // (answer_view.js)
    if (key === "v" && !window.dispatchEvent(new Event("masis-version", { cancelable: true }))) {
      event.preventDefault()
      return
    }
    if (
      !this.data.revision &&
      (["v", "d", "[", "]"].includes(key) || (key === "w" && event.shiftKey))
    ) {
      event.preventDefault()
      this.showMessage("This answer has no revision.")
      return
    }
    const command = this.commandFor(key, event.shiftKey)
    if (command) {
      event.preventDefault()
      command()
      return
    }
    if (/^[1-9]$/.test(key) && this.isOpen()) {
      const offered = this.data.reasons[this.fields.verdict] ?? []
      if (offered[key - 1]) {
        event.preventDefault()
        this.chooseReason(offered[key - 1].code, true)
      }
    }
  }

  commandFor(key, shiftKey) {
    const verdict = { a: "approve", o: "override", x: "reject", e: "escalate" }[key]
    return verdict
      ? () => this.onVerdictKey(verdict)
      : {
          v: () => this.sendAction("switch"),
          u: () => this.undo(),
          n: () => this.openNext(),
          s: () => this.leaveCase("skip"),
          j: () => this.leaveCase("forward"),
          k: () => this.leaveCase("back"),
          "/": () => {
            window.masisSearch = true
            this.leaveCase("search")
          },
          f: () =>
            window.dispatchEvent(new CustomEvent("masis-issue", { detail: shiftKey ? -1 : 1 })),
          "[": () => this.sendAction("iteration", { step: -1 }),
          "]": () => this.sendAction("iteration", { step: 1 }),
          w: () => (shiftKey ? this.takeRevision() : this.onVerdictKey("override")),
          t: () => {
            this.reopened = true
            this.draw()
            this.el.note.focus()
          },
          l: () => {
            const request = { target: null }
            window.dispatchEvent(new CustomEvent("masis-target", { detail: request }))
            this.labelTarget(request.target)
          },
          i: () => {
            const request = { button: null }
            window.dispatchEvent(new CustomEvent("masis-insert-chosen", { detail: request }))
            if (!request.button)
              this.showMessage("Nothing to insert. Press F to go to a missing point.")
          },
          m: () => (shiftKey ? this.reportWhole() : this.labelWords()),
          g: () => window.dispatchEvent(new Event("masis-turn")),
          h: () => this.toggleSheet(),
          "?": () => this.toggleSheet(),
        }[key]
  }

  chooseReason(code, byKey) {
    const before = this.fields.reason
    const offered = Object.fromEntries(
      (this.data.reasons[this.fields.verdict] ?? []).map(reason => [reason.code, reason.text]),
    )
    const replaced = offered[before] && before !== code
    const asksForText = code === "other" && byKey
    const says = replaced ? `Reason: “${offered[code]}” in place of “${offered[before]}”.` : ""
    this.change(
      { reason: code },
      {
        now: true,
        says: asksForText ? `${says} Type it in your own words, then press Esc.`.trim() : says,
      },
    )
    if (asksForText) this.el.other.focus()
  }

  toggleSheet() {
    fillKeySheet(this.el.help, this.data.keys)
    if (this.el.help.open) this.el.help.close()
    else this.el.help.showModal()
  }

  // Puts the editor of the correction below answer and evidence, so that both stay in view with
  // their marks. In a narrow window, where the form is below the answer, the editor stays in the
  // form.
  placeEditor() {
    const { editor } = this.el
    const place = this.column?.previousElementSibling?.getBoundingClientRect()
    const docked = Boolean(
      place &&
      editor.isConnected &&
      !editor.hidden &&
      this.column.getBoundingClientRect().left >= place.right,
    )
    editor.classList.toggle("docked", docked)
    if (docked !== (editor.popover === "manual")) editor.popover = docked ? "manual" : null
    if (docked) {
      editor.style.left = `${place.left}px`
      editor.style.width = `${place.width}px`
      // A popover is in the top layer, above the whole page
      if (!editor.matches(":popover-open")) editor.showPopover()
    }
    const covered = docked ? editor.offsetHeight : 0
    if ((window.masisDock ?? 0) === covered) return
    window.masisDock = covered
    document.documentElement.style.setProperty("--masis-dock", `${covered}px`)
    // So that the covered part can be scrolled into view
    this.column.closest(".st-key-review")?.style.setProperty("padding-bottom", `${covered}px`)
    window.dispatchEvent(new Event("resize"))
  }

  build() {
    const el = (this.el = {})
    const panel = named("section", "panel", "", { "aria-label": "Decision" })
    el.standing = make("div", "standing")
    el.message = named("div", "message", "", { role: "status", "aria-live": "polite" })
    el.title = make("h2", "", "Decision")
    el.about = make("p", "about dim small")
    el.take = button("quiet take", "", "⇧ W", () => this.takeRevision())
    el.take.setAttribute("aria-keyshortcuts", "Shift+W")
    el.notice = named("div", "notice", "", { role: "note" })
    el.form = make("div", "form")
    el.restored = make("p", "restored dim")
    el.verdicts = named("div", "verdicts", "", { role: "radiogroup", "aria-label": "Verdict" })
    el.reasons = named("div", "reasons", "", { role: "radiogroup", "aria-label": "Reason" })
    el.reasonBlock = make("div", "block")
    const reasonHead = make("div", "row")
    el.reasonTitle = make("div", "label", "Reason")
    reasonHead.append(el.reasonTitle, make("span", "dim small while-typing", "Esc, then a number"))
    el.other = named("input", "text", "", {
      type: "text",
      maxlength: "300",
      "aria-label": "Reason in your own words",
      placeholder: "In your own words",
    })
    el.reasonHint = make("p", "dim small")
    el.reasonBlock.append(reasonHead, el.reasonHint, el.reasons, el.other)
    el.editor = make("div", "block editor")
    const editorHead = make("div", "row")
    const editorLabel = named("label", "label", "Corrected answer ", { for: "corrected" })
    editorLabel.append(named("kbd", "", "W", { "aria-hidden": "true" }))
    el.again = button("quiet", "Restore the answer shown", "", () => {
      this.el.corrected.value = this.data.answer
      this.change({ corrected: null }, { now: true })
    })
    editorHead.append(editorLabel, el.again)
    el.corrected = named("textarea", "text serif", "", {
      id: "corrected",
      rows: "14",
      dir: "auto",
      spellcheck: "true",
    })
    el.check = named("div", "row check", "", {
      "aria-live": "polite",
      "aria-label": "Citations after the correction",
      role: "group",
    })
    el.citationProblems = make("div", "check")
    el.editor.append(editorHead, el.corrected, el.citationProblems)
    const noteBlock = make("div", "block")
    el.note = named("textarea", "text", "", {
      id: "note",
      rows: "2",
      dir: "auto",
      maxlength: "4000",
      placeholder: "What the next person should know",
    })
    const noteLabel = named("label", "label", "Note ", { for: "note" })
    noteLabel.append(named("kbd", "", "T", { "aria-hidden": "true" }))
    noteBlock.append(noteLabel, el.note)
    el.report = named("section", "block", "", { "aria-label": "Issues you report" })
    el.reportList = make("ul", "reports")
    const reportButtons = make("div", "row")
    const whole = button("quiet", "Label the whole answer", "⇧ M", () => this.reportWhole())
    whole.setAttribute("aria-keyshortcuts", "Shift+M")
    reportButtons.append(
      button("quiet", "Label words or a sentence", "M", () => this.labelWords()),
      whole,
    )
    el.reportTitle = make("div", "label")
    el.report.append(el.reportTitle, el.reportList, reportButtons)
    el.labels = make("details", "labels block")
    el.labelsTitle = make("summary", "label")
    el.labelRows = make("div", "label-rows")
    el.labels.append(el.labelsTitle, el.labelRows)
    el.nameBlock = make("div", "block name-block")
    el.name = named("input", "text", "", {
      id: "name",
      type: "text",
      maxlength: "80",
      autocomplete: "name",
      placeholder: "Asked once, recorded with every decision",
    })
    el.nameBlock.append(named("label", "label", "Your name", { for: "name" }), el.name)
    el.ask = named("div", "ask message tone-warn", "", { role: "alert" })
    el.submit = button("primary", "Submit", "Ctrl ↵", () => this.submit())
    el.discard = button("quiet", "Discard draft", "", () => this.discard())
    el.saved = named("span", "saved dim", "", { "aria-live": "off" })
    el.deciding = make("div", "row")
    el.deciding.append(el.submit, el.discard, el.saved)
    el.foot = make("div", "foot")
    el.foot.append(el.check, el.deciding, el.message)
    el.form.append(
      el.restored,
      el.editor,
      el.reasonBlock,
      noteBlock,
      el.labels,
      el.report,
      el.nameBlock,
      el.ask,
    )
    el.advance = named("input", "", undefined, { type: "checkbox" })
    el.advance.checked = this.opensNextCase()
    el.advance.onchange = () => {
      try {
        localStorage.setItem(ADVANCE_KEY, el.advance.checked ? "on" : "off")
      } catch {
        /* storage is forbidden */
      }
    }
    const advance = make("label", "dim advance")
    advance.append(el.advance, make("span", "", "Open the next case after a decision"))
    el.history = make("details", "history")
    el.go = named("nav", "go", "", { "aria-label": "Cases of this queue" })
    el.back = button("step", "Previous", "K", () => this.leaveCase("back"))
    el.skip = button("step", "Skip", "S", () => this.leaveCase("skip"))
    el.next = button("step strong", "Next", "N", () => this.openNext())
    el.waiting = make("span", "dim waiting")
    el.keys = button("quiet", "Keys", "H", () => this.toggleSheet())
    el.go.append(el.next, el.skip, el.back, el.waiting, el.keys, advance)
    el.help = named("dialog", "sheet", "", { "aria-label": "Keys" })
    this.issue = new IssueForm(this)
    // messages are drawn below Submit, so that fields and buttons don't move when one appears
    panel.append(
      el.title,
      el.about,
      el.verdicts,
      el.take,
      el.notice,
      el.standing,
      el.form,
      el.foot,
      el.go,
      el.history,
      el.help,
    )
    this.root.replaceChildren(panel, this.issue.el.dialog)
    el.other.oninput = () => this.change({ other: wellFormed(el.other.value) }, { typed: true })
    el.note.oninput = () => this.change({ note: wellFormed(el.note.value) }, { typed: true })
    el.corrected.oninput = () => {
      const text = wellFormed(el.corrected.value)
      this.change({ corrected: text === this.data.answer ? null : text }, { typed: true })
    }
    for (const moved of ["pointerup", "keyup", "input"])
      el.corrected.addEventListener(moved, () => {
        this.hasCaret = true
      })
    el.form.addEventListener("focusin", event => {
      if (typesIn(event.target)) this.scrollAboveFooter()
    })
    for (const field of [el.other, el.note, el.corrected])
      field.onblur = () => {
        this.joinSpaces()
        this.flush()
      }
    // Leaving the field for a button shows no message: it would move the button before the click
    // ends.
    const confirmName = showsMessage => {
      if (
        !this.reviewerName() ||
        this.data.reviewer ||
        this.isSubmitting ||
        this.nameSent === this.reviewerName()
      )
        return
      this.nameSent = this.reviewerName()
      this.nameConfirmed = true
      this.sendAction("name")
      if (showsMessage)
        this.showMessage(
          `Decisions are recorded as ${this.reviewerName()} from now on. ` +
            "You can change the name at the top right.",
        )
    }
    el.name.oninput = () => {
      this.nameTyped = true
      this.nameConfirmed = Boolean(this.reviewerName())
    }
    el.name.onblur = () => {
      if (this.nameTyped) confirmName(false)
    }
    el.name.onkeydown = event => {
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
        confirmName(true)
        el.name.blur()
      }
    }
  }

  draw() {
    const { el, data, fields } = this
    const verdict = fields.verdict
    if (this.drawnAnswer !== data.answer) {
      if (fields.corrected === null) el.corrected.value = data.answer
      this.drawnAnswer = data.answer
    }
    el.corrected.maxLength = data.longest
    el.title.textContent = `Decision on ${data.about.name}`
    el.about.textContent = data.about.note
    el.about.hidden = !data.about.note
    el.take.hidden =
      !data.revision ||
      this.isClosed() ||
      Boolean(data.standing && !this.isOpen()) ||
      (fields.verdict === "override" && fields.corrected !== null)
    el.take.firstChild.textContent = `Take ${data.revision} as correction`
    el.notice.hidden = !data.notice || data.notice.text === this.localMessage?.text
    el.notice.className = `notice message tone-${data.notice?.tone ?? "calm"}`
    el.notice.textContent = data.notice?.text ?? ""
    if (!this.nameTyped && !el.name.value) el.name.value = data.suggested_name
    this.drawStanding()
    this.drawAsk()
    const open = this.isOpen()
    el.form.hidden = !open
    el.verdicts.hidden = !open
    el.deciding.hidden = !open
    const hasInput = this.hasInput()
    this.drawMessage()
    el.restored.hidden = !(data.restored && hasInput)
    if (data.restored) el.restored.textContent = `Draft of ${data.restored} restored.`
    this.drawVerdicts()
    this.drawReasons()
    this.drawEditor()
    window.masisCorrection = fields.corrected ?? ""
    window.dispatchEvent(new Event("masis-corrected"))
    el.again.hidden = fields.corrected === null
    this.drawCheck()
    this.drawLabels()
    this.drawReported()
    el.nameBlock.hidden = Boolean(data.reviewer)
    el.submit.firstChild.textContent = this.isSubmitting
      ? "Submitting…"
      : verdict
        ? `Submit: ${data.verdicts.find(({ code }) => code === verdict).text.toLowerCase()} ` +
          `${data.about.name}${this.confirming ? " anyway" : ""}`
        : "Submit"
    el.submit.disabled = Boolean(this.isSubmitting)
    el.discard.hidden = !hasInput
    // "Draft saved" reassures about written text; a chosen verdict or reason needs none
    const written = { ...fields, verdict: data.blank.verdict, reason: data.blank.reason }
    el.saved.textContent =
      JSON.stringify(written) === JSON.stringify(data.blank)
        ? ""
        : this.dirty
          ? "Saving the draft…"
          : "Draft saved"
    this.drawHistory()
    el.skip.disabled = !data.go.waiting
    el.next.classList.toggle("primary", !open)
    el.waiting.textContent = data.go.says
    if (this.footHeight !== el.foot.offsetHeight) {
      this.footHeight = el.foot.offsetHeight
      this.root.style.setProperty("--foot", `${this.footHeight}px`)
      this.scrollAboveFooter()
    }
  }

  // Keeps the focused field above the footer, which covers the bottom of the form and grows with
  // its message.
  scrollAboveFooter() {
    const chosen = this.root.getRootNode().activeElement
    if (this.el.form.contains(chosen) && !this.el.editor.contains(chosen))
      chosen.scrollIntoView({ block: "nearest" })
  }

  drawMessage() {
    const { previous, standing } = this.data
    const before =
      previous && !standing && !this.hasInput()
        ? { text: `${previous}.`, tone: "calm", before: true }
        : null
    const message = this.localMessage ?? this.data.message ?? before
    this.offersPrevious = Boolean(message) && message === before
    this.el.message.replaceChildren()
    this.el.message.hidden = !message
    if (message) {
      this.el.message.className = `message tone-${message.tone}`
      this.el.message.append(make("span", "", message.text))
      if (message.before)
        this.el.message.append(
          " ",
          button("quiet", message === before ? "Undo it there" : "Undo", "U", () => this.undo()),
        )
      if (message.narrowed)
        this.el.message.append(
          " ",
          button("quiet", "Continue with the whole queue", "N", () =>
            this.leaveCase("whole_queue"),
          ),
        )
    }
  }

  // Asks for confirmation before an answer with open serious issues is approved. The log records
  // that they were listed.
  drawAsk() {
    const { el, data } = this
    const shown = Boolean(this.confirming) && this.fields.verdict === "approve"
    el.ask.hidden = !shown
    if (!shown) {
      el.ask.replaceChildren()
      return
    }
    if (el.ask.childElementCount) return
    const count = data.serious.length
    const list = make("ul", "serious")
    for (const issue of data.serious.slice(0, 8)) {
      const item = make("li", "")
      item.append(
        pill(issue.label),
        named("span", "", ` ${issue.text}`, { dir: "auto" }),
        make("span", "dim", ` ${issue.severity}`),
      )
      list.append(item)
    }
    if (count > 8) list.append(make("li", "dim", `and ${count - 8} more`))
    el.ask.append(
      make(
        "p",
        "",
        `${count === 1 ? "One serious issue is" : `${count} serious issues are`} open in ` +
          `${data.about.name}. Approve anyway? Press A again, or submit. ` +
          "The decision records that you saw this list. Press U to cancel.",
      ),
      list,
    )
  }

  drawStanding() {
    const { el, data } = this
    const current = data.standing
    el.standing.replaceChildren()
    el.standing.hidden = !current
    if (!current) return
    const head = make("div", "row")
    head.append(
      pill({ text: current.what, tone: current.tone }),
      make("span", "dim", `by ${current.who}, ${current.when}`),
    )
    el.standing.append(head)
    if (current.why) el.standing.append(named("p", "", current.why, { dir: "auto" }))
    if (current.note) el.standing.append(named("p", "dim", current.note, { dir: "auto" }))
    if (current.reported.length)
      el.standing.append(make("p", "label", "Reported issues"), this.reportList(current.reported))
    const back = make("div", "row")
    if (current.undoable && !this.localMessage?.before)
      back.append(button("step", "Undo", "U", () => this.undo()))
    el.standing.append(back)
    if (!this.isOpen() && !this.isClosed()) {
      el.standing.append(make("p", "dim small", "Choose a verdict to decide again: "))
      const choices = make("div", "row again")
      for (const { code, text } of data.verdicts)
        choices.append(button("quiet", text, LETTER[code], () => this.choose(code)))
      el.standing.append(choices)
    }
  }

  drawVerdicts() {
    const { el, data, fields } = this
    if (!el.verdicts.children.length) {
      for (const { code, text, tone, meaning } of data.verdicts) {
        const choice = make("label", `verdict tone-${tone}`)
        choice.title = meaning
        const input = named("input", "", undefined, {
          type: "radio",
          name: "verdict",
          value: code,
          "aria-keyshortcuts": LETTER[code],
        })
        input.onchange = () => this.choose(code)
        choice.append(
          input,
          named("span", "glyph", GLYPH[code], { "aria-hidden": "true" }),
          make("span", "", text),
          named("kbd", "", LETTER[code], { "aria-hidden": "true" }),
        )
        el.verdicts.append(choice)
      }
    }
    for (const input of el.verdicts.querySelectorAll("input")) {
      input.checked = input.value === fields.verdict
      input.parentElement.classList.toggle("chosen", input.checked)
    }
  }

  drawReasons() {
    const { el, data, fields } = this
    const offered = data.reasons[fields.verdict] ?? []
    el.reasonBlock.hidden = !offered.length
    const needed = data.verdicts.some(
      verdict => verdict.code === fields.verdict && verdict.needs_reason,
    )
    el.reasonTitle.textContent = needed ? "One reason" : "One reason (optional)"
    const escalates = fields.verdict === "escalate"
    el.reasonHint.hidden = !escalates && offered.filter(reason => reason.suggested).length < 2
    el.reasonHint.textContent = escalates
      ? "The case stays open for another reviewer or more evidence. You can assign it below."
      : "Choose the main one. Add others in the note (T)."
    const drawn = JSON.stringify(offered)
    if (el.reasons.dataset.drawn !== drawn) {
      el.reasons.dataset.drawn = drawn
      el.reasons.replaceChildren()
      offered.forEach(({ code, text, suggested }, index) => {
        const choice = make("label", `reason${suggested ? " suggested" : ""}`)
        const input = named("input", "", undefined, { type: "radio", name: "reason", value: code })
        input.onchange = () => this.chooseReason(code, false)
        choice.append(
          input,
          named("kbd", "", String(index + 1), { "aria-hidden": "true" }),
          make("span", "", text),
        )
        if (suggested) choice.append(make("span", "hint", "suggested"))
        el.reasons.append(choice)
      })
    }
    for (const input of el.reasons.querySelectorAll("input")) {
      input.checked = input.value === fields.reason
      input.parentElement.classList.toggle("chosen", input.checked)
    }
    el.other.hidden = fields.reason !== "other"
  }

  drawCheck() {
    const { el, data } = this
    el.check.replaceChildren()
    el.citationProblems.replaceChildren()
    const { check } = data
    el.check.hidden = !check || !this.isOpen() || this.fields.verdict !== "override"
    if (!check) return
    const count = (number, word, tone, glyph) => {
      const item = make("span", `count tone-${number ? tone : "calm"}`)
      item.append(
        named("span", "glyph", glyph, { "aria-hidden": "true" }),
        make("span", "", `${number} ${word}`),
      )
      el.check.append(item)
    }
    count(check.references, check.references === 1 ? "reference" : "references", "calm", "•")
    count(check.fabricated_count, "fabricated", "bad", "✕")
    count(check.uncited_count, "uncited", "warn", "~")
    if (this.dirty) el.check.append(make("span", "dim", "checking…"))
    if (check.changed.length) {
      const row = named("p", "dim changed", "Changes: ", { dir: "auto" })
      row.append(...renderDiff(check.changed))
      if (check.dropped.length)
        row.append(
          make("b", "", ` Drops ${check.dropped.map(reference => `[${reference}]`).join(", ")}.`),
        )
      el.citationProblems.append(row)
    }
    const untouched =
      this.fields.corrected !== null &&
      untouchedIssues(el.corrected.value, number => this.showIssue(number))
    if (untouched) el.citationProblems.append(untouched)
    if (check.beside) el.citationProblems.append(make("p", "dim", check.beside))
    el.citationProblems.append(...citationProblems(check))
  }

  drawLabels() {
    const { el, data, fields } = this
    el.labels.hidden = !data.labels.rows.length
    const given = fields.labels[data.labels.base] ?? {}
    const count = Object.keys(given).length
    el.labelsTitle.replaceChildren(
      make(
        "span",
        "",
        count
          ? `Labels on single claims and references: ${count} given`
          : "Label single claims and references",
      ),
      named("kbd", "", "L", { "aria-hidden": "true" }),
    )
    const drawn = JSON.stringify(data.labels)
    if (el.labelRows.dataset.drawn !== drawn) {
      el.labelRows.dataset.drawn = drawn
      el.labelRows.replaceChildren(...data.labels.rows.map(row => this.labelRow(row)))
    }
    for (const select of el.labelRows.querySelectorAll("select")) {
      select.value = given[select.dataset.key] ?? ""
      select.classList.toggle("given", select.value !== "")
    }
  }

  drawReported() {
    const { el, data } = this
    const issues = this.reportedIssues()
    el.report.hidden = !data.answer.trim()
    // without an audit, or with one that is hidden from this reviewer, the page can't tell what the
    // audit missed
    el.reportTitle.textContent = data.labels.base
      ? "Issues that the audit missed"
      : "Issues that you found"
    el.reportList.hidden = !issues.length
    const open = this.isOpen()
    const drawn = JSON.stringify(issues)
    if (el.reportList.dataset.drawn !== drawn) {
      el.reportList.dataset.drawn = drawn
      el.reportList.replaceChildren(
        ...issues.map((report, place) => {
          const item = this.reportItem(report)
          const edit = button("quiet", "Edit", "", () => this.editReport(place))
          const remove = button("quiet", "Remove", "", () => {
            this.setReported(
              this.reportedIssues().filter((_, index) => index !== place),
              `Removed: ${report.type}, ${aboutWords(report)}.`,
            )
            el.report.querySelector(".reports button, .row button").focus()
          })
          for (const action of [edit, remove])
            action.setAttribute(
              "aria-label",
              `${action.textContent}: ${report.type}, ${aboutWords(report)}`,
            )
          item.firstChild.append(edit, remove)
          return item
        }),
      )
    }
    // the answer marks the issues of the open form, or else those of the recorded decision
    const shown = {
      digest: data.shown.digest,
      edited: open,
      issues: open ? issues : data.reporting.standing,
    }
    const drawnAs = JSON.stringify(shown)
    if (this.lastReported === drawnAs && window.masisReported?.digest === shown.digest) return
    this.lastReported = drawnAs
    window.masisReported = shown
    window.dispatchEvent(new Event("masis-reported"))
  }

  reportItem(report) {
    const item = make("li", "")
    const head = make("div", "row")
    head.append(
      pill({ text: report.type, tone: TONE_OF[report.severity] }),
      make("span", "dim", report.severity),
    )
    item.append(head, named("div", "", aboutWords(report), { dir: "auto" }))
    if (report.note) item.append(named("div", "dim", report.note, { dir: "auto" }))
    return item
  }

  reportList(issues) {
    const list = make("ul", "reports")
    list.append(...issues.map(report => this.reportItem(report)))
    return list
  }

  labelRow(row) {
    const { data } = this
    const line = make("div", "label-row")
    const words = named("div", "label-words", "", { dir: "auto" })
    if (row.where) words.append(make("span", "dim", `${row.where} `))
    words.append(make("span", row.kind === "reference" ? "label-ref" : "", row.text))
    const select = named("select", "text", undefined, {
      "data-key": row.key,
      "aria-label":
        `${row.kind[0].toUpperCase()}${row.kind.slice(1)} ${row.text}: ` +
        `the audit says ${row.machine.text}. Your label`,
    })
    select.append(new Option("No label", ""), new Option(`Agree: ${row.machine.text}`, row.verdict))
    for (const [code, text] of data.labels.choices[row.kind])
      if (code !== row.verdict)
        select.append(
          new Option(`${text[0].toUpperCase()}${text.slice(1)}, not ${row.machine.text}`, code),
        )
    select.onchange = () => {
      const { [data.labels.base]: own, ...others } = this.fields.labels
      const { [row.key]: _, ...given } = own ?? {}
      if (select.value) given[row.key] = select.value
      const labels = Object.keys(given).length ? { ...others, [data.labels.base]: given } : others
      this.change(
        { labels },
        {
          now: true,
          says: select.value
            ? `Labelled: ${select.selectedOptions[0].textContent.toLowerCase()}.`
            : "Label removed.",
        },
      )
    }
    const side = make("div", "label-side")
    side.append(pill(row.machine), select)
    line.append(words, side)
    return line
  }

  drawHistory() {
    const { el, data } = this
    el.history.hidden = !data.history.length
    const drawn = JSON.stringify(data.history)
    if (el.history.dataset.drawn === drawn) return
    el.history.dataset.drawn = drawn
    const list = make("ol", "entries")
    for (const entry of data.history) {
      const item = make("li", entry.undone ? "undone" : "")
      const head = make("div", "row")
      head.append(
        pill({ text: entry.what, tone: entry.tone }),
        make("span", "dim", [entry.who, entry.when].filter(Boolean).join(", ")),
      )
      if (entry.undone) head.append(make("span", "dim", "undone"))
      item.append(head)
      if (entry.why) item.append(named("div", "", entry.why, { dir: "auto" }))
      if (entry.note) item.append(named("div", "dim", entry.note, { dir: "auto" }))
      const extras = [
        entry.corrected && "with a corrected answer",
        entry.labels && `${entry.labels} ${entry.labels === 1 ? "label" : "labels"}`,
      ].filter(Boolean)
      if (extras.length) item.append(make("div", "dim", extras.join(", ")))
      if (entry.reported.length) item.append(this.reportList(entry.reported))
      list.append(item)
    }
    el.history.replaceChildren(
      make(
        "summary",
        "label",
        `History of this case: ${data.history.length} ` +
          (data.history.length === 1 ? "entry" : "entries"),
      ),
      list,
    )
  }
}

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  let panel = panels.get(root)
  if (!panel) {
    panel = new Panel(root)
    panels.set(root, panel)
  }
  whenReleased(root, () => panel.update(component))
  return () => {
    panel.leave()
    panels.delete(root)
  }
}
