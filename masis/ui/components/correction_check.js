// What a correction leaves, said before it is recorded and not after: issues, and citations that lead nowhere.

// Which issues of the answer shown it has left as they are, each with the way there (`show`); null where none are shown.
const untouchedIssues = (corrected, show) => {
  const asked = { corrected, count: 0, left: [], others: 0 }
  window.dispatchEvent(new CustomEvent("masis-untouched", { detail: asked }))
  if (!asked.count) return null
  const row = make("p", "dim untouched")
  row.append(asked.left.length ? asked.count === 1 ? "Its issue is left as it stands: " : `${asked.left.length} of ${asked.count} issues left as they stand: ` : asked.count === 1 ? "The words of its issue are changed." : `The words of ${asked.count === 2 ? "both" : `all ${asked.count}`} issues are changed.`)
  asked.left.forEach(({ number, text }, place) => row.append(place ? " · " : "", button("quiet", `issue ${number} (${text})`, "", () => show(number))))
  if (asked.others) row.append(` ${asked.others} more ${asked.others === 1 ? "is" : "are"} about the answer as a whole.`)
  return row
}

// Where a correction has the words that stand in the answer from one letter to another: of several places the one nearest to
// theirs; null where they are changed.
const wordsIn = (corrected, answer, { start, end }) => {
  const letters = Array.from(answer)
  const words = letters.slice(start, end).join("")
  const place = letters.slice(0, start).join("").length
  const starts = []
  for (let at = corrected.indexOf(words); at >= 0; at = corrected.indexOf(words, at + 1)) starts.push(at)
  if (!starts.length) return null
  const nearest = starts.reduce((one, other) => (Math.abs(other - place) < Math.abs(one - place) ? other : one))
  return [nearest, nearest + words.length]
}

// Selects words of a correction and scrolls to them.
const selectIn = (field, [start, end]) => {
  field.setSelectionRange(start, end)
  field.scrollTop = (field.scrollHeight * start) / field.value.length - field.clientHeight / 2
}

// The citations in it that no evidence has, and the sentences that cite nothing.
const offenders = check => {
  const rows = []
  const row = (...parts) => { const each = make("p", "offender"); each.append(...parts); rows.push(each) }
  if (check.fabricated.length) row("Not in the evidence of this case: ", ...check.fabricated.flatMap(each => [make("span", "ref-bad", each), " "]))
  for (const each of check.uncited) row("Cites nothing: ", named("span", "uncited", each, { dir: "auto" }))
  const more = check.uncited_count - check.uncited.length
  if (more > 0) rows.push(make("p", "dim", `and ${more} more`))
  return rows
}
