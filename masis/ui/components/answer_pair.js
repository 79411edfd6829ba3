// Two answers to one question, side by side: marked words with their issues, the words that differ,
// and the evidence of each answer.
const drawPieces = (box, pieces) => {
  for (const piece of pieces) {
    if (!piece.tone) {
      box.append(make("span", "", piece.text))
      continue
    }
    const mark = make("mark", `tone-${piece.tone}`)
    if (piece.starts) mark.append(make("sup", "", piece.issues.join(",")))
    mark.append(piece.text)
    box.append(mark)
  }
}

const drawIssues = side => {
  if (!side.issues.length) return make("p", "dim", side.nothing_found)
  const list = make("ol", "issues")
  for (const issue of side.issues) {
    const item = make("li", "")
    item.value = issue.number
    item.append(pill(issue.label), make("span", "severity", ` ${issue.severity} `))
    const words = outsideText("span", "", issue.text)
    item.append(words)
    if (issue.reason && issue.reason !== issue.text) {
      const reason = outsideText("p", "dim", issue.reason)
      item.append(reason)
    }
    list.append(item)
  }
  return list
}

const drawAnswerOf = (side, order) => {
  const section = make("section", "side")
  const head = make("h3", "")
  head.append(make("span", "dim", `${order} `), make("span", "system", side.system))
  if (side.judgement) head.append(" ", pill(side.judgement))
  const link = make("a", "case")
  link.href = side.href
  link.target = "_top"
  separable(link, side.case)
  section.append(head, link)
  const text = outsideText("div", "text")
  if (side.no_answer) text.append(make("p", "dim", side.no_answer))
  drawPieces(text, side.pieces)
  section.append(text, drawIssues(side))
  return section
}

const drawEvidenceOf = (side, title) => {
  const section = make("section", "evidence")
  section.append(make("h3", "", title))
  const key = make("p", "dim key")
  key.append(
    make("mark", "tone-good", "bears out a claim"),
    " ",
    make("mark", "tone-bad", "contradicts a claim"),
  )
  section.append(key)
  for (const chunk of side.evidence) {
    const details = make("details", "chunk")
    details.open = chunk.cited > 0 || chunk.pieces.some(piece => piece.tone)
    const summary = make("summary", "")
    summary.append(make("b", "", chunk.id))
    if (chunk.source) summary.append(make("span", "dim", ` ${chunk.source}`))
    if (chunk.cited) summary.append(make("span", "dim", ` cited ${chunk.cited} ×`))
    const text = outsideText("div", "words")
    drawPieces(text, chunk.pieces)
    details.append(summary, text)
    section.append(details)
  }
  const rest = side.evidence_total - side.evidence.length
  if (rest > 0) section.append(make("p", "dim", `and ${rest} more, on the page of the case`))
  return section
}

const drawDifference = changes => {
  const section = make("section", "difference")
  section.append(make("h3", "", "Words that differ"))
  if (!changes) {
    section.append(make("p", "dim", "Both answers are the same, word for word."))
    return section
  }
  const key = make("p", "dim key")
  key.append(make("del", "", "only before"), " ", make("ins", "", "only now"))
  const text = outsideText("div", "text")
  text.append(...renderDiff(changes))
  section.append(key, text)
  return section
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  const [before, now] = data.sides
  const answers = make("div", "columns")
  answers.append(drawAnswerOf(before, "Before:"), drawAnswerOf(now, "Now:"))
  const evidence = make("div", data.same_evidence ? "" : "columns")
  if (data.same_evidence) evidence.append(drawEvidenceOf(now, "Evidence (the same for both)"))
  else {
    evidence.append(
      drawEvidenceOf(before, `Evidence of ${before.system}`),
      drawEvidenceOf(now, `Evidence of ${now.system}`),
    )
  }
  root.replaceChildren(answers, drawDifference(data.changes), evidence)
}
