// The decision form. What is typed stays in the page, is stored in the browser until the server has it, and is posted when
// it has rested for a moment or a field is left: a killed server, browser or connection loses nothing.
const RESTED_MS = 600
const UNANSWERED_MS = 4000
const UNREAD_MS = 400 // nobody has read what was drawn a moment ago: a key meant for the case before decides nothing
const AGAIN_MS = 2000 // a press on Submit so soon after one is the same press
const ADVANCE = "masis-advance"
const GLYPH = { approve: "✓", override: "✎", reject: "✕", escalate: "↗" }
const LETTER = { approve: "A", override: "O", reject: "X", escalate: "E" }
// A control elsewhere on the page has the focus: keys are its own. The answer's marks and the reasons in the head are read,
// not filled in.
const elsewhere = (element, root) => {
  if (!(element instanceof Element) || root.contains(element) || element.getRootNode().host?.closest(".st-key-review, .st-key-head")) return false
  return Boolean(element.closest("a, button, input, select, textarea, summary, [role=button], [role=radio], [role=option], [contenteditable]"))
}
const panels = new WeakMap()
// While a case gives way to the next, both may stand in the page for a moment: keys go to the newest only.
let listening = null

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other)
const STEPS = { reported: "the reported issue", labels: "the label", reason: "the reason", corrected: "the correction", verdict: "the verdict", note: "the note", other: "the reason" }
const inked = pieces => pieces.map(([kind, words]) => make({ out: "del", in: "ins" }[kind] ?? "span", "", words))
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
    listening = this
    this.column = root.getRootNode().host?.closest(STREAMLIT.elements.column)
    const pane = this.column?.querySelector(`:scope > ${STREAMLIT.elements.container}`)
    this.unfit = pane ? fitToWindow(pane) : () => {}
    this.drawnAt = performance.now()
    this.gone = new AbortController()
    const listen = (target, name, act) => target.addEventListener(name, act, { signal: this.gone.signal })
    const asked = (name, act) => listen(window, name, event => { if (this.listens()) act(event.detail) })
    listen(window, "masis-shown", () => { if (this.data) this.drawEditor(); this.drawReady() })
    asked("masis-label", words => this.labelWords(words))
    asked("masis-report-edit", place => this.editReport(place))
    asked("masis-label-target", target => this.labelTarget(target))
    asked("masis-insert", point => this.insert(point))
    listen(document, "keydown", event => this.key(event))
    listen(window, "pagehide", () => this.flush())
    listen(document, "visibilitychange", () => this.flush())
    this.resized = new ResizeObserver(() => this.dock())
    if (this.column?.previousElementSibling) this.resized.observe(this.column.previousElementSibling)
    this.resized.observe(this.el.editor) // it grows with its text
  }

  // Keys are for the newest panel; where that one has gone, for the one that stayed.
  listens() { return (listening ??= this) === this }

  leave() {
    if (listening === this) listening = null
    this.unfit()
    this.gone.abort()
    this.resized.disconnect()
    this.el.editor.hidden = true
    this.dock()
    clearTimeout(this.unanswered)
    clearTimeout(this.readySoon)
    this.flush()
  }

  // What the server says, on every run.
  update({ data, setStateValue, setTriggerValue }) {
    const first = this.data === undefined
    const before = this.data
    this.data = data
    this.leaving = false
    clearTimeout(this.unanswered)
    this.post = setStateValue
    this.fire = setTriggerValue
    if (data.acks?.[this.mount] >= this.seq) this.settled()
    const done = Boolean(this.sent) && data.done.includes(this.sent)
    if (done) { this.settled(); this.sent = null; this.steps = [] }
    const otherForm = !first && (before.form !== data.form || before.reviewer !== data.reviewer)
    const filled = first || done || (otherForm && !this.dirty)
    if (filled) this.fill(data.draft)
    if (first) this.recall()
    else if (otherForm && this.dirty) this.postSoon()
    if (data.handled && data.handled.mount === this.mount && data.handled.sends === this.sends) this.busy = false
    if (done) this.busy = false
    // the server that was asked is gone; the same token makes asking the next one harmless
    if (this.busy && otherForm) setTimeout(() => { this.fire("submit", this.submitted); this.expectAnswer() })
    else if (this.busy) this.expectAnswer()
    const message = data.message?.id ?? null
    // a restarted server opens another form on the same answer: what was asked stays asked
    const otherAnswer = first || before.shown.place !== data.shown.place || before.shown.digest !== data.shown.digest
    if (otherAnswer || done || this.fields.verdict !== "approve") this.asked = null
    if (first) {
      this.drawnAt = performance.now()
      // the next case is read from its question on, wherever the one before was left
      if (window.masisCase !== undefined && window.masisCase !== data.case) document.querySelector(STREAMLIT.elements.main)?.scrollTo({ top: 0 })
      window.masisCase = data.case
    }
    const news = message !== this.message
    if (news && message) this.own = null
    this.message = message
    this.draw()
    this.drawReady()
    if (news && data.message?.where) this.focusField(data.message.where)
    if (done) this.el.next.focus({ preventScroll: true })
    // a report that was being written when the page went away
    if (filled && this.fields.reporting?.answer === data.shown.digest) this.issue.open(this.fields.reporting)
  }

  settled() {
    clearTimeout(this.timer)
    this.timer = null
    this.dirty = false
    try { localStorage.removeItem(this.place()) } catch { /* a browser that keeps nothing */ }
  }

  place() { return `masis-draft:${this.data.case}` }

  // What this browser stored because no server confirmed it.
  recall() {
    let stored = null
    try { stored = JSON.parse(localStorage.getItem(this.place()) ?? "null") } catch { return }
    if (!stored || typeof stored.fields !== "object" || this.data.done.includes(stored.token)) return
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
    this.answer = this.data.answer
  }

  // Whatever a person changes goes through here: some fields anew, stored `now` or once typing rests. What was said
  // before is past. All but what is `typed`, which the browser undoes, is a step that U takes back: `inserted` text only
  // itself, though the text around it was changed meanwhile.
  change(fields, { now = false, says = "", typed = false, inserted = "" } = {}) {
    const before = Object.fromEntries(Object.keys(fields).filter(name => name !== "reporting").map(name => [name, this.fields[name]]))
    if (!typed && Object.keys(before).some(name => !same(before[name], fields[name]))) this.steps.push({ before, after: fields, inserted })
    this.fields = { ...this.fields, ...fields }
    this.own = says ? { text: says, tone: "calm", before: true } : this.own?.stays && typed ? this.own : null
    this.seq += 1
    this.dirty = true
    try {
      const stored = { at: Date.now(), reviewer: this.data.reviewer, token: this.data.form, fields: this.fields }
      localStorage.setItem(this.place(), JSON.stringify(stored))
    } catch { /* full or forbidden: the store has it in a moment */ }
    this.postSoon(now)
    this.draw()
    if (typed) this.clearOfFoot() // a field grows with its text
  }

  postSoon(now) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.flush(), now ? 0 : RESTED_MS)
  }

  flush() {
    if (!this.timer) return
    clearTimeout(this.timer)
    this.timer = null
    this.post("draft", { case: this.data.case, token: this.data.form, mount: this.mount, seq: this.seq, fields: this.fields })
    this.expectAnswer()
  }

  // A server that was restarted knows nothing of this panel and ignores what it posts until the whole page has been
  // run once: the frame (reviewer.js) is asked to do that.
  expectAnswer() {
    clearTimeout(this.unanswered)
    this.unanswered = setTimeout(() => {
      if (!this.root.isConnected) return
      this.leaving = false
      this.drawReady()
      const { elements, state } = STREAMLIT
      const app = document.querySelector(elements.app)?.dataset
      if (app?.[state.connection] === state.connected && app[state.script] === state.idle) {
        window.dispatchEvent(new Event("masis-wake"))
        // another run of the page may have ended the one that was to record this; the token makes it harmless twice
        if (this.busy) this.fire("submit", this.submitted)
      }
      this.expectAnswer()
    }, UNANSWERED_MS)
  }

  // The answer that stands on the page is the one this form is about.
  answerInPlace() { return window.masisShown?.place === this.data?.shown.place && window.masisShown.digest === this.data.shown.digest }

  // How long until what is shown can have been read; a key before that decides nothing.
  unread() {
    if (!this.answerInPlace()) return UNREAD_MS
    const since = Math.max(this.drawnAt, window.masisShown.at, this.asked?.at ?? 0)
    return Math.max(0, since + UNREAD_MS - performance.now())
  }

  // A correction that was submitted doesn't stand under the answer of the next case while this form gives way to its own.
  drawEditor() {
    const gone = (this.busy || this.leaving) && !this.answerInPlace()
    this.el.editor.hidden = this.fields.verdict !== "override" || !this.open() || gone
    this.dock()
  }

  drawReady() {
    clearTimeout(this.readySoon)
    const left = this.unread()
    this.root.firstChild.dataset.ready = String(left === 0 && !this.busy && !this.leaving)
    if (left && this.answerInPlace()) this.readySoon = setTimeout(() => this.drawReady(), left)
  }

  advances() {
    try { return localStorage.getItem(ADVANCE) !== "off" } catch { return true }
  }

  // One key: it decides at once where nothing was decided before. A key that does nothing says why.
  byKey(verdict) {
    if (this.refused()) return
    const decided = Boolean(this.data.standing)
    this.choose(verdict)
    if (verdict === "approve" && !decided) { this.submit(); return }
    this.reveal()
    if (verdict !== "override") return
    const { corrected } = this.el
    corrected.focus({ preventScroll: true })
    corrected.scrollIntoView({ block: "nearest" })
    this.showIssue()
  }

  // The answer shows an issue, else the one chosen, else the gravest, with its evidence in view; its words are selected,
  // as far as the correction still has them. Where a point is missing, the caret stands where it would be inserted.
  showIssue(number = null) {
    const { corrected } = this.el
    const asked = { number, start: null, end: null, after: null }
    window.dispatchEvent(new CustomEvent("masis-correct", { detail: asked }))
    if (asked.after !== null) {
      const { end } = this.placeOf(asked.after)
      corrected.focus({ preventScroll: true })
      selectIn(corrected, [end, end])
      return
    }
    if (asked.end === null) return
    const place = wordsIn(corrected.value, this.data.answer, asked)
    if (!place) { this.say("The words of this issue are changed already."); return }
    corrected.focus({ preventScroll: true })
    selectIn(corrected, place)
  }

  // A missing point goes behind the sentence that cites the same evidence, else behind the one with the caret, else to the end.
  placeOf(after) {
    const { corrected } = this.el
    const text = this.fields.corrected ?? this.data.answer
    const found = after ? text.lastIndexOf(after) : -1
    if (found >= 0) return { end: found + after.length, where: `behind “${after.length > 60 ? `…${after.slice(-60).replace(/^\S*\s/, "")}` : after}”` }
    const stop = this.careted ? text.slice(corrected.selectionEnd).search(/[.!?](\s|$)/) : -1
    return stop < 0 ? { end: text.trimEnd().length, where: "at the end of the correction" } : { end: corrected.selectionEnd + stop + 1, where: "behind the sentence with the caret" }
  }

  insert({ text, says, after }) {
    if (this.refused()) return
    const before = this.fields.corrected ?? this.data.answer
    if (saidIn(before, says)) { this.say("The correction has this already."); return }
    const { end, where } = this.placeOf(after)
    const corrected = `${before.slice(0, end)} ${text}${before.slice(end)}`
    this.reopened = true
    this.asked = null
    this.el.corrected.value = corrected
    this.change({ verdict: "override", corrected }, { now: true, says: `Inserted ${where}: ${text}`, inserted: ` ${text}` })
    selectIn(this.el.corrected, [end, end + 1 + text.length])
  }

  // Says why a key or a press can't decide now, and returns whether that is so.
  refused() {
    const why = this.closed() ? this.data.notice.text
      : this.busy ? "The decision before this one is still being recorded: press again in a moment."
      : !this.answerInPlace() ? "The answer on the page is just changing. Read it, then decide."
      : this.unread() && this.asked ? "Nothing was recorded: read the serious issues listed here, then press again."
      : this.unread() ? "Nothing was recorded: this answer has only just appeared. Read it, then press again."
      : ""
    if (!why) return false
    this.say(why, "warn")
    this.own.stays = true // until a verdict is chosen: who types on takes it for chosen
    return true
  }

  // Says something; `before`: with the way to take back what it is about.
  say(text, tone = "calm", before = false) {
    this.own = { text, tone, before }
    this.draw()
  }

  // Takes back the newest step whose outcome still stands; returns false where there is none.
  stepBack() {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      const { before, after, inserted, discards } = step
      const corrected = this.fields.corrected ?? ""
      const around = inserted && !same(corrected, after.corrected) && corrected.includes(inserted)
      const back = around ? { corrected: corrected.replace(inserted, () => "") }
        : Object.fromEntries(Object.entries(before).filter(([name, value]) => same(this.fields[name], after[name]) && !same(value, after[name])))
      const name = Object.keys(STEPS).find(each => each in back)
      if (!name) continue
      if (back.corrected === this.data.answer) back.corrected = null
      this.fill({ ...this.fields, ...back })
      this.reopened = true
      this.change({}, { now: true })
      this.say(`Undone: ${discards ? "the draft is back" : inserted ? "the insertion" : STEPS[name]}.`)
      return true
    }
    return false
  }

  // Where the form stands below the answer, a key that opens it brings it into view.
  reveal() {
    const { top, bottom } = this.el.verdicts.getBoundingClientRect()
    if (top < HEADER_PX || bottom > window.innerHeight * 0.6) this.el.title.scrollIntoView({ block: "start" })
  }

  choose(verdict) {
    if (!this.open()) this.reopened = true
    if (this.fields.verdict !== verdict) this.asked = null
    this.change({ verdict }, { now: true })
  }

  // The form is open unless there is a decision and nothing new has been entered.
  open() { return !this.closed() && this.begun() }

  // Others have settled the case, or hold it: nothing is decided here.
  closed() { return Boolean(this.data.notice?.closed) }

  // Whether the form holds anything.
  entered() { return JSON.stringify(this.fields) !== JSON.stringify(this.data.blank) }

  begun() { return !this.data.standing || this.reopened || this.dirty || Boolean(this.fields.verdict || this.fields.note || this.fields.corrected !== null || this.reported().length) }

  // Issues that the reviewer reports in the answer shown.

  reported() { return this.fields.reported[this.data.shown.digest] ?? [] }

  // The words chosen in the answer; where none are, a sentence of it is to be chosen.
  labelWords(words) {
    if (!this.data.answer.trim() || !this.answerInPlace() || this.busy) return
    const asked = { words: words ?? null }
    if (!words) window.dispatchEvent(new CustomEvent("masis-words", { detail: asked }))
    if (asked.words) { this.issue.open(asked.words); return }
    const letters = Array.from(this.data.answer)
    const sentences = this.data.reporting.sentences.map(([start, end]) => ({ start, end, text: letters.slice(start, end).join("") }))
    this.issue.open({}, sentences)
  }

  // To the label of the claim or the reference that was chosen in the answer; where none was, to the first.
  labelTarget(target) {
    if (!this.data.labels.rows.length) return
    this.reopened = true
    this.draw()
    this.el.labels.open = true
    const selects = [...this.el.labelRows.querySelectorAll("select")]
    const select = selects.find(each => each.dataset.key === target) ?? selects[0]
    select.focus({ preventScroll: true })
    select.closest(".label-row").scrollIntoView({ block: "nearest" })
  }

  reportWhole() { if (this.data.answer.trim() && this.answerInPlace() && !this.busy) this.issue.open({}) }

  editReport(place) { const report = this.reported()[place]; if (report && !this.busy) this.issue.open({ ...report, place }) }

  keepReport(reporting) {
    if (!reporting && !this.fields.reporting) return
    this.change({ reporting }, { now: !reporting, typed: true })
  }

  addReport(report, place, answer) {
    if (answer !== this.data.shown.digest) { this.say("The answer on the page has changed: the issue was not added.", "warn"); return }
    const issues = [...this.reported()]
    if (place === null) issues.push(report)
    else issues[place] = report
    this.setReported(issues, `${place === null ? "Labelled" : "Changed"}: ${report.type}, ${report.severity}, ${aboutWords(report)}.`)
    window.dispatchEvent(new Event("masis-labelled"))
  }

  setReported(issues, says) {
    this.reopened = true
    const { [this.data.shown.digest]: _, ...others } = this.fields.reported
    // it is no draft any more, which the dialog would clear as it closes
    this.change({ reporting: null, reported: issues.length ? { ...others, [this.data.shown.digest]: issues } : others }, { now: true, says })
  }

  // Where a sentence was deleted, the blanks on either side of it are one.
  tidy() {
    const { corrected } = this.fields
    const text = corrected?.replace(/(?<=[.!?\]]) {2,}(?=\S)/g, " ") ?? null
    if (text === corrected || /\S {2,}\S/.test(this.data.answer)) return
    this.el.corrected.value = text
    this.change({ corrected: text === this.data.answer ? null : text }, { typed: true })
  }

  submit() {
    if (this.refused()) return
    this.tidy()
    if (!this.open()) {
      // the second press of a double one: what it would say must not take the place of what the first one did
      if (performance.now() - this.submittedAt > AGAIN_MS) this.say("A decision stands. Choose a verdict to decide again.", "warn")
      return
    }
    if (!this.data.reviewer && !this.nameConfirmed && this.fields.verdict) {
      this.say(this.name() ? `You decide as ${this.name()}: Enter confirms that, or type another name.` : "Type your name: it is recorded with every decision.", "warn")
      this.el.name.focus()
      this.el.name.select()
      return
    }
    if (this.fields.verdict === "approve" && this.data.serious.length) {
      if (!this.asked) {
        this.asked = { at: performance.now(), ids: this.data.serious.flatMap(each => each.ids) }
        this.change({}, { now: true })
        this.drawReady()
        this.el.ask.scrollIntoView({ block: "nearest" })
        return
      }
    }
    this.own = null
    clearTimeout(this.timer)
    this.timer = null
    this.busy = true
    this.submittedAt = performance.now()
    this.sends += 1
    this.sent = this.data.form
    this.reopened = false
    this.submitted = { case: this.data.case, token: this.data.form, seen: this.data.seen, mount: this.mount, seq: this.seq,
      sends: this.sends, reviewer: this.name(), fields: this.fields,
      shown: { place: window.masisShown.place, digest: window.masisShown.digest }, acknowledged: this.asked?.ids ?? [], advance: this.advances() }
    this.fire("submit", this.submitted)
    this.expectAnswer()
    this.draw()
    this.drawReady()
  }

  name() { return this.data.reviewer || wellFormed(this.el.name.value).trim() }

  // The next case that needs review; once there is none, the next one of the list; behind its end, the whole queue.
  next() { this.go(this.data.go.waiting ? "next" : this.data.message?.narrowed ? "whole_queue" : "forward") }

  go(kind) { if (this.asked) this.withdraw(); this.leaving = true; this.drawReady(); this.act(kind) }

  discard() {
    this.reopened = false
    this.change(this.data.blank)
    this.fill({})
    if (this.steps.length) this.steps.at(-1).discards = true
    this.settled()
    this.act("discard", { seq: this.seq, mount: this.mount })
    this.say("The draft was discarded.", "calm", true)
  }

  act(kind, more) { this.flush(); this.fire("act", { kind, case: this.data.case, reviewer: this.name(), at: Date.now(), ...more }); this.expectAnswer() }

  // Takes back an approval that waits for an answer to what was asked about it.
  withdraw() {
    this.asked = null
    this.change({ verdict: this.data.blank.verdict, reason: this.data.blank.reason }, { now: true, typed: true })
    this.say("Not approved: nothing was recorded.")
  }

  // What is begun here comes first, a step at a time, then the decision that stands here; another case's only once it has
  // been named. What is typed is no step: it goes by "Discard draft" alone.
  undo() {
    if (this.asked) this.withdraw()
    else if (this.stepBack()) return
    else if (this.open() && this.entered()) this.say("What is left here was typed, or is from before: “Discard draft” removes it.")
    else if (this.data.standing?.undoable) this.act("undo", { entry: this.data.standing.id })
    else if (this.data.standing && this.data.notice) this.say(this.data.notice.text)
    else if (this.data.previous && this.namesPrevious) this.go("undo_previous")
    else if (this.data.previous) { this.own = this.data.message = null; this.draw() }
    else this.say("There is nothing to undo.")
  }

  takeRevision() {
    if (this.refused()) return
    this.reopened = true
    this.act("take_revision")
  }

  focusField(field) {
    const target = { corrected: this.el.corrected, other: this.el.other, reviewer: this.el.name,
      reported: this.el.report.querySelector("button"),
      verdict: this.el.verdicts.querySelector("input"), 
      reason: this.el.reasons.querySelector(".suggested input") ?? this.el.reasons.querySelector("input") }[field]
    target?.focus()
  }

  key(event) {
    if (!this.root.isConnected) { this.leave(); return }
    if (!this.listens() || this.leaving) return
    if (this.issue.opened) return
    const within = event.composedPath()[0]
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      if (elsewhere(within, this.root)) return
      event.preventDefault()
      if (!event.repeat) this.submit()
      return
    }
    const off = elsewhere(within, this.root)
    const open = document.querySelector(STREAMLIT.elements.dialog)
    // Esc leaves a field, and whatever else has the focus: from then on keys are the form's again
    if (event.key === "Escape" && !open && (off || (this.root.contains(within) && typesIn(within)))) { within.blur(); return }
    if (event.key === "Escape" && !open && (this.asked || this.own)) {
      if (this.asked) this.withdraw()
      else { this.own = null; this.draw() }
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || typesIn(within) || open) return
    if (off) {
      // D is the key of a button of the page, which acts whatever has the focus
      if (/^[a-ce-z]$/i.test(event.key)) this.say("Keys are off while another control has the focus: press Esc, then the key again.", "warn")
      return
    }
    const press = event.key.length === 1 ? event.key.toLowerCase() : event.key
    // a correction that stands is seen first: the answer that it is about is a press away
    if (press === "v" && !window.dispatchEvent(new Event("masis-version", { cancelable: true }))) { event.preventDefault(); return }
    if (!this.data.revision && (["v", "d", "[", "]"].includes(press) || (press === "w" && event.shiftKey))) {
      event.preventDefault()
      this.say("There is no revision.")
      return
    }
    const verdict = { a: "approve", o: "override", x: "reject", e: "escalate" }[press]
    const does = verdict ? () => this.byKey(verdict) : {
      v: () => this.act("switch"),
      u: () => this.undo(), n: () => this.next(), s: () => this.go("skip"), j: () => this.go("forward"),
      k: () => this.go("back"), "/": () => { window.masisSearch = true; this.go("search") }, f: () => window.dispatchEvent(new CustomEvent("masis-issue", { detail: event.shiftKey ? -1 : 1 })), "[": () => this.act("iteration", { step: -1 }), "]": () => this.act("iteration", { step: 1 }),
      w: () => (event.shiftKey ? this.takeRevision() : this.byKey("override")),
      t: () => { this.reopened = true; this.draw(); this.el.note.focus() },
      l: () => {
        const asked = { target: null }
        window.dispatchEvent(new CustomEvent("masis-target", { detail: asked }))
        this.labelTarget(asked.target)
      },
      i: () => {
        const asked = { found: null }
        window.dispatchEvent(new CustomEvent("masis-insert-chosen", { detail: asked }))
        if (!asked.found) this.say("Nothing to insert: go to a missing point with F.")
      },
      m: () => (event.shiftKey ? this.reportWhole() : this.labelWords()),
      g: () => window.dispatchEvent(new Event("masis-turn")),
      h: () => this.help(), "?": () => this.help(),
    }[press]
    if (does) { event.preventDefault(); does(); return }
    if (/^[1-9]$/.test(press) && this.open()) {
      const offered = this.data.reasons[this.fields.verdict] ?? []
      if (offered[press - 1]) { event.preventDefault(); this.reason(offered[press - 1].code, true) }
    }
  }

  reason(code, byKey) {
    const before = this.fields.reason
    const offered = Object.fromEntries((this.data.reasons[this.fields.verdict] ?? []).map(each => [each.code, each.text]))
    const replaced = offered[before] && before !== code
    const own = code === "other" && byKey
    const says = replaced ? `Reason: “${offered[code]}” in place of “${offered[before]}”.` : ""
    this.change({ reason: code }, { now: true, says: own ? `${says} Type it in your own words; Esc, then keys are commands again.`.trim() : says })
    if (own) this.el.other.focus()
  }

  help() {
    fillKeySheet(this.el.help, this.data.keys)
    if (this.el.help.open) this.el.help.close()
    else this.el.help.showModal()
  }

  // The correction is written below answer and evidence, which stay in view with their marks; where the form stands
  // below the answer, within the form.
  dock() {
    const { editor } = this.el
    const place = this.column?.previousElementSibling?.getBoundingClientRect()
    const docked = Boolean(place && editor.isConnected && !editor.hidden && this.column.getBoundingClientRect().left >= place.right)
    editor.classList.toggle("docked", docked)
    if (docked !== (editor.popover === "manual")) editor.popover = docked ? "manual" : null
    if (docked) {
      editor.style.left = `${place.left}px`
      editor.style.width = `${place.width}px`
      if (!editor.matches(":popover-open")) editor.showPopover() // above whatever the page draws
    }
    const covered = docked ? editor.offsetHeight : 0
    if ((window.masisDock ?? 0) === covered) return
    window.masisDock = covered
    document.documentElement.style.setProperty("--masis-dock", `${covered}px`)
    this.column.closest(".st-key-review")?.style.setProperty("padding-bottom", `${covered}px`) // what it covers can be scrolled to
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
    el.other = named("input", "text", "", { type: "text", maxlength: "300", "aria-label": "Reason in your own words", placeholder: "In your own words" })
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
    el.corrected = named("textarea", "text serif", "", { id: "corrected", rows: "14", dir: "auto", spellcheck: "true" })
    el.check = named("div", "row check", "", { "aria-live": "polite", "aria-label": "Citations after the correction", role: "group" })
    el.offenders = make("div", "check")
    el.editor.append(editorHead, el.corrected, el.offenders)
    const noteBlock = make("div", "block")
    el.note = named("textarea", "text", "", { id: "note", rows: "2", dir: "auto", maxlength: "4000", placeholder: "What the next person should know" })
    const noteLabel = named("label", "label", "Note ", { for: "note" })
    noteLabel.append(named("kbd", "", "T", { "aria-hidden": "true" }))
    noteBlock.append(noteLabel, el.note)
    el.report = named("section", "block", "", { "aria-label": "Issues you report" })
    el.reportList = make("ul", "reports")
    const reportButtons = make("div", "row")
    const whole = button("quiet", "Label the whole answer", "⇧ M", () => this.reportWhole())
    whole.setAttribute("aria-keyshortcuts", "Shift+M")
    reportButtons.append(button("quiet", "Label words or a sentence", "M", () => this.labelWords()), whole)
    el.reportTitle = make("div", "label")
    el.report.append(el.reportTitle, el.reportList, reportButtons)
    el.labels = make("details", "labels block")
    el.labelsTitle = make("summary", "label")
    el.labelRows = make("div", "label-rows")
    el.labels.append(el.labelsTitle, el.labelRows)
    el.nameBlock = make("div", "block name-block")
    el.name = named("input", "text", "", { id: "name", type: "text", maxlength: "80", autocomplete: "name", placeholder: "Asked once, recorded with every decision" })
    el.nameBlock.append(named("label", "label", "Your name", { for: "name" }), el.name)
    el.ask = named("div", "ask message tone-warn", "", { role: "alert" })
    el.submit = button("primary", "Submit", "Ctrl ↵", () => this.submit())
    el.discard = button("quiet", "Discard draft", "", () => this.discard())
    el.saved = named("span", "saved dim", "", { "aria-live": "off" })
    el.deciding = make("div", "row")
    el.deciding.append(el.submit, el.discard, el.saved)
    el.foot = make("div", "foot")
    el.foot.append(el.check, el.deciding, el.message)
    el.form.append(el.restored, el.editor, el.reasonBlock, noteBlock, el.labels, el.report, el.nameBlock, el.ask)
    el.advance = named("input", "", undefined, { type: "checkbox" })
    el.advance.checked = this.advances()
    el.advance.onchange = () => { try { localStorage.setItem(ADVANCE, el.advance.checked ? "on" : "off") } catch { /* a browser that keeps nothing */ } }
    const advance = make("label", "dim advance")
    advance.append(el.advance, make("span", "", "Open the next case after a decision"))
    el.history = make("details", "history")
    el.go = named("nav", "go", "", { "aria-label": "Cases of this queue" })
    el.back = button("step", "Previous", "K", () => this.go("back"))
    el.skip = button("step", "Skip", "S", () => this.go("skip"))
    el.next = button("step strong", "Next", "N", () => this.next())
    el.waiting = make("span", "dim waiting")
    el.keys = button("quiet", "Keys", "H", () => this.help())
    el.go.append(el.next, el.skip, el.back, el.waiting, el.keys, advance)
    el.help = named("dialog", "sheet", "", { "aria-label": "Keys" })
    this.issue = new IssueForm(this)
    // what is said comes below Submit: fields and buttons keep their place when it comes and goes
    panel.append(el.title, el.about, el.verdicts, el.take, el.notice, el.standing, el.form, el.foot, el.go, el.history, el.help)
    this.root.replaceChildren(panel, this.issue.el.dialog)
    el.other.oninput = () => this.change({ other: wellFormed(el.other.value) }, { typed: true })
    el.note.oninput = () => this.change({ note: wellFormed(el.note.value) }, { typed: true })
    el.corrected.oninput = () => { const text = wellFormed(el.corrected.value); this.change({ corrected: text === this.data.answer ? null : text }, { typed: true }) }
    for (const moved of ["pointerup", "keyup", "input"]) el.corrected.addEventListener(moved, () => { this.careted = true })
    el.form.addEventListener("focusin", event => { if (typesIn(event.target)) this.clearOfFoot() })
    for (const field of [el.other, el.note, el.corrected]) field.onblur = () => { this.tidy(); this.flush() }
    // a field that is left for a button says nothing: what it says would move the button before the click ends
    const confirm = aloud => {
      if (!this.name() || this.data.reviewer || this.busy || this.nameSent === this.name()) return
      this.nameSent = this.name()
      this.nameConfirmed = true
      this.act("name")
      if (aloud) this.say(`Decisions are recorded as ${this.name()} from now on; the name at the top right changes that.`)
    }
    el.name.oninput = () => { this.nameTyped = true; this.nameConfirmed = Boolean(this.name()) }
    el.name.onblur = () => { if (this.nameTyped) confirm(false) }
    el.name.onkeydown = event => { if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) { confirm(true); el.name.blur() } }
  }

  draw() {
    const { el, data, fields } = this
    const verdict = fields.verdict
    if (this.answer !== data.answer) {
      if (fields.corrected === null) el.corrected.value = data.answer
      this.answer = data.answer
    }
    el.corrected.maxLength = data.longest
    el.title.textContent = `Decision on ${data.about.name}`
    el.about.textContent = data.about.note
    el.about.hidden = !data.about.note
    el.take.hidden = !data.revision || this.closed() || Boolean(data.standing && !this.open()) || fields.verdict === "override" && fields.corrected !== null
    el.take.firstChild.textContent = `Take ${data.revision} as correction`
    el.notice.hidden = !data.notice || data.notice.text === this.own?.text
    el.notice.className = `notice message tone-${data.notice?.tone ?? "calm"}`
    el.notice.textContent = data.notice?.text ?? ""
    if (!this.nameTyped && !el.name.value) el.name.value = data.suggested_name
    this.drawStanding()
    this.drawAsk()
    const open = this.open()
    el.form.hidden = !open
    el.verdicts.hidden = !open
    el.deciding.hidden = !open
    const begun = this.entered()
    this.drawMessage()
    el.restored.hidden = !(data.restored && begun)
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
    el.submit.firstChild.textContent = this.busy ? "Submitting…" : verdict ? `Submit: ${data.verdicts.find(each => each.code === verdict).text.toLowerCase()} ${data.about.name}${this.asked ? " all the same" : ""}` : "Submit"
    el.submit.disabled = Boolean(this.busy)
    el.discard.hidden = !begun
    // a verdict and a reason are chosen, not written
    const written = { ...fields, verdict: data.blank.verdict, reason: data.blank.reason }
    el.saved.textContent = JSON.stringify(written) === JSON.stringify(data.blank) ? "" : this.dirty ? "Saving the draft…" : "Draft saved"
    this.drawHistory()
    el.skip.disabled = !data.go.waiting
    el.next.classList.toggle("primary", !open)
    el.waiting.textContent = data.go.says
    if (this.foot !== el.foot.offsetHeight) {
      this.foot = el.foot.offsetHeight
      this.root.style.setProperty("--foot", `${this.foot}px`)
      this.clearOfFoot()
    }
  }

  // What has the focus stands above the foot, which lies over the form and grows with what it says.
  clearOfFoot() {
    const chosen = this.root.getRootNode().activeElement
    if (this.el.form.contains(chosen) && !this.el.editor.contains(chosen)) chosen.scrollIntoView({ block: "nearest" })
  }

  drawMessage() {
    const { previous, standing } = this.data
    const before = previous && !standing && !this.entered() ? { text: `${previous}.`, tone: "calm", before: true } : null
    const message = this.own ?? this.data.message ?? before
    this.namesPrevious = Boolean(message) && message === before
    this.el.message.replaceChildren()
    this.el.message.hidden = !message
    if (message) {
      this.el.message.className = `message tone-${message.tone}`
      this.el.message.append(make("span", "", message.text))
      if (message.before) this.el.message.append(" ", button("quiet", message === before ? "Undo it there" : "Undo", "U", () => this.undo()))
      if (message.narrowed) this.el.message.append(" ", button("quiet", "Go on with the whole queue", "N", () => this.go("whole_queue")))
    }
  }

  // Asked once before an answer with open serious issues is approved; the log records that they were listed.
  drawAsk() {
    const { el, data } = this
    const shown = Boolean(this.asked) && this.fields.verdict === "approve"
    el.ask.hidden = !shown
    if (!shown) { el.ask.replaceChildren(); return }
    if (el.ask.childElementCount) return
    const count = data.serious.length
    const list = make("ul", "serious")
    for (const each of data.serious.slice(0, 8)) {
      const item = make("li", "")
      item.append(pill(each.label), named("span", "", ` ${each.text}`, { dir: "auto" }), make("span", "dim", ` ${each.severity}`))
      list.append(item)
    }
    if (count > 8) list.append(make("li", "dim", `and ${count - 8} more`))
    el.ask.append(make("p", "", `${count === 1 ? "One serious issue is" : `${count} serious issues are`} open in ${data.about.name}. Approve it all the same? A again, or submit; the decision records that you saw this. U takes it back.`), list)
  }

  drawStanding() {
    const { el, data } = this
    const current = data.standing
    el.standing.replaceChildren()
    el.standing.hidden = !current
    if (!current) return
    const head = make("div", "row")
    head.append(pill({ text: current.what, tone: current.tone }), make("span", "dim", `by ${current.who}, ${current.when}`))
    el.standing.append(head)
    if (current.why) el.standing.append(named("p", "", current.why, { dir: "auto" }))
    if (current.note) el.standing.append(named("p", "dim", current.note, { dir: "auto" }))
    if (current.reported.length) el.standing.append(make("p", "label", "Reported issues"), this.reportList(current.reported))
    const back = make("div", "row")
    if (current.undoable && !this.own?.before) back.append(button("step", "Undo", "U", () => this.undo()))
    el.standing.append(back)
    if (!this.open() && !this.closed()) {
      el.standing.append(make("p", "dim small", "To decide again, choose a verdict: "))
      const choices = make("div", "row again")
      for (const each of data.verdicts) choices.append(button("quiet", each.text, LETTER[each.code], () => this.choose(each.code)))
      el.standing.append(choices)
    }
  }

  drawVerdicts() {
    const { el, data, fields } = this
    if (!el.verdicts.children.length) {
      for (const each of data.verdicts) {
        const choice = make("label", `verdict tone-${each.tone}`)
        choice.title = each.meaning
        const input = named("input", "", undefined, { type: "radio", name: "verdict", value: each.code, "aria-keyshortcuts": LETTER[each.code] })
        input.onchange = () => this.choose(each.code)
        choice.append(input, named("span", "glyph", GLYPH[each.code], { "aria-hidden": "true" }), make("span", "", each.text), named("kbd", "", LETTER[each.code], { "aria-hidden": "true" }))
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
    const needed = data.verdicts.some(each => each.code === fields.verdict && each.needs_reason)
    el.reasonTitle.textContent = needed ? "One reason" : "One reason (optional)"
    const escalates = fields.verdict === "escalate"
    el.reasonHint.hidden = !escalates && offered.filter(each => each.suggested).length < 2
    el.reasonHint.textContent = escalates ? "It stays open for another reviewer or more evidence; whom it waits for is assigned below." : "The main one; the note (T) takes the others."
    const drawn = JSON.stringify(offered)
    if (el.reasons.dataset.drawn !== drawn) {
      el.reasons.dataset.drawn = drawn
      el.reasons.replaceChildren()
      offered.forEach((each, index) => {
        const choice = make("label", `reason${each.suggested ? " suggested" : ""}`)
        const input = named("input", "", undefined, { type: "radio", name: "reason", value: each.code })
        input.onchange = () => this.reason(each.code, false)
        choice.append(input, named("kbd", "", String(index + 1), { "aria-hidden": "true" }), make("span", "", each.text))
        if (each.suggested) choice.append(make("span", "hint", "suggested"))
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
    el.offenders.replaceChildren()
    const { check } = data
    el.check.hidden = !check || !this.open() || this.fields.verdict !== "override"
    if (!check) return
    const count = (number, word, tone, glyph) => {
      const item = make("span", `count tone-${number ? tone : "calm"}`)
      item.append(named("span", "glyph", glyph, { "aria-hidden": "true" }), make("span", "", `${number} ${word}`))
      el.check.append(item)
    }
    count(check.references, check.references === 1 ? "reference" : "references", "calm", "•")
    count(check.fabricated_count, "fabricated", "bad", "✕")
    count(check.uncited_count, "uncited", "warn", "~")
    if (this.dirty) el.check.append(make("span", "dim", "checking…"))
    if (check.changed.length) {
      const row = named("p", "dim changed", "Changes: ", { dir: "auto" })
      row.append(...inked(check.changed))
      if (check.dropped.length) row.append(make("b", "", ` Drops ${check.dropped.map(each => `[${each}]`).join(", ")}.`))
      el.offenders.append(row)
    }
    const untouched = this.fields.corrected !== null && untouchedIssues(el.corrected.value, number => this.showIssue(number))
    if (untouched) el.offenders.append(untouched)
    if (check.beside) el.offenders.append(make("p", "dim", check.beside))
    el.offenders.append(...offenders(check))
  }

  drawLabels() {
    const { el, data, fields } = this
    el.labels.hidden = !data.labels.rows.length
    const given = fields.labels[data.labels.base] ?? {}
    const count = Object.keys(given).length
    el.labelsTitle.replaceChildren(make("span", "", count ? `Labels on single claims and references: ${count} given` : "Label single claims and references"), named("kbd", "", "L", { "aria-hidden": "true" }))
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
    const issues = this.reported()
    el.report.hidden = !data.answer.trim()
    // of a case without an audit, and for whom it is hidden, nobody knows here what the audit missed
    el.reportTitle.textContent = data.labels.base ? "Issues that the audit missed" : "Issues that you found"
    el.reportList.hidden = !issues.length
    const open = this.open()
    const drawn = JSON.stringify(issues)
    if (el.reportList.dataset.drawn !== drawn) {
      el.reportList.dataset.drawn = drawn
      el.reportList.replaceChildren(...issues.map((report, place) => {
        const item = this.reportItem(report)
        const edit = button("quiet", "Edit", "", () => this.editReport(place))
        const remove = button("quiet", "Remove", "", () => {
          this.setReported(this.reported().filter((_, index) => index !== place), `Removed: ${report.type}, ${aboutWords(report)}.`)
          el.report.querySelector(".reports button, .row button").focus()
        })
        for (const each of [edit, remove]) each.setAttribute("aria-label", `${each.textContent}: ${report.type}, ${aboutWords(report)}`)
        item.firstChild.append(edit, remove)
        return item
      }))
    }
    // the answer marks them: those of the form, else those of the decision that stands
    const shown = { digest: data.shown.digest, edited: open, issues: open ? issues : data.reporting.standing }
    const drawnAs = JSON.stringify(shown)
    if (this.lastReported === drawnAs && window.masisReported?.digest === shown.digest) return
    this.lastReported = drawnAs
    window.masisReported = shown
    window.dispatchEvent(new Event("masis-reported"))
  }

  reportItem(report) {
    const item = make("li", "")
    const head = make("div", "row")
    head.append(pill({ text: report.type, tone: TONE_OF[report.severity] }), make("span", "dim", report.severity))
    item.append(head, named("div", "", aboutWords(report), { dir: "auto" }))
    if (report.note) item.append(named("div", "dim", report.note, { dir: "auto" }))
    return item
  }

  reportList(issues) {
    const list = make("ul", "reports")
    list.append(...issues.map(each => this.reportItem(each)))
    return list
  }

  labelRow(row) {
    const { data } = this
    const line = make("div", "label-row")
    const words = named("div", "label-words", "", { dir: "auto" })
    if (row.where) words.append(make("span", "dim", `${row.where} `))
    words.append(make("span", row.kind === "reference" ? "label-ref" : "", row.text))
    const select = named("select", "text", undefined, { "data-key": row.key, "aria-label": `${row.kind[0].toUpperCase()}${row.kind.slice(1)} ${row.text}: the audit says ${row.machine.text}. Your label` })
    select.append(new Option("No label", ""), new Option(`Agree: ${row.machine.text}`, row.verdict))
    for (const [code, text] of data.labels.choices[row.kind]) if (code !== row.verdict) select.append(new Option(`${text[0].toUpperCase()}${text.slice(1)}, not ${row.machine.text}`, code))
    select.onchange = () => {
      const { [data.labels.base]: own, ...others } = this.fields.labels
      const { [row.key]: _, ...given } = own ?? {}
      if (select.value) given[row.key] = select.value
      const labels = Object.keys(given).length ? { ...others, [data.labels.base]: given } : others
      this.change({ labels }, { now: true, says: select.value ? `Labelled: ${select.selectedOptions[0].textContent.toLowerCase()}.` : "The label is removed." })
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
      head.append(pill({ text: entry.what, tone: entry.tone }), make("span", "dim", [entry.who, entry.when].filter(Boolean).join(", ")))
      if (entry.undone) head.append(make("span", "dim", "undone"))
      item.append(head)
      if (entry.why) item.append(named("div", "", entry.why, { dir: "auto" }))
      if (entry.note) item.append(named("div", "dim", entry.note, { dir: "auto" }))
      const extras = [entry.corrected && "with a corrected answer", entry.labels && `${entry.labels} ${entry.labels === 1 ? "label" : "labels"}`].filter(Boolean)
      if (extras.length) item.append(make("div", "dim", extras.join(", ")))
      if (entry.reported.length) item.append(this.reportList(entry.reported))
      list.append(item)
    }
    el.history.replaceChildren(make("summary", "label", `History of this case: ${data.history.length} ${data.history.length === 1 ? "entry" : "entries"}`), list)
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
