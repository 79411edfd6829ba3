// The desk: an answer with its evidence, and the form to decide it. It talks to the desk's
// API (desk_api.py). Each answer of the server carries what to show next. Typed text stays in the
// browser's storage until the server confirms it, so that a killed server, browser or connection
// loses nothing.
const TYPING_PAUSE_MS = 600
const ANSWER_TIMEOUT_MS = 20_000
const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 8_000
const RETRIED = new Set([429, 502, 503, 504]) // statuses that say "try again later"
// Streamlit answers a message within a fraction of a second. If it hasn't by then, it was restarted.
const FOLLOW_TIMEOUT_MS = 4_000
// A browser goes on sending up to 64 KiB for a page that is closed (Fetch standard, 4.6), of all its
// requests together
const MOST_KEPT_ALIVE = 30_000
const isSmall = text => new Blob([text]).size < MOST_KEPT_ALIVE
// A key pressed sooner was meant for the case before, and must not decide this one
const MIN_READING_MS = 400
// Nothing is recorded about a case that followed another one sooner than this. Keys pressed ahead
// may choose a verdict and submit it within that time.
const MIN_CASE_MS = 1000
// A second press answers yes to a question of the server only if it has been shown for this long
const MIN_QUESTION_MS = 1000
// A press on Submit sooner than this after the one before repeats it: a double click, or a key that
// is pressed until the page reacts
const REPEATED_PRESS_MS = 2000
const ADVANCE_KEY = "masis-advance"
const NAME_KEY = "masis-reviewer" // stored by reviewer.js
const NAME_FOLLOWS_MS = 5000
// The decisions and skips of this window, newest last. U undoes them one by one.
const decided = []
const GLYPH = { approve: "✓", override: "✎", reject: "✕", escalate: "↗" }
const LETTER = { approve: "A", override: "O", reject: "X", escalate: "E" }
const PLACE = ".st-key-answer-place"
const desks = new WeakMap()

// The entries that the check of an answer is about (`check` in desk.py and final_desk.py)
const checkedFields = fields => pick(["verdict", "corrected", "taken", "about"], fields)
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const makeToken = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), String).join("-")
// The storage of a browser may be disabled or full. The server has the text in a moment, too.
const readStored = key => {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}
const store = (key, text) => {
  try {
    if (text === null) localStorage.removeItem(key)
    else localStorage.setItem(key, text)
  } catch {
    /* disabled or full */
  }
}
// The digits that choose from a list: 1 is the first place, and 0 the tenth
const DIGITS = "1234567890"
const digitOf = place => DIGITS[place] ?? ""
const placeOfDigit = key => (key.length === 1 ? DIGITS.indexOf(key) : -1)
const FIELD_NAMES = {
  // in the order in which an undone step is named
  reported: "the reported issue",
  labels: "the label",
  chunks: "the label of the chunk",
  missing: "the missing passage",
  reason: "the reason",
  also: "the further reason",
  corrected: "the correction",
  verdict: "the verdict",
  note: "the note",
  other: "the reason",
}
class Desk {
  constructor(root) {
    this.root = root
    this.fields = {}
    this.steps = []
    this.dock = 0 // the height of the docked editor of the correction
    this.pressedAt = -Infinity // the last press on Submit
    this.nameDeadline = performance.now() + NAME_FOLLOWS_MS
    this.build()
    this.reading = make("div")
    this.answerRoot = make("div", "root")
    this.sides = make("div", "root sides")
    this.reading.append(this.answerRoot, this.sides)
    this.column = root.getRootNode().host?.closest(STREAMLIT.elements.column)
    this.pane = this.column?.querySelector(`:scope > ${STREAMLIT.elements.container}`)
    this.stopFitting = this.pane ? fitToWindow(this.pane) : () => {}
    this.listeners = new AbortController()
    this.labelBar = new LabelBar(this, this.listeners.signal)
    const listen = (target, name, handler) =>
      target.addEventListener(name, handler, { signal: this.listeners.signal })
    listen(document, "keydown", event => this.onKeydown(event))
    // another page, or the browser's Back button: whatever Streamlit shows now is meant
    listen(window, "popstate", () => this.onHistory())
    listen(window, "online", () => this.retryNow?.())
    listen(window, "masis-offline", event => this.setOffline(event.detail))
    listen(window, "masis-key-ignored", () =>
      this.showMessage("A key that you pressed while a dialog opened or closed had no effect."),
    )
    listen(window, "pagehide", () => this.saveOnLeaving())
    listen(document, "visibilitychange", () => this.save())
    listen(window, "storage", event => this.onOtherTab(event))
    this.resizes = new ResizeObserver(() => this.placeEditor())
    if (this.column?.previousElementSibling)
      this.resizes.observe(this.column.previousElementSibling)
    this.resizes.observe(this.el.editor) // it grows with its text
    this.textResizes = new ResizeObserver(() => this.keepTypedLine())
    this.textResizes.observe(this.el.corrected)
  }

  leave() {
    this.saveOnLeaving()
    this.stopFitting()
    this.listeners.abort()
    this.resizes.disconnect()
    this.textResizes.disconnect()
    this.view?.leave()
    this.el.editor.hidden = true
    this.placeEditor()
    this.setAhead(null)
    clearTimeout(this.readyTimer)
    this.hasLeft = true
    this.retryNow?.()
  }

  // --- what is shown
  // -----------------------------------------------------------------------------

  // Applies the data of a run of the page. A run that started before Streamlit learned which answer
  // was opened here is out of date.
  update({ data, setTriggerValue }) {
    this.trigger = setTriggerValue
    this.attach()
    if (this.ahead && !isEqual(data.place, this.ahead)) return
    this.pageData = data
    this.setAhead(null)
    this.fromPage = { suggested_name: data.suggested_name, keys: data.keys }
    this.show(data)
  }

  // Back or forward may lead to the case that the page was last drawn for. Streamlit doesn't call a
  // component whose data is as before, although the desk has moved on from it.
  onHistory() {
    this.setAhead(null)
    const data = this.pageData
    const isBack = data?.place.case === new URLSearchParams(location.search).get("case")
    if (isBack && data.place.case !== this.data.place.case) this.show(data)
  }

  // Draws the answer into its place in the page, which Streamlit may rebuild.
  attach(tries = 20) {
    const host = [...document.querySelectorAll(`${PLACE} *`)].find(element => element.shadowRoot)
    const place = host?.shadowRoot.querySelector(".root")
    if (place) {
      if (this.reading.parentNode !== place) place.replaceChildren(this.reading)
      return
    }
    if (!this.reading.isConnected) this.root.prepend(this.reading)
    if (tries && this.column) setTimeout(() => this.hasLeft || this.attach(tries - 1), 50)
  }

  // Shows the data of an answer. Typed text is never replaced by an older draft.
  show(data) {
    const before = this.data
    // not the data's case: if drawing an answer has failed, the form is still the one before
    const isSameCase = this.formPlace?.case === data.place.case
    const isNamedNow = isSameCase && before.reviewer !== data.reviewer
    if (isSameCase && data.seen < before.seen) return
    if (!isSameCase) this.leaveForm()
    this.data = { ...data, ...this.fromPage }
    this.checked = data.draft
    const isOtherAnswer = !before || !isEqual(before.shown, data.shown)
    if (isOtherAnswer || this.fields.verdict !== this.confirming?.verdict) this.confirming = null
    if (isSameCase && before.about.name !== data.about.name) this.noteOtherAnswer()
    if (this.view?.version !== data.view.version) {
      this.view?.leave()
      this.view = drawAnswer(this.answerRoot, data.view, this)
      this.labelBar.attach(this.view)
      this.lastReported = this.lastLabelled = null
      this.drawnAt = performance.now()
    }
    const isFilled = !isSameCase || (!this.dirty && data.saved_at > this.savedAt)
    if (!isSameCase) this.openForm()
    else if (isFilled) this.fill(data.draft)
    if (isNamedNow && !this.dirty) this.recall()
    this.formPlace = data.place
    if (data.saved_at > this.savedAt) this.savedAt = data.saved_at
    this.draw()
    this.drawReady()
    // reopen a report that was being written when the page was reloaded
    if (isFilled && this.fields.reporting?.answer === data.shown.digest)
      this.issue.open(this.fields.reporting)
  }

  // Another iteration is shown, and the form is about it now. What was said before was about the other.
  noteOtherAnswer() {
    const { name } = this.data.about
    this.question = null
    this.localMessage = this.fields.verdict
      ? { text: `Your decision is now about ${name}. Check its reasons, or go back.`, tone: "warn" }
      : null
  }

  // Saves the form of a case that is being left. A field of it must not get the keys that are meant
  // for the next case, and saves its text when it loses the focus.
  leaveForm() {
    if (!this.formPlace) return
    const focused = this.root.getRootNode().activeElement
    if (this.root.contains(focused)) focused.blur()
    this.saveOnLeaving()
    this.dirty = false
  }

  // Starts the form of a case with its draft.
  openForm() {
    const { data } = this
    const isFirst = !this.formPlace
    this.formPlace = data.place
    this.renewForm()
    this.localMessage = null
    this.savedAt = data.saved_at
    this.restored = data.saved_at && data.restored
    this.drawnAt = this.openedAt = performance.now()
    this.fill(data.draft)
    this.recall()
    this.isTouched = this.followsAnother = this.followsDecision = this.namesUndo = false
    // The link or button that led here may still be on the page, with the focus, and would get the
    // keys that are meant for this case.
    let pressed = document.activeElement
    while (pressed.shadowRoot?.activeElement) pressed = pressed.shadowRoot.activeElement
    if (!typesIn(pressed) && focusIsOutside(pressed, this.root)) pressed.blur()
    // the next case starts at its question, however far the one before was scrolled
    const main = document.querySelector(STREAMLIT.elements.main)
    if (!isFirst) for (const part of [main, this.pane]) part?.scrollTo({ top: 0 })
  }

  // Forgets what belongs to a form that was submitted or left.
  renewForm() {
    this.token = makeToken()
    this.steps = []
    this.confirming = null
    this.confirmed = []
    this.question = null // a question of the server, with the time from which it's shown
    this.wasAsked = ""
    this.left = [] // serious issues that were sent with the decision, for the question about it
    this.reopened = false
    this.restored = ""
    this.repeats = false // the form started with the entries of the decision
    this.hasCaret = false
  }

  // Opens another answer: `change` of the present one, or where `to` leads.
  async go(to, change = {}) {
    if (this.refuseIfBusy()) return
    if (this.confirming) this.withdraw()
    const place = { ...this.data.place, ...change }
    await this.act("open", { to, place, came_from: this.cameFrom ?? "" })
  }

  // Sends an action and shows what the server answers, after `onAnswer`. Other actions wait until
  // then.
  async act(path, body, onAnswer) {
    const { place, queue } = this.data
    this.busy = path
    this.hasRefusedKey = false
    this.draw()
    this.drawReady()
    try {
      if (path !== "decisions") await this.save() // a decision has the entries itself
      const answer = await this.send("POST", path, { place, queue, ...body })
      this.busy = ""
      const { entry, done: text } = answer
      const final = Boolean(this.data.final)
      // a decision that can't be undone has no entry: U must not reach for the one before it
      if (entry || (path === "decisions" && text))
        decided.push({ entry, case: place.case, text, verdict: body.fields?.verdict, final })
      onAnswer?.()
      // somebody has opened another case with the browser's buttons in the meantime
      if (this.hasLeft || this.data.place.case !== place.case) return null
      if (answer.desk) this.move(answer.desk, body.to === "whole_queue")
      this.followsAnother = path !== "undo" && this.data.place.case !== place.case
      this.followsDecision = this.followsAnother && Boolean(entry)
      if (answer.message) this.tell(answer.message)
      else if (this.hasRefusedKey && !this.followsDecision)
        this.showMessage("A key that you pressed while this case was loading had no effect.")
      return answer
    } catch (error) {
      this.busy = ""
      await this.onRefusal(error)
      return null
    } finally {
      if (!this.hasLeft) {
        this.draw()
        this.drawReady()
      }
    }
  }

  // Shows an answer that the server has opened, and lets Streamlit follow: the address and the page
  // around the desk.
  move(data, usesWholeQueue = false) {
    if (this.cameFrom === data.place.case) this.cameFrom = ""
    this.show(data)
    this.setAhead(data.place)
    this.follow({ place: data.place, whole_queue: usesWholeQueue })
  }

  // Notes which answer Streamlit has yet to follow to. The page's head is dimmed while it is still
  // about another case.
  setAhead(place) {
    this.ahead = place
    const isOtherCase = Boolean(place) && place.case !== this.pageData?.place.case
    document.documentElement.toggleAttribute("data-desk-ahead", isOtherCase)
    if (!place) clearTimeout(this.followTimer)
  }

  follow(opened) {
    this.trigger("open", { ...opened, name: this.reviewerName(), at: Date.now() })
    clearTimeout(this.followTimer)
    this.followTimer = setTimeout(() => {
      if (this.ahead && this.root.isConnected) this.follow(opened)
    }, FOLLOW_TIMEOUT_MS)
  }

  // Shows a message of the server, and focuses the field that it is about.
  tell(message) {
    this.localMessage = { tone: "calm", ...message }
    this.draw()
    if (message.where)
      whenReleased(this.root, () => this.focusField(message.where), "field of the message")
  }

  // Shows why the server refused an action. If something has changed, shows its present state.
  async onRefusal(error) {
    if (this.hasLeft) return
    const { place } = this.data
    if (error.confirms) this.confirmed.push(error.confirms)
    if (error.status === 409) {
      try {
        const { desk } = await this.send("POST", "open", { place, queue: this.data.queue })
        if (this.data.place.case === place.case) this.move(desk)
      } catch {
        /* its own message says what to do */
      }
    }
    const isQuestion = [409, 422].includes(error.status)
    const tone = isQuestion ? "warn" : "bad"
    // A text that was typed just before is checked only now
    if (error.confirms && !this.isFinal) await this.save()
    if (this.hasLeft || this.data.place.case !== place.case) return
    const isListed = this.left.length || this.audited?.serious.length
    const left = error.confirms && isListed ? this.openSerious() : []
    if (left.length) this.ask(left)
    else if (error.confirms) this.question = { text: error.message, at: performance.now() }
    this.tell({ text: error.message, tone, where: left.length ? "" : error.field })
    this.drawReady()
  }

  // --- the server
  // ------------------------------------------------------------------------------

  headers() {
    const name = this.reviewerName()
    return {
      "Content-Type": "application/json",
      "X-Masis-Request": "1",
      ...(name && this.isNamed() && { "X-Masis-Reviewer": encodeURIComponent(name) }),
    }
  }

  async request(method, path, body) {
    const text = JSON.stringify(body)
    const response = await fetch(`/api/v1/desk/${path}`, {
      method,
      headers: this.headers(),
      body: text,
      keepalive: isSmall(text),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
    const answer = await response.json()
    if (response.ok) return answer
    const { message, problem, hint, field, confirms } = answer.error
    const { status } = response
    const says =
      status === 401
        ? "Your session has ended. Sign in again in another tab."
        : message || `${problem}. ${hint}`
    throw Object.assign(new Error(says), { status, field, confirms })
  }

  // Sends a request until the server answers. A decision has a token, and a draft replaces the one
  // before, so that it is safe to send either again.
  async send(method, path, body) {
    for (let wait = FIRST_RETRY_MS; ; wait = Math.min(2 * wait, LONGEST_RETRY_MS)) {
      try {
        const answer = await this.request(method, path, body)
        this.setOffline(false)
        return answer
      } catch (error) {
        const isRefusal = error.status && !RETRIED.has(error.status)
        if (isRefusal || this.hasLeft) {
          this.setOffline(false)
          throw error
        }
        this.setOffline(true)
        await Promise.race([pause(wait), new Promise(resolve => (this.retryNow = resolve))])
      }
    }
  }

  setOffline(offline) {
    if (this.offline === offline || this.hasLeft) return
    this.offline = offline
    this.draw()
  }

  // --- the draft
  // ------------------------------------------------------------------------------

  storageKey() {
    return `masis-draft:${this.formPlace.case}`
  }

  draftBody() {
    const { formPlace: place } = this
    const { queue } = this.data
    return { place, queue, fields: this.fields, token: this.token, seen: this.data.seen }
  }

  // Saves the form, and again if it changes in the meantime. Only one request is in progress at a time.
  save() {
    clearTimeout(this.saveTimer)
    this.saving ??= this.saveChanges().finally(() => {
      this.saving = null
    })
    return this.saving
  }

  async saveChanges() {
    while (this.dirty) {
      const { edit } = this
      const body = this.draftBody()
      try {
        const saved = await this.send("PUT", "draft", body)
        if (body.token !== this.token) continue // another form is open now
        this.savedAt = saved.saved_at || this.savedAt
        if (this.data.check || saved.check) this.data.check = saved.check
        this.checked = body.fields
        if (saved.message) this.tell(saved.message)
        if (edit === this.edit) this.markSaved()
      } catch (error) {
        if (this.hasLeft) return
        if (body.token !== this.token) continue
        this.tell({ text: `The draft couldn't be saved: ${error.message}`, tone: "bad" })
        return
      }
    }
    if (!this.hasLeft && this.data) this.draw()
  }

  saveSoon(now) {
    clearTimeout(this.saveTimer)
    this.saveTimer = setTimeout(() => this.save(), now ? 0 : TYPING_PAUSE_MS)
  }

  // Sends the draft of a page that is being left, without waiting for the answer.
  saveOnLeaving() {
    if (!this.dirty || this.busy === "decisions") return
    clearTimeout(this.saveTimer)
    const body = JSON.stringify(this.draftBody())
    const request = { method: "PUT", headers: this.headers(), body, keepalive: isSmall(body) }
    fetch("/api/v1/desk/draft", request).catch(() => {}) // the browser's storage has the text
  }

  markSaved() {
    this.dirty = false
    store(this.storageKey(), null)
  }

  // Restores a draft that this browser stored because the server hadn't confirmed it.
  recall() {
    const { data } = this
    this.dirty = false
    const kept = JSON.parse(readStored(this.storageKey()) ?? "null")
    if (typeof kept?.fields !== "object" || data.tokens.includes(kept.token)) return
    // After a reload the page is drawn before it knows the name, and a text that was typed under a
    // name waits for that name.
    if (kept.reviewer && kept.reviewer !== data.reviewer) return
    if (data.saved_at && kept.at <= Date.parse(data.saved_at)) return
    this.fill(kept.fields)
    this.change({}, { now: true })
  }

  // Takes over what another tab of this browser enters about the same case. Otherwise, the tab that
  // saves last would replace the draft of the other one.
  onOtherTab({ key, newValue }) {
    if (!newValue || !this.formPlace || key !== this.storageKey() || this.dirty || this.busy) return
    const { fields, reviewer } = JSON.parse(newValue)
    const { data } = this
    const namesOf = entries => Object.keys(entries).toSorted()
    const isSameForm = isEqual(namesOf(fields), namesOf(data.blank)) // not the adjudication's
    if (!isSameForm || (reviewer ?? "") !== data.reviewer) return
    this.fill(fields)
    this.showMessage("This case is open in another tab, too. Both tabs have the same entries.")
  }

  fill(fields) {
    this.fields = { ...this.data.blank, ...fields }
    this.el.other.value = this.fields.other
    this.el.note.value = this.fields.note
    this.el.sentence.value = this.fields.sentence ?? ""
    this.drawnBase = this.base()
    this.el.corrected.value = this.fields.corrected ?? this.drawnBase
  }

  // Returns the answer that a correction starts from: the one shown, or in an adjudication the one
  // that the taken decision is about.
  base() {
    return this.data.final ? (this.side().before ?? "") : this.data.answer
  }

  clearForm() {
    this.markSaved()
    this.renewForm()
    this.fill({})
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
    this.question = null // it was about other entries
    this.edit = (this.edit ?? 0) + 1
    this.dirty = this.isTouched = true
    const { reviewer } = this.data
    const kept = { at: Date.now(), reviewer, token: this.token, fields: this.fields }
    store(this.storageKey(), JSON.stringify(kept))
    this.saveSoon(now)
    this.draw()
    if (typed) this.scrollAboveFooter() // the field may have grown with its text
  }

  // --- keys and buttons
  // -----------------------------------------------------------------------

  // Returns the milliseconds until a reader can have seen what is shown. Keys don't decide before
  // that.
  readingTimeLeft() {
    const since = Math.max(this.drawnAt, this.confirming?.at ?? 0)
    const asked = this.question ? this.question.at + MIN_QUESTION_MS : 0
    return Math.max(0, Math.max(since + MIN_READING_MS, asked) - performance.now())
  }

  drawEditor() {
    this.el.editor.hidden = this.fields.verdict !== "override" || !this.isOpen()
    this.placeEditor()
  }

  drawReady() {
    clearTimeout(this.readyTimer)
    const unread = this.followsAnother ? this.openedAt + MIN_CASE_MS - performance.now() : 0
    const left = Math.max(this.readingTimeLeft(), unread)
    this.el.panel.dataset.ready = String(left <= 0 && !this.busy)
    if (left > 0) this.readyTimer = setTimeout(() => this.drawReady(), left)
  }

  opensNextCase() {
    return this.el.advance.checked
  }

  // Chooses a verdict. "Approve" is recorded at once if the case has no decision yet.
  onVerdictKey(verdict) {
    if (this.refuseIfBlocked()) return
    const { final, standing } = this.data
    if (final && !this.isOpen()) {
      this.showMessage(this.settledMessage())
      return
    }
    if (this.refuseVerdict(verdict)) return
    this.choose(verdict)
    if (verdict === "approve" && !standing && !final) {
      this.submit()
      return
    }
    this.scrollIntoView()
    if (verdict !== "override") {
      if (final) this.focusText("other")
      return
    }
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
    const faulty = this.view.showFaulty(number)
    if ("after" in faulty) {
      const { end } = this.insertionPoint(faulty.after)
      corrected.focus({ preventScroll: true })
      selectRange(corrected, [end, end])
      return
    }
    if (!("end" in faulty)) return
    const range = findWords(corrected.value, this.data.answer, faulty)
    if (!range) {
      this.showMessage("You've already changed the words of this issue.")
      return
    }
    corrected.focus({ preventScroll: true })
    selectRange(corrected, range)
  }

  // Returns where a missing point is inserted: after the sentence that cites the same evidence and
  // what was inserted there before, or else after the sentence with the caret, or else at the end.
  insertionPoint(after) {
    const { corrected } = this.el
    const text = this.fields.corrected ?? this.base()
    let end = after ? endOfSentence(text, this.base(), after) : -1
    if (end >= 0) {
      const separators = [" ", separatorAfter(text.slice(0, end))]
      const inserted = this.view.insertions.flatMap(each => separators.map(blank => blank + each))
      const nextAt = place => inserted.find(each => text.startsWith(each, place))
      for (let next = nextAt(end); next; next = nextAt(end)) end += next.length
      // of a long sentence, the last 60 characters without the word that this cuts
      const words = text.slice(0, end).split(SENTENCE_BREAK).at(-1)
      const shown = words.length > 60 ? `…${words.slice(-60).replace(/^\S*\s/, "")}` : words
      return { end, where: `after “${shown}”` }
    }
    const stop = this.hasCaret ? text.slice(corrected.selectionEnd).search(/[.!?](\s|$)/) : -1
    if (stop < 0) return { end: text.trimEnd().length, where: "at the end of the correction" }
    return { end: corrected.selectionEnd + stop + 1, where: "after the sentence with the caret" }
  }

  // Inserts a sentence of the evidence on an issue, with its citation, or only the citation that a
  // sentence lacks (`cites`), unless the correction has it (`isSaid`).
  insert({ text, after, cites }, isSaid, number) {
    // It records nothing, so it needs no time for reading.
    if (this.isClosed() ? this.refuseIfBlocked() : this.refuseIfBusy()) return
    this.reopen()
    const before = this.fields.corrected ?? this.base()
    if (isSaid(before)) {
      this.showMessage(
        `The ${this.fields.corrected === null ? "answer" : "correction"} already says this.`,
      )
      return
    }
    const { end, where } = cites
      ? { end: endOfUncited(before, after), where: "a citation" }
      : this.insertionPoint(after)
    if (end < 0) {
      this.showMessage("You've already changed the words of this issue.")
      return
    }
    const inserted = `${cites ? " " : separatorAfter(before.slice(0, end))}${text}`
    const corrected = `${before.slice(0, end)}${inserted}${before.slice(end)}`
    this.confirming = null
    this.el.corrected.value = corrected
    const isOpen = this.view.untouched(corrected).left.some(issue => issue.number === number)
    const says =
      `Inserted ${where}: ${text}` +
      (isOpen ? ` Issue ${number} is still open, because its words are unchanged.` : "")
    this.change({ verdict: "override", corrected }, { now: true, says, inserted })
    selectRange(this.el.corrected, [end, end + inserted.length])
  }

  // If the form can't decide now, shows why and returns true.
  refuseIfBlocked() {
    if (this.refuseIfBusy()) return true
    const reason = this.isClosed()
      ? `Nothing was recorded. ${this.data.notice.text}`
      : this.readingTimeLeft() && this.confirming
        ? "Nothing was recorded. Read the list, then press again."
        : this.readingTimeLeft() && this.question
          ? `Nothing was recorded. Read this, then press again. ${this.question.text}`
          : this.readingTimeLeft()
            ? "Nothing was recorded, because this answer has only just appeared. " +
              "Read it, then press again."
            : ""
    return Boolean(reason) && this.refuse(reason)
  }

  // Refuses a press on Submit that was meant for the case before. The case that follows a decision
  // may open with a complete draft, which would be recorded unread. After an undo, the entries that
  // are back are meant.
  refuseIfUnread(isRepeated) {
    if (!this.followsAnother) return false
    if (performance.now() - this.openedAt < MIN_CASE_MS && isRepeated && this.offersPrevious) {
      this.hasRefusedKey = true // the confirmation stays, and says so
      this.draw()
      return true
    }
    if (performance.now() - this.openedAt < MIN_CASE_MS)
      return this.refuse(
        "Nothing was recorded, because this case opened less than a second ago. " +
          "Read it, then press again.",
      )
    if (this.isTouched || !this.hasInput()) return false
    if (!isRepeated && performance.now() - this.openedAt > REPEATED_PRESS_MS) return false
    return this.refuse(
      "Nothing was recorded, because this case has only just opened with an earlier draft. " +
        "Check it, wait two seconds, then press again.",
    )
  }

  // If an action is in progress, says so and returns true.
  refuseIfBusy() {
    if (!this.busy) return false
    return this.refuseAsBusy()
  }

  refuseAsBusy() {
    this.hasRefusedKey = true
    return this.refuse(
      this.busy === "decisions"
        ? "Your last decision is still being recorded. Press again in a moment."
        : "The page is still loading. Press again in a moment.",
    )
  }

  refuse(reason) {
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
      if (back.corrected === this.base()) back.corrected = null
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

  // Says why the case can't have a verdict, such as an approval without an answer. Returns whether it
  // can't.
  refuseVerdict(verdict) {
    const text = this.data.verdicts.find(({ code }) => code === verdict)?.refused
    if (!text) return false
    this.tell({ text, tone: "warn" })
    return true
  }

  choose(verdict) {
    if (this.refuseIfBusy()) return
    if (this.refuseVerdict(verdict)) return
    const { entries } = this.data.standing ?? {}
    if (verdict === "approve" && entries?.verdict === verdict && !this.isOpen()) {
      this.showMessage(
        "You have approved this answer. U undoes it, and another verdict replaces it.",
      )
      return
    }
    if (!this.isOpen()) this.reopen(verdict)
    const isOther = this.fields.verdict !== verdict
    if (isOther) this.confirming = null
    if (!this.data.final || !isOther) {
      this.change({ verdict }, { now: true })
      return
    }
    this.change({ verdict, taken: "", ...this.textsFor(verdict) }, { now: true })
    this.fill(this.fields)
    this.draw()
  }

  // Opens the form of a decided case with the entries of the reviewer's own decision, because the next
  // decision replaces it with its labels and reports. Another verdict has reasons of its own.
  reopen(verdict = null) {
    const { entries } = this.data.standing ?? {}
    const isAgain = entries && !this.isOpen() && !this.hasInput()
    this.reopened = true
    if (!isAgain) return
    const isOther = verdict && verdict !== entries.verdict
    const own = pick(["verdict", "reason", "also", "other", "corrected"], this.data.blank)
    this.fill(isOther ? { ...entries, ...own } : entries)
    this.repeats = true
  }

  // The form is open unless the case has a decision and nothing new has been entered.
  isOpen() {
    const { final } = this.data
    if (final) return final.can && (final.open || this.fields.changing)
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
        this.fields.missing !== null ||
        Object.keys(this.fields.chunks).length ||
        this.fields.labels[this.labels.base] ||
        this.reportedIssues().length,
      )
    )
  }

  // Returns the issues that the reviewer reports in the answer shown.
  reportedIssues() {
    return this.fields.reported[this.digest] ?? []
  }

  // Opens the form for an issue in the words selected in the answer. Without a selection, it offers
  // the sentences.
  labelWords(words) {
    if (!this.data.answer.trim() || this.refuseIfBusy()) return
    const selected = words ?? this.view.selectedWords()
    if (selected) {
      this.issue.open(selected)
      return
    }
    // Python counts code points and JavaScript UTF-16 units: Array.from() splits into code points
    const letters = Array.from(this.data.answer)
    const sentences = this.data.reporting.sentences.map(([start, end]) => ({
      start,
      end,
      text: letters.slice(start, end).join(""),
    }))
    this.issue.open({}, sentences, this.view.placeOfReader())
  }

  // If nothing can be entered here, says why and returns true.
  refuseIfClosed() {
    if (this.isClosed()) return this.refuse(`Nothing was entered. ${this.data.notice.text}`)
    return this.isFinal && !this.isOpen() && this.refuse(this.settledMessage())
  }

  // Opens the label of the current claim, reference or chunk.
  labelTarget(target) {
    this.labelBar.open(target)
  }

  reportWhole() {
    if (this.data.answer.trim() && !this.refuseIfBusy()) this.issue.open({})
  }

  editReport(place) {
    const report = this.reportedIssues()[place]
    if (report && !this.refuseIfClosed() && !this.refuseIfBusy())
      this.issue.open({ ...report, place })
  }

  keepReport(reporting) {
    if (!reporting && !this.fields.reporting) return
    this.change({ reporting }, { now: !reporting, typed: true })
  }

  // Adds a report, or changes the one at `place`, and opens the label bar if it also `namesPassages`.
  addReport(report, place, answer, namesPassages) {
    if (answer !== this.digest) {
      this.showMessage(
        "The issue wasn't added, because the answer on the page has changed.",
        "warn",
      )
      return
    }
    this.reopen()
    const issues = [...this.reportedIssues()]
    if (place === null) issues.push(report)
    else issues[place] = report
    this.setReported(
      issues,
      withStop(
        `${place === null ? "Reported" : "Changed"}: ${report.type}, ${report.severity}, ` +
          aboutWords(report),
      ) + (namesPassages ? "" : " Press L to add passages."),
    )
    const at = place ?? issues.length - 1
    this.labelBar.suggest(at)
    this.view.onLabelled()
    if (namesPassages) this.labelBar.show({ key: `report:${at}`, kind: "report", place: at })
  }

  setReported(issues, says) {
    this.reopen()
    const { [this.digest]: _, ...others } = this.fields.reported
    // `reporting` is cleared here: once the report is added, closing the dialog must not save or
    // clear it as a draft
    this.change(
      {
        reporting: null,
        reported: issues.length ? { ...others, [this.digest]: issues } : others,
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
    if (text === corrected || /\S {2,}\S/.test(this.base())) return
    this.el.corrected.value = text
    this.change({ corrected: text === this.base() ? null : text }, { typed: true })
  }

  async submit() {
    const isRepeated = performance.now() - this.pressedAt < REPEATED_PRESS_MS
    this.pressedAt = performance.now()
    // the message of a double click's second press must not replace the confirmation of the first
    if (isRepeated && this.data.standing && !this.isOpen() && !this.busy) return
    if (this.refuseIfBusy()) return
    if (this.isOpen() && this.refuseIfUnread(isRepeated)) return
    if (this.refuseIfBlocked()) return
    const { verdict } = this.fields
    if (!this.isOpen()) {
      this.showMessage(
        this.data.final
          ? this.settledMessage()
          : "This case has a decision. Choose a verdict to decide again.",
        "warn",
      )
      return
    }
    this.joinSpaces()
    // without a name, the server asks for one
    if (!this.isNamed() && verdict && this.reviewerName()) {
      this.showMessage(
        `You're deciding as ${this.reviewerName()}. Press Enter to confirm, or type another ` +
          "name.",
        "warn",
      )
      this.askName()
      this.el.name.focus()
      this.el.name.select()
      return
    }
    const open = this.confirming || this.wasAsked === verdict ? [] : this.openSerious()
    if (verdict === "approve" && !this.confirming) {
      const listed = open.length ? open : this.unconfirmedClaims()
      if (listed.length) {
        this.ask(listed)
        return
      }
    }
    this.left = open
    const { data, token } = this
    const caseId = data.place.case
    this.localMessage = null
    clearTimeout(this.saveTimer)
    this.reopened = false
    const body = {
      ...this.draftBody(),
      shown: data.shown,
      acknowledged: this.confirming?.ids ?? [],
      confirmed: this.confirmed,
      left: open.flatMap(issue => issue.ids),
      advance: this.opensNextCase(),
      came_from: this.cameFrom ?? "",
      adopts: !data.reviewer,
      seconds: (performance.now() - this.openedAt) / 1000,
    }
    const onRecorded = () => {
      store(`masis-draft:${caseId}`, null)
      if (this.token !== token) return
      this.clearForm()
      this.cameFrom = ""
    }
    const answer = await this.act("decisions", body, onRecorded)
    if (answer && this.data.place.case === caseId) this.el.next.focus({ preventScroll: true })
  }

  // Returns what this window has decided with this kind of form.
  madeHere() {
    return decided.filter(made => made.final === Boolean(this.data.final))
  }

  get previous() {
    return this.madeHere().at(-1)
  }

  reviewerName() {
    return this.data.reviewer || wellFormed(this.el.name.value).trim()
  }

  // Returns whether the browser is about to tell the server the reviewer's name, as after a reload
  // (reviewer.js). The field for it would only flash up. If the server doesn't take the name, the
  // field appears.
  isNameComing() {
    const left = this.nameDeadline - performance.now()
    if (left < 0 || !readStored(NAME_KEY)) return false
    this.nameTimer ??= setTimeout(() => this.hasLeft || this.draw(), left + 50)
    return true
  }

  // Shows the field for the name even if the browser has stored one.
  askName() {
    this.nameDeadline = -Infinity
    this.draw()
  }

  // Returns whether decisions have a name.
  isNamed() {
    return Boolean(this.data.reviewer || (this.nameConfirmed && this.reviewerName()))
  }

  // Opens the next case that needs review, or else the next one of the list, or else the whole
  // queue.
  openNext() {
    this.go(this.data.go.waiting ? "next" : this.localMessage?.narrowed ? "whole_queue" : "forward")
  }

  // Shows another iteration, by its index.
  showIteration(index) {
    const { count } = this.data.iterations
    const at = Math.min(Math.max(index, 0), count - 1)
    this.go("here", { iteration: at ? String(at + 1) : "", against: "" })
  }

  showMoreEvidence(shown) {
    this.go("here", { evidence: shown + this.data.place.evidence })
  }

  discard() {
    if (this.refuseIfBusy()) return
    this.reopened = false
    this.change(this.data.blank, { now: true })
    this.fill({})
    if (this.steps.length) this.steps.at(-1).discards = true
    this.showMessage("The draft was discarded.", "calm", true)
  }

  // Returns whether the last check is about the answer as it is in the form now. A note or a reason
  // doesn't change that.
  get isChecked() {
    return isEqual(checkedFields(this.checked), checkedFields(this.fields))
  }

  // The issues that an audit of the correction has left, if it is a revision word for word
  get audited() {
    return this.isChecked ? this.data.check?.audited : null
  }

  // Returns the serious issues that an approval leaves open, or that a correction leaves: according
  // to its audit, or else because their words are unchanged.
  openSerious() {
    const { verdict, corrected } = this.fields
    const { serious } = this.data
    if (verdict === "approve") return [...serious, ...this.ownSerious()]
    if (verdict !== "override" || corrected === null || this.isFinal) return []
    if (this.audited) return this.audited.serious
    const left = this.view.untouched(corrected).left.map(({ number }) => number)
    return serious.filter(({ number }) => left.includes(number))
  }

  // Returns the reviewer's own serious reports and labels, as rows of the question. `ids` are keys
  // as `label_key` builds them (decision_rules.py).
  ownSerious() {
    const { rows, serious, base, choices } = this.labels
    const row = (key, word, text, severity) => ({
      ids: [key],
      number: "",
      labels: [{ text: word, tone: "bad" }],
      text,
      severity,
    })
    const given = Object.entries(this.fields.labels[base] ?? {}).map(([key, { label }]) => {
      const part = rows.find(each => each.key === key)
      return part && serious[part.kind]?.includes(label)
        ? row(
            `${key}:${label}`,
            choices[part.kind].find(([code]) => code === label)[1],
            part.text,
            "labeled by you",
          )
        : null
    })
    const reported = this.reportedIssues()
      .filter(({ severity }) => this.data.reporting.serious.includes(severity))
      .map(report =>
        row(
          report.start === null
            ? `answer::${report.type}`
            : `span:${report.start}-${report.end}:${report.type}`,
          report.type,
          aboutWords(report),
          `${report.severity}, reported by you`,
        ),
      )
    return [...given.filter(Boolean), ...reported]
  }

  // Returns the claims of an answer of which the audit confirmed none, as rows of the question,
  // unless the reviewer has labelled one as supported.
  unconfirmedClaims() {
    const given = this.fields.labels[this.labels.base] ?? {}
    const { unconfirmed } = this.data
    return unconfirmed.some(({ key }) => given[key]?.label === "supported") ? [] : unconfirmed
  }

  // Asks for confirmation that these serious issues stay open, or that an answer is approved whose
  // claims are all unconfirmed.
  ask(open) {
    const { verdict } = this.fields
    if (verdict === "override") this.wasAsked = verdict
    const ids = open.flatMap(issue => issue.ids)
    this.confirming = { at: performance.now(), ids, verdict, open }
    this.change({}, { now: true })
    this.drawReady()
    // The keys that the question names must not type into the field that had the focus
    whenReleased(this.root, () => this.el.ask.focus({ preventScroll: true }), "question")
    this.el.ask.scrollIntoView({ block: "nearest" })
  }

  // Takes back a decision that waits for confirmation because of serious issues. A correction stays
  // in the form.
  withdraw() {
    const { verdict } = this.confirming
    this.confirming = null
    if (verdict === "override") {
      this.showMessage("Nothing was recorded.")
      return
    }
    this.change(pick(["verdict", "reason", "also"], this.data.blank), { now: true, typed: true })
    this.showMessage("Not approved. Nothing was recorded.")
  }

  // Undoes the newest step in the form, or else the decision on this case, or else the previous
  // decision, which belongs to another case and is named first. Typed text isn't a step: only
  // "Discard draft" removes it.
  undo() {
    if (this.refuseIfBusy()) return
    // the server undoes nothing without a name, which is about to follow
    if (!this.data.reviewer && this.isNameComing()) {
      this.refuseAsBusy()
      return
    }
    if (this.confirming) this.withdraw()
    else if (this.stepBack()) return
    else if (this.isOpen() && this.hasInput() && !this.data.final && !this.canOfferPrevious())
      this.showMessage(
        "Undo doesn't remove typed text or an earlier draft. Press “Discard draft” to remove it.",
      )
    else if (this.refuseIfBusy()) return
    else if (this.data.standing?.undoable) this.undoStanding()
    else if (this.data.standing && this.data.notice)
      this.showMessage(`Nothing was undone. ${this.data.notice.text}`)
    else if (this.data.final && this.data.standing && !this.hasPrevious())
      this.showMessage(`The final verdict isn't yours. Press M to give another one.`)
    else if (this.hasPrevious() && !this.previous.entry)
      this.showMessage(`${this.previous.text}. This decision can't be undone.`)
    else if (this.hasPrevious() && this.offersPrevious) this.undoPrevious()
    else if (this.hasPrevious()) {
      this.localMessage = null
      this.followsDecision = true
      this.namesUndo = true
      this.draw()
    } else this.showMessage("There is nothing to undo.")
  }

  // Undoes the decision on this case. A final verdict needs a second press, because it settles the
  // work of several people.
  undoStanding() {
    const { standing, final } = this.data
    if (final && this.localMessage?.asksUndo !== standing.id) {
      this.showMessage("This undoes the final verdict. Press U again to confirm.", "warn")
      this.localMessage.asksUndo = standing.id
    } else this.undoEntry(standing.id)
  }

  // A skipped case stays on the page if no other one waits.
  hasPrevious() {
    const { previous } = this
    return Boolean(previous) && (previous.case !== this.data.place.case || !previous.verdict)
  }

  // Returns whether U can undo the previous decision: nothing was entered since this case opened.
  canOfferPrevious() {
    return this.hasPrevious() && !this.data.standing && (!this.hasInput() || !this.isTouched)
  }

  async undoPrevious() {
    const from = this.data.place.case
    if (await this.undoEntry(this.previous.entry)) this.cameFrom = from
  }

  async undoEntry(entry) {
    const answer = await this.act("undo", { entry })
    // whatever the server says about it, it can't be undone again
    const index = decided.findIndex(made => made.entry === entry)
    if (index >= 0) decided.splice(index, 1)
    this.pane?.scrollTo({ top: 0 }) // to the entries that are back in the form
    return answer
  }

  async takeRevision() {
    if (this.refuseIfBlocked()) return
    this.reopen("override")
    const replaced = fields => pick(["verdict", "corrected", "reason", "also"], fields)
    const before = replaced(this.fields)
    const answer = await this.act("revision", { fields: this.fields, token: this.token })
    if (!answer?.message) return
    this.steps.push({ before, after: replaced(this.fields) })
    const isReplaced = before.corrected !== null && before.corrected !== this.fields.corrected
    const own = isReplaced ? " It has replaced your own correction, which U brings back." : ""
    this.showMessage(`${answer.message.text}${own}${this.lostKeyText()}`, "calm", true)
  }

  focusField(field) {
    if (field === "reviewer") this.askName()
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
    const dialog = document.querySelector(STREAMLIT.elements.dialog)
    if (this.issue.opened || this.el.help.open || dialog) return
    const within = event.composedPath()[0]
    if (within.readOnly && event.key.length === 1 && this.refuseIfBusy()) return
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      if (focusIsOutside(within, this.root)) return
      event.preventDefault()
      if (!event.repeat) this.submit()
      return
    }
    const isOutside = focusIsOutside(within, this.root)
    // Esc takes the focus from a field or another control, so that the next keys are the form's
    if (event.key === "Escape" && (isOutside || (this.root.contains(within) && typesIn(within)))) {
      within.blur()
      return
    }
    if (event.key === "Escape" && (this.confirming || this.localMessage)) {
      if (this.confirming) this.withdraw()
      else {
        this.localMessage = null
        this.draw()
      }
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (this.data.final && within === this.el.other && /^[1-9]$/.test(event.key))
      this.insertUsual(this.el.usual.children[event.key - 1], event)
    if (event.repeat || typesIn(within)) return
    if (isOutside) {
      // D and Y belong to buttons of the page, which act wherever the focus is
      if (/^[a-ce-xz]$/i.test(event.key))
        this.showMessage(
          "Keys are off while another control has the focus. Press Esc, then the key again.",
          "warn",
        )
      return
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    // a recorded correction is shown first; V switches between it and the answer it corrects
    if (key === "v" && this.view.switchVersion()) {
      event.preventDefault()
      return
    }
    if (
      !this.data.revision &&
      !this.data.final &&
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
    const place = placeOfDigit(key)
    if (place >= 0 && this.data.final && !this.isOpen()) {
      event.preventDefault()
      this.showMessage(this.settledMessage())
      return
    }
    if (place >= 0 && this.isOpen()) {
      const version = this.data.final && this.versions()[place]
      if (version) {
        event.preventDefault()
        this.take(version)
        return
      }
      const offered = this.data.reasons[this.fields.verdict] ?? []
      if (offered[place]) {
        event.preventDefault()
        this.toggleReason(offered[place].code, true)
      } else if (!this.data.final) {
        event.preventDefault()
        this.showMessage(
          !this.fields.verdict
            ? "Choose a verdict first. Digits choose its reasons."
            : offered.length
              ? `There's no reason ${digitOf(place)}. ` +
                `This verdict has ${plural(offered.length, "reason")}.`
              : "This verdict has no reasons to choose from.",
        )
      }
    }
  }

  commandFor(key, shiftKey) {
    const verdict = { a: "approve", o: "override", x: "reject", e: "escalate" }[key]
    if (verdict) return () => this.onVerdictKey(verdict)
    const commands = {
      u: () => this.undo(),
      f: () => {
        const problem = this.view.stepIssue(shiftKey ? -1 : 1)
        if (problem) this.showMessage(problem)
      },
      g: () => this.view.turn(),
      l: () => (shiftKey ? this.labelBar.toggleMissing() : this.labelTarget(this.view.target())),
      h: () => this.toggleSheet(),
      "?": () => this.toggleSheet(),
      ...(this.data.final ? this.adjudicationCommands(shiftKey) : this.reviewCommands(shiftKey)),
    }
    return commands[key]
  }

  adjudicationCommands(shiftKey) {
    return {
      n: () => this.go("next"),
      j: () => this.go("next"),
      p: () => this.go("back"),
      k: () => this.go("back"),
      t: () => this.focusText(shiftKey ? "other" : "note"),
      b: () => this.restartCorrection(),
      m: () => this.toggleChange(),
    }
  }

  reviewCommands(shiftKey) {
    const { at, revised } = this.data.iterations
    return {
      v: () => this.showIteration(at ? 0 : revised),
      n: () => this.openNext(),
      s: () => this.go("skip"),
      j: () => this.go("forward"),
      k: () => this.go("back"),
      "/": async () => {
        if (this.refuseIfBusy()) return
        this.busy = "search"
        window.masisSearch = true // the queue's page focuses its search (page_keys.js)
        await this.save()
        this.follow({ search: true })
      },
      "[": () => this.showIteration(at - 1),
      "]": () => this.showIteration(at + 1),
      w: () => (shiftKey ? this.takeRevision() : this.onVerdictKey("override")),
      t: () => {
        this.reopen()
        this.draw()
        this.el.note.focus()
      },
      i: () => {
        const problem = this.view.insertChosen()
        if (problem) this.showMessage(problem)
      },
      m: () => (shiftKey ? this.reportWhole() : this.labelWords()),
    }
  }

  // The reasons chosen for this verdict, in the order in which they were chosen.
  chosenReasons() {
    const { verdict, reason, also } = this.fields
    const offered = (this.data.reasons[verdict] ?? []).map(({ code }) => code)
    return [reason, ...also].filter(code => offered.includes(code))
  }

  // Chooses a reason, or takes it back.
  toggleReason(code, byKey) {
    if (this.refuseIfBusy()) return
    const chosen = this.chosenReasons()
    const isChosen = chosen.includes(code)
    const [reason = "", ...also] = isChosen
      ? chosen.filter(other => other !== code)
      : [...chosen, code]
    const asksForText = code === "other" && byKey && !isChosen
    const says = asksForText ? "Type it in your own words, then press Esc." : ""
    this.change({ reason, also }, { now: true, says })
    if (asksForText) this.el.other.focus()
  }

  toggleSheet() {
    toggleKeySheet(this.el.help, this.data.keys)
  }

  // Docks the editor of the correction below answer and evidence if these are side by side. If they
  // are tabs (answer_view.js), a docked editor and the reasons would cover the text that the
  // correction is compared with, so that the editor stays in the form.
  placeEditor() {
    const { editor } = this.el
    const place = this.column?.previousElementSibling?.getBoundingClientRect()
    const docked = Boolean(
      place &&
      editor.isConnected &&
      !editor.hidden &&
      place.width >= NARROW_PX &&
      this.column.getBoundingClientRect().left >= place.right,
    )
    editor.classList.toggle("docked", docked)
    if (docked !== (editor.popover === "manual")) editor.popover = docked ? "manual" : null
    if (docked) {
      editor.style.left = `${place.left}px`
      editor.style.width = `${place.width}px`
      // A popover is in the top layer, above the whole page
      if (!editor.matches(":popover-open")) editor.showPopover()
    } else {
      // The width of a docked editor is that of the answer, which is wider than the form
      editor.style.removeProperty("left")
      editor.style.removeProperty("width")
    }
    const covered = docked ? editor.offsetHeight : 0
    if (this.dock === covered) return
    const appears = !this.dock
    this.dock = covered
    document.documentElement.style.setProperty("--masis-dock", `${covered}px`)
    // So that the covered part can be scrolled into view
    this.column
      ?.closest(".st-key-review, .st-key-adjudication")
      ?.style.setProperty("padding-bottom", `${covered}px`)
    window.dispatchEvent(new Event("resize"))
    // also with a restored draft, whose decision nobody has taken just now
    if (appears && this.isFinal) requestAnimationFrame(() => this.hasLeft || this.showSides())
  }

  // Keeps the line that is typed in view. The check of the correction appears below the text, which
  // gets lower by that, and the browser scrolls a text only while somebody types. The caret's place
  // is estimated from its share of the text.
  keepTypedLine() {
    const { corrected } = this.el
    const height = corrected.clientHeight
    const lost = (this.textHeight ?? height) - height
    this.textHeight = height
    if (lost <= 0 || this.root.getRootNode().activeElement !== corrected) return
    const share = corrected.selectionEnd / Math.max(1, corrected.value.length)
    const caret = share * corrected.scrollHeight
    if (caret > corrected.scrollTop + height) corrected.scrollTop += lost
  }

  build() {
    const el = (this.el = {})
    const panel = (el.panel = named("section", "panel", "", { "aria-label": "Decision" }))
    el.standing = make("div", "standing")
    el.message = named("div", "message", "", { role: "status", "aria-live": "polite" })
    el.title = make("h2", "", "Decision")
    el.about = make("p", "about dim small")
    el.take = button("quiet take", "", "⇧ W", () => this.takeRevision())
    el.take.setAttribute("aria-keyshortcuts", "Shift+W")
    el.takeHint = make("p", "dim small")
    el.notice = named("div", "notice", "", { role: "note" })
    el.form = make("div", "form")
    el.restored = make("p", "restored dim")
    el.verdicts = named("div", "verdicts", "", { role: "radiogroup", "aria-label": "Verdict" })
    el.reasons = named("div", "reasons", "", { role: "group", "aria-label": "Reasons" })
    el.reasonBlock = make("div", "block")
    const reasonHead = make("div", "row")
    el.reasonTitle = make("div", "label", "Reason")
    el.reasonKey = named("kbd", "", "⇧ T", { "aria-hidden": "true" })
    el.numberHint = make("span", "dim small while-typing", "Esc, then a number")
    reasonHead.append(el.reasonTitle, el.reasonKey, el.numberHint)
    el.other = named("textarea", "text own-words", "", {
      rows: "1",
      maxlength: "300",
      "aria-label": "Reason in your own words",
      placeholder: "In your own words",
    })
    el.reasonHint = make("p", "dim small")
    el.usual = make("ol", "usual")
    el.usual.onpointerdown = event => this.insertUsual(event.target.closest("li"), event)
    el.answers = named("select", "text", undefined, { "aria-label": "Answer" })
    el.answers.onchange = () => this.change({ about: el.answers.value }, { now: true })
    el.starts = make("div", "row starts")
    el.change = button("step", "", "M", () => this.toggleChange())
    el.reasonBlock.append(reasonHead, el.reasonHint, el.reasons, el.other, el.usual)
    el.causeBlock = this.buildCause()
    el.editor = make("div", "block editor")
    const editorHead = make("div", "row")
    const editorLabel = named("label", "label", "", { for: "corrected" })
    el.correctedTitle = make("span", "", "Corrected answer ")
    el.correctedKey = named("kbd", "", "W", { "aria-hidden": "true" })
    editorLabel.append(el.correctedTitle, el.correctedKey)
    el.again = button("quiet", "Restore the answer shown", "", () => {
      this.el.corrected.value = this.base()
      this.change({ corrected: null }, { now: true })
    })
    editorHead.append(editorLabel, el.starts, el.again)
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
    const noteBlock = (el.noteBlock = make("div", "block"))
    el.note = named("textarea", "text", "", {
      id: "note",
      rows: "2",
      dir: "auto",
      maxlength: "4000",
      placeholder: "What the next person should know",
    })
    const noteLabel = named("label", "label", "", { for: "note" })
    el.noteTitle = make("span", "", "Note ")
    el.noteKey = named("kbd", "", "T", { "aria-hidden": "true" })
    noteLabel.append(el.noteTitle, el.noteKey)
    noteBlock.append(noteLabel, el.note)
    el.report = named("section", "block", "", { "aria-label": "Issues you report" })
    el.reportList = make("ul", "reports")
    const reportButtons = (el.reportButtons = make("div", "row"))
    const whole = button("quiet", "Report an issue with the whole answer", "⇧ M", () =>
      this.reportWhole(),
    )
    whole.setAttribute("aria-keyshortcuts", "Shift+M")
    reportButtons.append(
      button("quiet", "Report an issue in words or a sentence", "M", () => this.labelWords()),
      whole,
    )
    el.reportTitle = make("div", "label")
    el.report.append(el.reportTitle, el.reportList, reportButtons)
    el.labels = make("details", "labels block")
    el.labelsTitle = make("summary", "label")
    el.labelRows = make("div", "label-rows")
    el.chunkLabels = named("ul", "reports", "", { "aria-label": "Labels on chunks" })
    el.labels.append(el.labelsTitle, el.labelRows, el.chunkLabels)
    el.nameBlock = make("div", "block name-block")
    el.name = named("input", "text", "", {
      id: "name",
      type: "text",
      maxlength: "80",
      autocomplete: "name",
      placeholder: "Type it, then press Enter",
    })
    const nameLabel = named("label", "label", "Your name ", { for: "name" })
    nameLabel.append(
      named("span", "dim small", "recorded with every decision", { "aria-hidden": "true" }),
    )
    el.nameBlock.append(nameLabel, el.name)
    el.ask = named("div", "ask message tone-warn", "", { role: "alert", tabindex: "-1" })
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
      el.causeBlock,
      noteBlock,
      el.labels,
      el.report,
      el.nameBlock,
      el.ask,
    )
    el.advance = named("input", "", undefined, { type: "checkbox" })
    el.advance.checked = readStored(ADVANCE_KEY) !== "off"
    el.advance.onchange = () => store(ADVANCE_KEY, el.advance.checked ? "on" : "off")
    const advance = make("label", "dim advance")
    advance.append(el.advance, make("span", "", "Open the next case after a decision"))
    el.history = make("details", "history")
    el.go = named("nav", "go", "", { "aria-label": "Cases of this queue" })
    el.back = button("step", "Previous", "K", () => this.go("back"))
    el.skip = button("step", "Skip", "S", () => this.go("skip"))
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
      el.takeHint,
      el.notice,
      el.standing,
      el.change,
      el.answers,
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
      this.change({ corrected: text === this.base() ? null : text }, { typed: true })
    }
    for (const moved of ["pointerup", "keyup", "input"])
      el.corrected.addEventListener(moved, () => {
        this.hasCaret = true
      })
    el.form.addEventListener("focusin", event => {
      if (typesIn(event.target)) this.scrollAboveFooter()
    })
    for (const field of [el.other, el.note, el.sentence, el.corrected])
      field.onblur = () => {
        this.joinSpaces()
        this.save()
      }
    // Leaving the field for a button shows no message: it would move the button before the click
    // ends.
    const confirmName = showsMessage => {
      if (
        !this.reviewerName() ||
        this.data.reviewer ||
        this.busy ||
        this.nameSent === this.reviewerName()
      )
        return
      this.nameSent = this.reviewerName()
      this.nameConfirmed = true
      this.trigger("open", { name: this.reviewerName(), at: Date.now() })
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
      if (this.nameTyped) whenReleased(this.root, () => confirmName(false), "name")
    }
    el.name.onkeydown = event => {
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
        confirmName(true)
        el.name.blur()
      }
    }
  }

  draw() {
    whenReleased(this.root, () => this.drawNow(), "desk")
  }

  drawNow() {
    const { el, data, fields } = this
    if (this.drawnBase !== this.base()) {
      this.drawnBase = this.base()
      if (fields.corrected === null) el.corrected.value = this.drawnBase
    }
    el.corrected.maxLength = data.longest
    const { final } = data
    el.title.textContent = `Decision on ${data.about.name}`
    for (const part of [el.change, el.answers, el.usual, el.starts, el.causeBlock, this.sides])
      part.hidden = !final
    for (const part of [el.skip, el.advance.parentElement]) part.hidden = Boolean(final)
    el.correctedKey.textContent = final ? "O" : "W"
    el.reasonKey.hidden = !final
    el.numberHint.hidden = Boolean(final)
    el.about.textContent = data.about.note
    el.about.hidden = !data.about.note
    el.take.hidden =
      !data.revision ||
      this.isClosed() ||
      Boolean(data.standing && !this.isOpen()) ||
      (fields.verdict === "override" && fields.corrected !== null)
    // To approve the revision shown judges the revision. To take it corrects the original.
    el.take.firstChild.textContent = data.iterations.at
      ? `Correct the original with ${data.revision}`
      : `Take ${data.revision} as correction`
    el.takeHint.hidden = el.take.hidden || !data.iterations.at
    el.takeHint.textContent =
      `Both make ${data.revision} the answer. Approve judges only ${data.revision}. A correction ` +
      "also records what is wrong with the original."
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
    el.restored.hidden = !((this.restored || this.repeats) && hasInput)
    el.restored.textContent = this.repeats
      ? "The form has the entries of your decision. The next one replaces it."
      : `Draft of ${this.restored} restored.`
    this.drawVerdicts()
    if (final) this.drawFinal()
    else this.drawReasons()
    this.drawEditor()
    this.view.onCorrection()
    el.again.hidden = fields.corrected === null || Boolean(final)
    this.drawCheck()
    this.drawLabels()
    this.drawReported()
    this.labelBar.draw()
    el.nameBlock.hidden = Boolean(data.reviewer) || this.isNameComing()
    el.submit.firstChild.textContent = this.submitWords()
    el.submit.disabled = Boolean(this.busy)
    // What is typed while another case or a revision is on its way would be lost or misplaced.
    for (const field of [el.note, el.other, el.sentence, el.corrected])
      field.readOnly = Boolean(this.busy)
    el.discard.hidden = !hasInput
    // "Draft saved" reassures about written text; a chosen verdict or reason needs none
    const written = { ...fields, ...pick(["verdict", "reason", "also"], data.blank) }
    el.saved.textContent =
      JSON.stringify(written) === JSON.stringify(data.blank)
        ? ""
        : !this.dirty
          ? "Draft saved"
          : this.offline
            ? "Not saved yet"
            : "Saving the draft…"
    this.drawHistory()
    el.skip.disabled = !data.go.waiting
    el.next.classList.toggle("primary", !open && (!final || data.go.waiting))
    const made = this.madeHere()
    const escalated = made.filter(each => each.verdict === "escalate").length
    const now = [
      [made.length - escalated, "decided"],
      [escalated, "escalated"],
    ].map(([count, done]) => (count && final ? `, ${count} ${done} now` : ""))
    el.waiting.textContent = data.go.says + now.join("")
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

  submitWords() {
    const { final, verdicts, about } = this.data
    const { verdict } = this.fields
    if (this.busy === "decisions") return "Submitting…"
    if (final) return this.finalWords()
    if (!verdict) return "Submit"
    const words = verdicts.find(({ code }) => code === verdict).text.toLowerCase()
    return `Submit: ${words} ${about.name}${this.confirming ? " anyway" : ""}`
  }

  offlineMessage() {
    const text =
      this.busy === "decisions"
        ? "The server doesn't answer. Your decision will be resent until it's recorded. " +
          "Keep this page open."
        : this.busy
          ? "The server doesn't answer. The page will continue when the server is back."
          : "The server doesn't answer. Your draft is stored in this browser."
    return { text, tone: "warn" }
  }

  // What the answer's buttons need to know (answer_view.js)
  get isFinal() {
    return Boolean(this.data.final)
  }

  // The parts that can be labelled with their words, and the digest of their answer: of the one
  // shown, or in an adjudication of the one that the taken decision is about.
  get labels() {
    return this.isFinal ? { ...this.data.labels, ...this.side().labelled } : this.data.labels
  }

  get digest() {
    return this.isFinal ? this.side().digest : this.data.shown.digest
  }

  // Returns whether the form is about another answer than the one shown: an adjudication shows the
  // original, and a taken decision may be about a revision.
  isOtherAnswer() {
    return this.digest !== this.data.shown.digest
  }

  correction() {
    return this.fields.corrected ?? ""
  }

  lostKeyText() {
    return this.hasRefusedKey ? " A key that you pressed in the meantime had no effect." : ""
  }

  drawMessage() {
    const before =
      this.followsDecision && this.canOfferPrevious()
        ? {
            text:
              `${this.previous.text}.${this.lostKeyText()}` +
              (this.namesUndo ? " Press U again to undo it and open its case." : ""),
            tone: "calm",
            before: true,
          }
        : null
    const message = (this.offline && this.offlineMessage()) || this.localMessage || before
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
          button("quiet", "Continue with the whole queue", "N", () => this.go("whole_queue")),
        )
    }
  }

  // Draws the question before serious issues are left open, or before nothing in an approved answer
  // is confirmed. The log records which serious issues were listed.
  drawAsk() {
    const { el, data, confirming } = this
    el.ask.hidden = confirming?.verdict !== this.fields.verdict
    if (el.ask.hidden) {
      el.ask.replaceChildren()
      return
    }
    if (el.ask.childElementCount) return
    const { open, verdict, ids } = confirming
    const count = open.length
    const list = make("ul", "serious")
    for (const issue of open.slice(0, 8)) {
      const item = make("li", "")
      item.append(
        make("b", "number", issue.number),
        ...issue.labels.flatMap(label => [" ", pill(label)]),
        outsideText("span", "", ` ${issue.text}`),
        make("span", "dim", ` ${issue.severity}`),
      )
      list.append(item)
    }
    if (count > 8) list.append(make("li", "dim", `and ${count - 8} more`))
    const approve = "Approve anyway? Press A again, or submit."
    const issues = count === 1 ? "One serious issue is" : `${count} serious issues are`
    const claims = count === 1 ? "The only claim" : `None of the ${count} claims`
    const openWords =
      verdict === "approve"
        ? `${issues} open in ${data.about.name}. ${approve}`
        : `${issues} left in your correction.`
    el.ask.append(
      make(
        "p",
        "",
        (ids.length
          ? `${openWords} The decision records that you saw this list.`
          : `${claims} of ${data.about.name} is ${count === 1 ? "not " : ""}confirmed. ${approve}`) +
          " Press U to cancel.",
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
      make("span", "dim", `by ${[current.who, current.when].filter(Boolean).join(", ")}`),
    )
    el.standing.append(head)
    if (current.outcome) el.standing.append(make("p", "dim", current.outcome))
    if (current.why) el.standing.append(outsideText("p", "", current.why))
    if (current.cause) el.standing.append(make("p", "", current.cause))
    if (current.note) el.standing.append(outsideText("p", "dim", current.note))
    if (current.changes?.length && !this.isOpen()) {
      const row = outsideText("p", "changed", "")
      row.append(make("span", "dim", "Changes to the answer: "), ...renderDiff(current.changes))
      el.standing.append(row)
    }
    if (current.labels?.length && !this.isOpen())
      el.standing.append(make("p", "label", "Labels"), labelList(current.labels))
    if (current.reported.length)
      el.standing.append(make("p", "label", "Reported issues"), this.reportList(current.reported))
    const back = make("div", "row")
    const hasStep = this.localMessage?.before // its own button, and U, take back the step
    if (current.undoable && !(hasStep && this.isOpen()))
      back.append(
        hasStep
          ? button("step", "Undo the decision", "", () => this.undoStanding())
          : button("step", "Undo", "U", () => this.undo()),
      )
    el.standing.append(back)
    if (!this.isOpen() && !this.isClosed() && !data.final) {
      el.standing.append(make("p", "dim small", "Choose a verdict to decide again: "))
      const choices = make("div", "row again")
      for (const { code, text, refused } of data.verdicts)
        if (!refused) choices.append(button("quiet", text, LETTER[code], () => this.choose(code)))
      el.standing.append(choices)
    }
  }

  drawVerdicts() {
    const { el, data, fields } = this
    if (!el.verdicts.children.length) {
      for (const { code, text, tone } of data.verdicts) {
        const choice = make("label", `verdict tone-${tone}`)
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
      const { meaning, refused } = data.verdicts.find(({ code }) => code === input.value)
      input.disabled = Boolean(refused)
      input.parentElement.classList.toggle("refused", input.disabled)
      input.parentElement.title = refused || meaning
    }
  }

  drawReasons() {
    const { el, data, fields } = this
    const given = new Set([
      ...Object.values(fields.labels[this.labels.base] ?? {}).map(({ label }) => label),
      ...this.reportedIssues().map(({ type }) => type),
    ])
    const offered = (data.reasons[fields.verdict] ?? []).map(reason => ({
      ...reason,
      suggested: reason.suggested || reason.labels.some(label => given.has(label)),
    }))
    el.reasonBlock.hidden = !offered.length
    const needed = data.verdicts.some(
      verdict => verdict.code === fields.verdict && verdict.needs_reason,
    )
    el.reasonTitle.textContent = needed ? "Reasons" : "Reasons (optional)"
    const escalates = fields.verdict === "escalate"
    el.reasonHint.hidden = !escalates && offered.filter(reason => reason.suggested).length < 2
    el.reasonHint.textContent = escalates
      ? "The case waits for more evidence, another reviewer or an adjudication. You can " +
        "assign it below."
      : "Choose one or more, the main one first."
    const chosen = this.chosenReasons()
    if (isOutdated(el.reasons, offered)) {
      el.reasons.replaceChildren()
      offered.forEach(({ code, text, suggested }, index) => {
        const choice = make("label", `reason${suggested ? " suggested" : ""}`)
        const input = named("input", "", undefined, { type: "checkbox", value: code })
        input.onchange = () => this.toggleReason(code, false)
        choice.append(
          input,
          named("kbd", "", digitOf(index), { "aria-hidden": "true" }),
          make("span", "", text),
        )
        if (suggested) choice.append(make("span", "hint", "suggested"))
        choice.append(make("span", "hint main-reason", "main"))
        el.reasons.append(choice)
      })
    }
    for (const input of el.reasons.querySelectorAll("input")) {
      input.checked = chosen.includes(input.value)
      input.parentElement.classList.toggle("chosen", input.checked)
      const isMain = chosen.length > 1 && input.value === chosen[0]
      input.parentElement.querySelector(".main-reason").hidden = !isMain
    }
    el.other.hidden = !chosen.includes("other")
  }

  drawCheck() {
    const { el, data } = this
    el.check.replaceChildren()
    el.citationProblems.replaceChildren()
    const { check } = data
    const isApproved = Boolean(data.final) && this.fields.verdict === "approve"
    const isChecked = this.fields.verdict === "override" || isApproved
    el.check.hidden = !check || !this.isOpen() || !isChecked
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
    // A blind form counts what the correction adds. A zero would say that the answer has none.
    const counts = [
      [check.fabricated_count, "fabricated", "bad", "✕"],
      [check.uncited_count, "uncited", "warn", "~"],
    ]
    for (const [number, word, tone, glyph] of counts)
      if (!check.only_added) count(number, word, tone, glyph)
      else if (number) count(number, `${word}, added by you`, tone, glyph)
    if (!this.isChecked) el.check.append(make("span", "dim", "checking…"))
    if (check.changed.length) {
      const row = outsideText("p", "dim changed", "Changes: ")
      row.append(...renderDiff(check.changed))
      if (check.dropped.length)
        row.append(
          make("b", "", ` Drops ${check.dropped.map(reference => `[${reference}]`).join(", ")}.`),
        )
      for (const { reference, before, after } of check.cited_less)
        row.append(
          make("b", "", ` Cites [${reference}] ${plural(after, "time")} instead of ${before}.`),
        )
      el.citationProblems.append(row)
    }
    const text = isApproved ? this.base() : this.fields.corrected
    const untouched = this.audited
      ? auditedIssues(this.audited, index => this.showIteration(index))
      : text !== null &&
        untouchedIssues(this.view.untouched(text), number => this.showIssue(number))
    if (untouched) el.citationProblems.append(untouched)
    if (check.beside) el.citationProblems.append(make("p", "dim", check.beside))
    el.citationProblems.append(...citationProblems(check))
  }

  drawLabels() {
    const { el, fields, labels } = this
    el.labels.hidden = !labels.rows.length && !fields.missing && isEqual(fields.chunks, {})
    const given = fields.labels[labels.base] ?? {}
    const counts = [
      [Object.keys(given).length, "on claims and references"],
      [Object.keys(fields.chunks).length, "on chunks"],
      [fields.missing === null ? 0 : 1, "on the evidence"],
    ]
    const says = counts.filter(([count]) => count).map(([count, where]) => `${count} ${where}`)
    el.labelsTitle.replaceChildren(
      make(
        "span",
        "",
        says.length ? `Labels given: ${says.join(", ")}` : "Label single claims and references",
      ),
      named("kbd", "", "L", { "aria-hidden": "true" }),
    )
    this.markLabelled(this.isOtherAnswer() ? {} : given)
    if (isOutdated(el.labelRows, labels))
      el.labelRows.replaceChildren(...labels.rows.map(row => this.labelRow(row)))
    el.chunkLabels.replaceChildren(
      ...Object.entries(fields.chunks).map(([id, chunk]) =>
        outsideText("li", "", `${id}: ${this.labelBar.textOfChunkLabel(chunk)}`),
      ),
    )
    for (const select of el.labelRows.querySelectorAll("select")) {
      const label = given[select.dataset.key]
      select.value = label?.label ?? ""
      select.classList.toggle("given", select.value !== "")
      const lines = select.closest(".label-row").querySelector(".label-lines")
      lines.replaceChildren(...this.labelBar.lines(label).map(text => make("div", "", text)))
    }
  }

  // Marks the labelled parts in the answer.
  markLabelled(given) {
    const { rows, choices, serious } = this.labels
    const marks = rows
      .filter(({ key }) => given[key])
      .map(({ key, kind }) => {
        const { label } = given[key]
        const text = choices[kind].find(([code]) => code === label)?.[1] ?? label
        const tone = serious[kind]?.includes(label) ? "bad" : "calm"
        return { key, text, tone, lines: this.labelBar.lines(given[key]) }
      })
    const drawnAs = JSON.stringify(marks)
    if (this.lastLabelled === drawnAs) return
    this.lastLabelled = drawnAs
    this.view.markLabelled(marks)
  }

  drawReported() {
    const { el, data } = this
    const issues = this.reportedIssues()
    el.report.hidden = data.final ? !issues.length : !data.answer.trim()
    el.reportButtons.hidden = Boolean(data.final)
    el.reportTitle.textContent = data.reporting.title
    el.reportList.hidden = !issues.length
    const open = this.isOpen()
    if (isOutdated(el.reportList, issues)) {
      el.reportList.replaceChildren(
        ...issues.map((report, place) => {
          const item = this.reportItem(report)
          const name = button("quiet", "Add passages", "", () =>
            this.labelBar.show({ key: `report:${place}`, kind: "report", place }),
          )
          const edit = button("quiet", "Edit", "", () => this.editReport(place))
          const remove = button("quiet", "Remove", "", () => {
            this.setReported(
              this.reportedIssues().filter((_, index) => index !== place),
              withStop(`Removed: ${report.type}, ${aboutWords(report)}`),
            )
            el.report.querySelector(".reports button, .row:not([hidden]) button")?.focus()
          })
          for (const action of [name, edit, remove])
            action.setAttribute(
              "aria-label",
              `${action.textContent}: ${report.type}, ${aboutWords(report)}`,
            )
          item.firstChild.append(name, edit, remove)
          return item
        }),
      )
    }
    // the answer marks the issues of the open form, or else those of the recorded decision
    const reported = open ? issues : data.reporting.standing
    const shown = this.isOtherAnswer() ? [] : reported
    const drawnAs = JSON.stringify([open, shown])
    if (this.lastReported === drawnAs) return
    this.lastReported = drawnAs
    this.view.markReported(shown, open)
  }

  reportItem(report) {
    const item = make("li", "")
    const head = make("div", "row")
    head.append(
      pill({ text: report.type, tone: TONE_OF[report.severity] }),
      make("span", "dim", report.severity),
    )
    item.append(head, outsideText("div", "", aboutWords(report)))
    if (report.note) item.append(outsideText("div", "dim", report.note))
    // a recorded report comes with its passages in words
    for (const text of report.details ?? this.labelBar.lines(report))
      item.append(outsideText("div", "dim small", text))
    return item
  }

  reportList(issues) {
    const list = make("ul", "reports")
    list.append(...issues.map(report => this.reportItem(report)))
    return list
  }

  labelRow(row) {
    const { choices, base } = this.labels
    const line = make("div", "label-row")
    const words = outsideText("div", "label-words", "")
    if (row.where) words.append(make("span", "dim", `${row.where} `))
    words.append(make("span", row.kind === "reference" ? "label-ref" : "", row.text))
    const select = named("select", "text", undefined, {
      "data-key": row.key,
      "aria-label":
        `${row.kind[0].toUpperCase()}${row.kind.slice(1)} ${row.text}: ` +
        `the audit says ${row.machine.text}. Your label`,
    })
    select.append(new Option("No label", ""))
    if (row.verdict) select.append(new Option(`Agree: ${row.machine.text}`, row.verdict))
    for (const [code, text] of choices[row.kind])
      if (code !== row.verdict) select.append(new Option(capitalized(text), code))
    select.onchange = () => {
      if (this.refuseIfBusy()) return
      const given = this.fields.labels[base]?.[row.key] ?? NOTHING_GIVEN
      this.setLabel(
        row.key,
        select.value && { ...given, label: select.value },
        select.value
          ? `Labeled: ${select.selectedOptions[0].textContent.toLowerCase()} ` +
              `(audit: ${row.machine.text}).`
          : "Label removed.",
      )
    }
    const side = make("div", "label-side")
    side.append(pill(row.machine), select)
    words.append(make("div", "label-lines dim small"))
    line.append(words, side)
    return line
  }

  // Gives a part of the answer a label, or with "" none.
  setLabel(key, label, says) {
    const { base } = this.labels
    const { [base]: own, ...others } = this.fields.labels
    const { [key]: _, ...rest } = own ?? {}
    const given = label ? { ...rest, [key]: label } : rest
    const labels = Object.keys(given).length ? { ...others, [base]: given } : others
    this.change({ labels }, { now: true, says })
  }

  drawHistory() {
    const { el, data } = this
    el.history.hidden = !data.history.length
    if (!isOutdated(el.history, data.history)) return
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
      if (entry.why) item.append(outsideText("div", "", entry.why))
      if (entry.note) item.append(outsideText("div", "dim", entry.note))
      const extras = [
        entry.outcome,
        entry.labels.length &&
          `${entry.labels.length} ${entry.labels.length === 1 ? "label" : "labels"}`,
      ].filter(Boolean)
      if (extras.length) item.append(make("div", "dim", extras.join(", ")))
      if (entry.labels.length) item.append(labelList(entry.labels))
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

Object.assign(Desk.prototype, FINAL_VERDICT)

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  let desk = desks.get(root)
  if (!desk) {
    desk = new Desk(root)
    desks.set(root, desk)
  }
  whenReleased(root, () => desk.update(component))
  return () => {
    desk.leave()
    desks.delete(root)
  }
}
