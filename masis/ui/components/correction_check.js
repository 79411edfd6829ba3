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
