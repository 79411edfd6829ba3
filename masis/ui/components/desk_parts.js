// Parts of the desk that need nothing but their data.
const readAs = { fabricated: "fabricated", misattributed: "misattributed", needless: "needless", unsupported: "does not say this", contradicts: "says otherwise", valid: "valid" }
const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`
const shortened = (text, length) => (text.length > length ? `${text.slice(0, length).trimEnd()} …` : text)
const plainButton = (className, text) => {
  const button = make("button", className, text)
  button.type = "button"
  return button
}

const drawDifferenceKey = difference => {
  const key = make("p", "difference-key")
  if (!difference.words_out && !difference.words_in) {
    key.append("Nothing changed: both answers are the same, word for word.")
  } else {
    key.append(make("del", "", "taken out"), ` ${plural(difference.words_out, "word")}  `, make("ins", "", "put in"), ` ${plural(difference.words_in, "word")}`)
  }
  return key
}

const drawFixed = data => {
  const title = make("h4", "", `Fixed since iteration ${data.iteration - 1}`)
  const list = make("ul", "fixed")
  for (const each of data.fixed) {
    const item = make("li", "")
    item.append(make("span", "tick", "✓"), make("b", "", ` ${each.label.text}. `))
    const words = make("span", "", each.description)
    words.dir = "auto"
    item.append(words)
    list.append(item)
  }
  return [title, list]
}

const drawChanges = data => {
  if (!data.changes.length && !data.changes_made) return null
  const section = make("section", "changes")
  section.append(make("h3", "", "What changed to arrive at this answer"))
  if (!data.changes.length) section.append(make("p", "", data.changes_made))
  for (const change of data.changes) {
    const row = make("div", "change")
    row.append(make("span", "change-kind", change.kind))
    const words = make("div", "change-words")
    words.dir = "auto"
    if (change.before) words.append(make("del", "", change.before))
    if (change.after) words.append(make("ins", "", change.after))
    words.append(make("p", "why", change.why))
    row.append(words)
    section.append(row)
  }
  return section
}
