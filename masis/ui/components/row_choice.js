// Check boxes in the rows of a table, and a bar with actions on the chosen rows. The choice is kept
// here and not in Streamlit, since a run of the page for each check box would be slow.
const rowChoices = new WeakMap()

class RowChoice {
  constructor(root) {
    this.root = root
    this.chosen = new Set()
    this.everything = false
    this.last = null
  }

  // Takes the table over after it was drawn: `lines` are its rows, by the values that they open.
  attach(lines, choosing, act) {
    if (this.scope !== choosing.scope) this.reset()
    this.scope = choosing.scope
    this.choosing = choosing
    this.act = act
    this.lines = lines
    for (const id of [...this.chosen]) if (!lines.has(id)) this.chosen.delete(id)
    this.boxes = new Map()
    for (const [id, line] of lines) line.prepend(this.drawCell(id, line))
    this.bar = make("div", "actions")
    this.bar.setAttribute("role", "toolbar")
    this.bar.setAttribute("aria-label", `Actions on the selected ${choosing.noun}s`)
    // a handler that returns false would cancel the key
    this.bar.onkeydown = event => void this.onKeydown(event)
    this.show()
  }

  // The cell of the head, whose box chooses all rows that are listed.
  drawHead() {
    const cell = make("th", "choose")
    cell.scope = "col"
    this.all = make("input")
    this.all.type = "checkbox"
    this.all.setAttribute("aria-label", `Select all ${this.choosing?.noun ?? "row"}s listed here`)
    this.all.onchange = () => this.chooseAll(this.all.checked)
    cell.append(this.all)
    return cell
  }

  drawCell(id, line) {
    const cell = make("td", "choose")
    const box = make("input")
    box.type = "checkbox"
    box.setAttribute("aria-label", `Select ${id}`)
    // the row opens its case when it is clicked
    cell.onclick = event => {
      event.stopPropagation()
      if (event.target !== box) this.toggle(id, event.shiftKey)
    }
    box.onclick = event => {
      event.stopPropagation()
      this.toggle(id, event.shiftKey)
    }
    this.boxes.set(id, box)
    cell.append(box)
    line.classList.add("choosable")
    return cell
  }

  // Chooses a row or drops it. With `range`, the rows between it and the one before get its state.
  toggle(id, range) {
    const ids = [...this.lines.keys()]
    const isChosen = !this.isChosen(id)
    const from = range && this.last !== null ? ids.indexOf(this.last) : -1
    const to = ids.indexOf(id)
    if (this.everything) this.chosen = new Set(ids)
    this.everything = false
    const between = from < 0 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1)
    const chosen = from < 0 ? isChosen : this.isChosen(this.last)
    for (const each of between) {
      if (chosen) this.chosen.add(each)
      else this.chosen.delete(each)
    }
    this.last = id
    this.show()
  }

  chooseAll(chosen) {
    this.everything = false
    this.chosen = new Set(chosen ? this.lines.keys() : [])
    this.show()
  }

  reset() {
    this.chosen = new Set()
    this.everything = false
    this.last = null
  }

  clear() {
    const hadFocus = this.bar.contains(this.root.getRootNode().activeElement)
    const row = this.lines.get(this.last) ?? this.lines.values().next().value
    this.reset()
    this.show()
    if (hadFocus) row?.querySelector("a")?.focus()
  }

  isChosen(id) {
    return this.everything || this.chosen.has(id)
  }

  get count() {
    return this.everything ? this.choosing.total : this.chosen.size
  }

  show() {
    for (const [id, box] of this.boxes) {
      box.checked = this.isChosen(id)
      this.lines.get(id).classList.toggle("chosen", box.checked)
    }
    if (this.all) {
      this.all.checked = this.everything || this.chosen.size === this.lines.size
      this.all.indeterminate = !this.all.checked && this.chosen.size > 0
    }
    this.drawBar()
  }

  drawBar() {
    // The buttons are drawn again, so the one with the focus is found by its name.
    const focused = this.root.getRootNode().activeElement
    const name = this.bar.contains(focused) ? focused.dataset.name : null
    const { total, noun, actions } = this.choosing
    const count = this.count
    this.bar.replaceChildren()
    if (!count) {
      this.bar.remove()
      return
    }
    const nouns = number => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`
    const status = make("span", "count", `${nouns(count)} selected`)
    status.setAttribute("role", "status")
    this.bar.append(status)
    for (const action of actions) {
      const button = this.drawButton(action.name, action.title, "action")
      button.onclick = () =>
        this.act({
          action: action.name,
          rows: this.everything ? [] : [...this.lines.keys()].filter(id => this.chosen.has(id)),
          everything: this.everything,
        })
      this.bar.append(button)
    }
    if (!this.everything && total > this.lines.size) {
      const everything = this.drawButton(
        "everything",
        `Select all ${total.toLocaleString("en")} that match`,
        "plain-action",
      )
      everything.onclick = () => {
        this.everything = true
        this.show()
      }
      this.bar.append(everything)
    }
    const clear = this.drawButton("clear", "Clear", "plain-action")
    clear.onclick = () => this.clear()
    this.bar.append(clear)
    if (!this.bar.isConnected) this.root.append(this.bar)
    if (name)
      (this.bar.querySelector(`[data-name="${name}"]`) ?? this.bar.querySelector("button"))?.focus()
  }

  drawButton(name, title, className) {
    const button = make("button", className, title)
    button.type = "button"
    button.dataset.name = name
    return button
  }

  // Handles a key in a row or in the bar, and returns whether it had an effect.
  onKeydown(event, id) {
    if (event.metaKey || event.ctrlKey || event.altKey) return false
    const key = event.key.toLowerCase()
    if (key === "x" && id !== undefined) this.toggle(id, event.shiftKey)
    else if (key === "b" && this.count) this.bar.querySelector("button")?.focus()
    else if (key === "escape" && this.count) this.clear()
    else return false
    event.preventDefault()
    // Streamlit has keys of its own, such as C and R.
    event.stopPropagation()
    return true
  }
}

const choiceOf = root => {
  let choice = rowChoices.get(root)
  if (!choice) {
    choice = new RowChoice(root)
    rowChoices.set(root, choice)
  }
  return choice
}
