// Checks a correction before it's recorded: issues that it leaves unchanged, and citations without
// evidence.

// Returns a line with the issues that a correction leaves unchanged (`untouched` in
// answer_view.js), each with a button that calls `show`. Returns null if the answer has no issues.
const untouchedIssues = ({ count, left, others, missing }, show) => {
  if (!count) return null
  const row = make("p", "dim untouched")
  const add = (issues, says) => {
    row.append(row.childNodes.length ? ". " : "", says)
    issues.forEach(({ number, text }, index) =>
      row.append(
        index ? " · " : ": ",
        button("quiet", `issue ${number} (${text})`, "", () => show(number)),
      ),
    )
  }
  // A missing point has no words that could be unchanged, so that it's counted for itself
  const [pointsLeft, wordsLeft] = [true, false].map(kind =>
    left.filter(issue => issue.isMissing === kind),
  )
  const inWords = count - missing
  const its = count === 1 ? "its" : "the"
  if (inWords === 1)
    add(
      wordsLeft,
      wordsLeft.length
        ? `The words of ${its} issue are unchanged`
        : `You've changed the words of ${its} issue`,
    )
  else if (inWords)
    add(
      wordsLeft,
      wordsLeft.length
        ? `The words of ${wordsLeft.length} of ${inWords} issues are unchanged`
        : `You've changed the words of ${inWords === 2 ? "both" : `all ${inWords}`} issues`,
    )
  if (missing === 1)
    add(
      pointsLeft,
      `${its === "its" ? "Its" : "The"} missing point ` +
        (pointsLeft.length ? "isn't in the correction yet" : "is in the correction now"),
    )
  else if (missing)
    add(
      pointsLeft,
      pointsLeft.length
        ? `${pointsLeft.length} of ${missing} missing points ` +
            `${pointsLeft.length === 1 ? "isn't" : "aren't"} in the correction yet`
        : `${missing === 2 ? "Both" : `All ${missing}`} missing points are in the correction now`,
    )
  row.append(".")
  if (others)
    row.append(` ${others} more ${others === 1 ? "is" : "are"} about the answer as a whole.`)
  return row
}

// Returns a line with the issues that the audit of a revision has left in it.
const auditedIssues = ({ name, issues }) =>
  make(
    "p",
    "dim untouched",
    issues.length
      ? `The audit of ${name} leaves ${plural(issues.length, "issue")}: ${issues.join(" · ")}.`
      : `The audit of ${name} leaves no issue.`,
  )

// Finds the words of the answer between two offsets in the correction. If the correction has them
// several times, returns the range nearest to their place in the answer. Returns null if they were
// changed.
const findWords = (corrected, answer, { start, end }) => {
  const letters = Array.from(answer) // offsets count code points, not UTF-16 units
  const words = letters.slice(start, end).join("")
  const place = letters.slice(0, start).join("").length
  const starts = []
  for (let at = corrected.indexOf(words); at >= 0; at = corrected.indexOf(words, at + 1))
    starts.push(at)
  if (!starts.length) return null
  const nearest = starts.reduce((best, at) =>
    Math.abs(at - place) < Math.abs(best - place) ? at : best,
  )
  return [nearest, nearest + words.length]
}

// Returns where a sentence of the answer ends in the correction, or -1. If it was changed, this is the
// end of the sentence that has most of its words, and if it was removed, of the one before it.
const endOfSentence = (corrected, answer, sentence) => {
  const exact = corrected.lastIndexOf(sentence)
  if (exact >= 0) return exact + sentence.length
  const old = answer.split(SENTENCE_BREAK)
  const terms = [...new Set(termsOf(sentence))]
  let best = { shared: terms.length / 2, end: -1 }
  let at = 0
  for (const part of corrected.split(SENTENCE_BREAK)) {
    const start = corrected.indexOf(part, at)
    at = start + part.length
    if (old.includes(part)) continue
    const has = new Set(termsOf(part))
    const shared = terms.filter(term => has.has(term)).length
    if (shared >= best.shared) best = { shared, end: at }
  }
  if (best.end >= 0) return best.end
  const before = answer.slice(0, Math.max(answer.lastIndexOf(sentence), 0)).split(SENTENCE_BREAK)
  const left = before.findLast(part => part && corrected.includes(part))
  return left ? corrected.lastIndexOf(left) + left.length : -1
}

// Returns where a sentence without a citation ends in the correction, before its stop, or -1 if it
// was changed. The words alone may also begin a longer sentence.
const endOfUncited = (corrected, words) => {
  const hasStop = /[.!?]["'”’»)]+$/.test(words) // within the quotation that ends it
  const rest = hasStop ? /^(?:\s|$)/ : /^(?:[.!?;:]+(?:\s|$)|[^\S\n]*(?:\n|$))/
  let at = corrected.lastIndexOf(words)
  while (at >= 0 && !rest.test(corrected.slice(at + words.length)))
    at = at ? corrected.lastIndexOf(words, at - 1) : -1
  return at < 0 ? -1 : at + words.length
}

// Returns what separates an inserted sentence from the text before it: a blank, or after an item of a
// list that has no full stop, a new line with the item's bullet.
const separatorAfter = text => {
  const line = text.slice(text.lastIndexOf("\n") + 1)
  const [bullet] = line.match(/^\s*[-*+•]\s+/) ?? []
  const hasStop = new RegExp(`[.!?](?:\\s*\\S{1,80}(?<=${MARKER_END}))?$`).test(line)
  return bullet && !hasStop ? `\n${bullet}` : " "
}

// Selects a range of a correction and scrolls to it. Browsers don't scroll a text area to a
// selection set by script, so the position is estimated from the length of the text.
const selectRange = (field, [start, end]) => {
  field.setSelectionRange(start, end)
  field.scrollTop = (field.scrollHeight * start) / field.value.length - field.clientHeight / 2
}

// Returns lines with the citations that match no evidence and the sentences without a citation.
const citationProblems = check => {
  const rows = []
  const addRow = (...parts) => {
    const row = make("p", "offender")
    row.append(...parts)
    rows.push(row)
  }
  if (check.fabricated.length)
    addRow(
      "Not in the evidence of this case: ",
      ...check.fabricated.flatMap(reference => [make("span", "ref-bad", reference), " "]),
    )
  for (const sentence of check.uncited)
    addRow("Cites nothing: ", outsideText("span", "uncited", sentence))
  const more = check.uncited_count - check.uncited.length
  if (more > 0) rows.push(make("p", "dim", `and ${more} more`))
  return rows
}
