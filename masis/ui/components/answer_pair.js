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
    if (piece.says) mark.title = piece.says
    mark.append(piece.text)
    box.append(mark)
  }
}

const drawIssues = side => {
  if (!side.issues.length) return make("p", "dim", side.nothing_found)
  const list = make("ol", "issues")
  list.setAttribute("aria-label", side.opinion)
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

const drawDecision = side => {
  const box = make("div", "decision")
  const words = make("p", "")
  words.append(make("b", "", side.decision))
  if (side.reason) words.append(": ", outsideText("span", "", side.reason))
  box.append(words)
  if (side.note) box.append(outsideText("p", "note", side.note))
  for (const text of side.labels) box.append(outsideText("p", "dim", text))
  return box
}

const drawAnswerOf = (side, order, open) => {
  const section = make("section", "side")
  const head = make("h3", "")
  head.append(make("span", "dim", `${order} `), make("span", "system", side.system))
  if (side.judgement) head.append(" ", pill(side.judgement))
  const link = make("a", "case")
  link.href = side.href
  link.target = "_top"
  // Streamlit opens the page within the session; the browser would start a new one.
  link.onclick = event => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    open(side.case)
  }
  separable(link, side.case)
  section.append(head, link)
  if (side.decision) section.append(drawDecision(side))
  const text = outsideText("div", "text")
  if (side.no_answer) text.append(make("p", "dim", side.no_answer))
  drawPieces(text, side.pieces)
  text.tabIndex = 0 // long answers are scrolled, which keys must be able to do
  section.append(text)
  if (side.opinion) section.append(make("h4", "dim", side.opinion))
  section.append(drawIssues(side))
  return section
}

const BEARINGS = [
  ["good", "supports a claim"],
  ["bad", "contradicts a claim"],
  ["warn", "isn't in the answer"],
]

const drawEvidenceOf = evidence => {
  const section = make("section", "evidence")
  section.append(make("h3", "", evidence.title))
  const key = make("p", "dim key")
  const marked = new Set(evidence.chunks.flatMap(chunk => chunk.pieces.map(piece => piece.tone)))
  for (const [tone, text] of BEARINGS)
    if (marked.has(tone)) key.append(make("mark", `tone-${tone}`, text), " ")
  if (key.childNodes.length) key.append("Each mark names the system whose answer it is about. ")
  key.append("Unmarked words weren't matched to a claim; they may still matter.")
  section.append(key)
  for (const chunk of evidence.chunks) {
    const details = make("details", "chunk")
    details.open = Boolean(chunk.cited) || chunk.pieces.some(piece => piece.tone)
    const summary = make("summary", "")
    summary.append(make("b", "", chunk.id))
    if (chunk.source) summary.append(make("span", "dim", ` ${chunk.source}`))
    if (chunk.cited) summary.append(make("span", "dim", ` · ${chunk.cited}`))
    const text = outsideText("div", "words")
    for (const piece of chunk.pieces) {
      if (!piece.tone) {
        text.append(piece.text)
        continue
      }
      const mark = make("mark", `tone-${piece.tone}`)
      mark.append(make("sup", "", piece.of), piece.text)
      text.append(mark)
    }
    details.append(summary, text)
    section.append(details)
  }
  if (evidence.more > 0)
    section.append(make("p", "dim", `and ${evidence.more} more, on the page of the case`))
  return section
}

const drawFacts = (line, tag, facts) => {
  if (!facts.length) line.append("none")
  facts.forEach((fact, index) => line.append(index ? ", " : "", make(tag, "", fact)))
}

const drawDifference = ({ changes, no_changes, facts }) => {
  const section = make("section", "difference")
  section.append(make("h3", "", "What differs"))
  const [before, now] = facts
  if (before.length || now.length) {
    const line = make("p", "facts", "Figures and citations only before: ")
    drawFacts(line, "del", before)
    line.append(" · only now: ")
    drawFacts(line, "ins", now)
    section.append(line)
  }
  if (!changes) {
    section.append(make("p", "dim", no_changes))
    return section
  }
  const key = make("p", "dim key")
  key.append(make("del", "", "only before"), " ", make("ins", "", "only now"))
  const text = outsideText("div", "text")
  text.append(...renderDiff(changes))
  section.append(key, text)
  return section
}

const drawHeading = heading => {
  const head = make("header", "heading")
  const question = make("h2", "question", heading.question)
  question.dir = "auto"
  question.tabIndex = -1
  head.append(make("p", "dim place", heading.place), question)
  return head
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  const [before, now] = data.sides
  const open = id => setTriggerValue("open", id)
  const answers = make("div", "columns")
  answers.append(drawAnswerOf(before, "Before:", open), drawAnswerOf(now, "Now:", open))
  const evidence = make("div", data.evidence.length > 1 ? "columns" : "")
  evidence.append(...data.evidence.map(drawEvidenceOf))
  const head = drawHeading(data.heading)
  root.replaceChildren(head, answers, drawDifference(data), evidence)
  // A row far below may have been clicked, so the pair that it opens is brought into view.
  const focus = String(data.heading.focus)
  if (data.heading.focus && window.masisPairFocus !== focus) {
    window.masisPairFocus = focus
    head.scrollIntoView({ block: "start" })
    head.querySelector("h2").focus({ preventScroll: true })
  }
}
