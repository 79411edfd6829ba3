// Two answers to a question, side by side and without names, and the verdict on them. A verdict is
// posted once; the next pair replaces this one.
const preferencePairs = new WeakMap()

class PreferencePair {
  constructor(root) {
    this.root = root
    this.listeners = new AbortController()
    document.addEventListener("keydown", event => this.onKeydown(event), {
      signal: this.listeners.signal,
    })
  }

  update({ data, setTriggerValue }) {
    this.post = setTriggerValue
    const version = JSON.stringify(data)
    if (this.version === version) return
    const isNewPair = this.data?.pair !== data.pair
    this.version = version
    this.data = data
    this.isPosted = false
    // A reason that was typed for this pair stays if its verdict couldn't be recorded.
    const typed = isNewPair ? "" : (this.reason?.value ?? "")
    this.draw()
    this.reason.value = typed
    if (isNewPair && this.hasDrawn) {
      this.root.scrollIntoView({ block: "nearest" })
      this.status.textContent = `Next pair: ${data.question}`
    }
    this.hasDrawn = true
  }

  leave() {
    this.listeners.abort()
  }

  draw() {
    const { data } = this
    const question = outsideText("h2", "question", data.question)
    const grid = make("div", "sides")
    grid.append(drawSide("Left", data.left), drawSide("Right", data.right))
    const label = make("label", "reason-label")
    this.reason = make("textarea", "reason")
    this.reason.rows = 2
    this.reason.maxLength = data.longest_reason
    this.reason.dir = "auto"
    label.append(make("span", "", "Reason "), make("span", "dim", "optional · T"), this.reason)
    const bar = make("div", "verdicts")
    bar.setAttribute("role", "group")
    bar.setAttribute("aria-label", "Which answer is better?")
    this.buttons = data.choices.map(choice => {
      const button = make("button", `verdict ${choice.verdict}`)
      button.type = "button"
      button.append(make("kbd", "", choice.key), make("span", "", choice.title))
      button.onclick = () => this.decide(choice.verdict)
      return button
    })
    const undo = make("button", "undo")
    undo.type = "button"
    undo.disabled = !data.can_undo
    undo.append(make("kbd", "", data.undo_key), make("span", "", "Undo"))
    undo.onclick = () => this.undo()
    this.undoButton = undo
    bar.append(...this.buttons, undo)
    this.status = make("p", "status")
    this.status.setAttribute("role", "status")
    const sources = data.sources.length ? [drawSources(data.sources)] : []
    this.root.replaceChildren(question, grid, ...sources, label, bar, this.status)
  }

  decide(verdict) {
    if (this.isPosted) return
    this.lock()
    this.post("decided", {
      pair: this.data.pair,
      verdict,
      reason: this.reason.value,
      // Makes the verdict harmless if the browser sends it twice.
      token: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`,
    })
  }

  undo() {
    if (this.isPosted || !this.data.can_undo) return
    this.lock()
    this.post("undone", true)
  }

  lock() {
    this.isPosted = true
    for (const button of [...this.buttons, this.undoButton]) button.disabled = true
  }

  onKeydown(event) {
    if (!this.root.isConnected) {
      this.leave()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    if (event.defaultPrevented || typesIn(event.composedPath()[0])) return
    if (document.querySelector(STREAMLIT.elements.dialog)) return
    const key = event.key.toUpperCase()
    const choice = this.data.choices.find(candidate => candidate.key === key)
    if (choice) this.decide(choice.verdict)
    else if (key === this.data.undo_key) this.undo()
    else if (key === "T") this.reason.focus()
    else return
    event.preventDefault()
  }
}

function drawSide(name, text) {
  const side = make("article", "side")
  side.append(make("h3", "side-name", name))
  const answer = outsideText("div", "answer", text)
  answer.tabIndex = 0 // long answers are scrolled, which keys must be able to do
  answer.setAttribute("role", "region")
  answer.setAttribute("aria-label", `${name} answer`)
  side.append(answer)
  return side
}

// One list, because most answers share their sources. It's open, as an answer can't be judged
// without them.
function drawSources(sources) {
  const evidence = make("details", "evidence")
  evidence.open = true
  const count = sources.length
  evidence.append(make("summary", "", count === 1 ? "1 source" : `${count} sources`))
  for (const source of sources) {
    const text = make("p", "chunk")
    text.dir = "auto"
    text.append(make("b", "", `[${source.id}] `))
    if (source.of) text.append(make("span", "dim", `${source.of}: `))
    text.append(make("span", "", source.text))
    evidence.append(text)
  }
  return evidence
}

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  let pair = preferencePairs.get(root)
  if (!pair) {
    pair = new PreferencePair(root)
    preferencePairs.set(root, pair)
  }
  pair.update(component)
  return () => {
    pair.leave()
    preferencePairs.delete(root)
  }
}
