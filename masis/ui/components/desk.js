export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root || root.dataset.version === data.version) return
  root.dataset.version = data.version
  root.replaceChildren()

  // What is selected: a claim of the answer (by index), a finding (by number), or a chunk of evidence (by id).
  const pieceElements = []
  const findingCards = new Map()
  const evidenceCards = new Map()
  const hidden = new Set()

  const answer = make("section", "answer")
  const findings = make("section", "findings")
  const evidence = make("section", "evidence")
  const why = make("div", "why-panel")
  why.setAttribute("aria-live", "polite")
  const narrow = () => root.clientWidth < 700

  const explain = (numbers, piece) => {
    why.replaceChildren()
    for (const number of numbers) {
      const finding = data.findings.find(item => item.number === number)
      const row = make("div", `reason tone-${finding.label.tone}`)
      row.append(make("b", "number", number), make("b", "", ` ${finding.label.text}. `), make("span", "", finding.reason))
      why.append(row)
    }
    if (piece && !numbers.length) {
      const row = make("div", `reason tone-${piece.verdict === "supported" ? "good" : "calm"}`)
      row.append(make("b", "", `${piece.verdict ?? piece.status ?? ""}. `), make("span", "", piece.why ?? ""))
      why.append(row)
    }
  }
  const clear = () => {
    why.replaceChildren()
    for (const element of root.querySelectorAll(".lit, .lit-against, .chosen")) {
      element.classList.remove("lit", "lit-against", "chosen")
    }
  }
  const reveal = element => {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches
    element?.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" })
  }
  const lightClaims = claims => {
    let first = null
    for (const card of evidenceCards.values()) {
      for (const [element, piece] of card.pieces) {
        const bears = piece.claims?.some(claim => claims.includes(claim))
        const against = piece.against?.some(claim => claims.includes(claim))
        if (!bears && !against) continue
        element.classList.add(against ? "lit-against" : "lit")
        card.element.classList.add("chosen")
        if (!first || (against && !first.classList.contains("lit-against"))) first = element
      }
    }
    return first
  }
  const choosePieces = test => {
    let first = null
    for (const [element, piece] of pieceElements) {
      if (!test(piece)) continue
      element.classList.add("chosen")
      first ??= element
    }
    return first
  }
  const showEvidence = (claims, ids) => {
    let target = lightClaims(claims)
    for (const id of ids) {
      const card = evidenceCards.get(id)
      if (!card) continue
      card.element.classList.add("chosen")
      target ??= card.element
    }
    reveal(target)
  }
  const selectFinding = (number, from) => {
    clear()
    const finding = data.findings.find(item => item.number === number)
    const card = findingCards.get(number)
    card?.classList.add("chosen")
    if (from === "answer") explain([number])
    const piece = choosePieces(item => item.findings?.includes(number))
    showEvidence(finding.claim === undefined ? [] : [finding.claim], finding.evidence)
    if (from === "findings") reveal(narrow() ? null : piece)
  }
  const selectPiece = piece => {
    const own = piece.findings ?? []
    clear()
    explain(own, piece)
    for (const number of own) findingCards.get(number)?.classList.add("chosen")
    choosePieces(item => item.sentence === piece.sentence)
    showEvidence(piece.claims ?? [], piece.evidence ? [piece.evidence] : [])
    if (narrow()) reveal(findingCards.get(own[0]))
  }
  const selectEvidence = card => {
    clear()
    evidenceCards.get(card.id).element.classList.add("chosen")
    const first = choosePieces(
      piece => piece.evidence === card.id || piece.claims?.some(claim => card.bearing.includes(claim)),
    )
    reveal(first)
  }
  const onActivate = (element, act) => {
    element.onclick = event => {
      if (window.getSelection()?.toString()) return
      event.stopPropagation()
      act()
    }
    element.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return
      event.preventDefault()
      event.stopPropagation()
      act()
    }
  }

  const drawLegend = () => {
    if (!data.legend.length) return
    const legend = make("div", "legend")
    legend.setAttribute("role", "group")
    legend.setAttribute("aria-label", "Marks shown in the answer")
    for (const entry of data.legend) {
      const button = make("button", `key tone-${entry.label.tone}`)
      button.type = "button"
      button.title = `${entry.label.meaning}. Click to hide or show.`
      button.setAttribute("aria-pressed", "true")
      button.append(make("span", `sample mark ${entry.mark}`, entry.mark.startsWith("ref-") ? "[1]" : "abc"))
      button.append(make("span", "key-word", entry.label.text), make("span", "key-count", entry.count))
      button.onclick = () => {
        const off = !hidden.has(entry.mark)
        off ? hidden.add(entry.mark) : hidden.delete(entry.mark)
        button.setAttribute("aria-pressed", String(!off))
        answer.classList.toggle(`hide-${entry.mark}`, off)
      }
      legend.append(button)
    }
    answer.append(legend)
  }

  const spoken = piece => {
    const words = []
    if (piece.reference) words.push(`citation ${piece.text}: ${piece.reference}`)
    if (piece.verdict && piece.verdict !== "supported") words.push(`claim: ${piece.verdict}`)
    if (piece.status && piece.status !== "cited") words.push(`${piece.status}: ${piece.why}`)
    return words.join("; ")
  }
  const drawPiece = piece => {
    const element = make("span", "mark", piece.text)
    if (piece.status) element.classList.add(`sentence-${piece.status}`)
    if (piece.verdict) element.classList.add(`claim-${piece.verdict}`)
    if (piece.reference) element.classList.add("ref", `ref-${piece.reference}`)
    if (piece.fact) element.classList.add("fact")
    const clickable = piece.findings?.length || piece.claims?.length || piece.evidence
    if (clickable && piece.text.trim()) {
      element.classList.add("active")
      onActivate(element, () => selectPiece(piece))
    }
    if (piece.reference) {
      element.tabIndex = 0
      element.setAttribute("role", "button")
      element.setAttribute("aria-label", spoken(piece))
      element.title = spoken(piece)
    }
    pieceElements.push([element, piece])
    return element
  }
  const drawTag = number => {
    const finding = data.findings.find(item => item.number === number)
    const tag = make("button", `tag tone-${finding.label.tone}`)
    tag.type = "button"
    tag.append(make("b", "", number), make("span", "", ` ${finding.label.text}`))
    tag.setAttribute("aria-label", `Finding ${number}: ${finding.label.text}. ${finding.reason}`)
    onActivate(tag, () => selectFinding(number, "answer"))
    return tag
  }

  const drawAnswer = () => {
    answer.append(make("h3", "", "Answer"))
    drawLegend()
    if (!data.pieces.length) {
      answer.append(make("p", "dim", "This case came without an answer: an audit first drafts one from the evidence."))
      return
    }
    const text = make("div", "text")
    text.dir = "auto"
    for (const piece of data.pieces) {
      text.append(drawPiece(piece))
      for (const number of piece.ends ?? []) text.append(drawTag(number))
    }
    answer.append(text)
  }

  const drawFinding = finding => {
    const card = make("article", `finding tone-${finding.label.tone}`)
    card.tabIndex = 0
    const head = make("div", "finding-head")
    head.append(make("b", "number", finding.number), make("span", "finding-word", finding.label.text))
    head.append(make("span", `severity severity-${finding.severity}`, finding.severity))
    card.append(head, make("p", "what", finding.description))
    if (finding.reason) card.append(make("p", "why", finding.reason))
    if (finding.suggestion) card.append(make("p", "cure", finding.suggestion))
    for (const id of finding.evidence) {
      const link = make("button", "chip", id)
      link.type = "button"
      onActivate(link, () => selectFinding(finding.number, "findings"))
      card.append(link)
    }
    onActivate(card, () => selectFinding(finding.number, "findings"))
    findingCards.set(finding.number, card)
    return card
  }
  const drawFindings = () => {
    if (!data.audited) return
    findings.append(make("h3", "", `Findings (${data.findings.length})`))
    if (!data.findings.length) {
      findings.append(make("p", "dim", "Nothing was found: every checked sentence is cited, and its evidence bears it."))
    }
    const whole = data.findings.filter(item => !item.placed)
    for (const finding of data.findings.filter(item => item.placed)) findings.append(drawFinding(finding))
    if (whole.length) findings.append(make("h4", "", "About the answer as a whole"))
    for (const finding of whole) findings.append(drawFinding(finding))
  }

  const drawChanges = () => {
    if (!data.changes.length && !data.changes_made) return null
    const section = make("section", "changes")
    section.append(make("h3", "", "What changed to arrive at this answer"))
    if (!data.changes.length) section.append(make("p", "", data.changes_made))
    for (const change of data.changes) {
      const row = make("div", "change")
      row.append(make("span", "change-kind", change.kind))
      const words = make("div", "change-words")
      if (change.before) words.append(make("del", "", change.before))
      if (change.after) words.append(make("ins", "", change.after))
      words.append(make("p", "why", change.why))
      row.append(words)
      section.append(row)
    }
    return section
  }

  const drawCard = card => {
    const element = make("article", "card")
    element.tabIndex = 0
    element.dataset.id = card.id
    const head = make("div", "card-head")
    head.append(make("b", "card-id", card.id))
    if (data.audited) {
      head.append(make("span", "dim", card.cited ? `cited by ${card.cited} sentence${card.cited > 1 ? "s" : ""}` : "not cited"))
    }
    element.append(head)
    if (card.source) element.append(make("div", "source dim", card.source))
    const text = make("div", "card-text")
    text.dir = "auto"
    const pieces = []
    for (const piece of card.pieces) {
      const span = make("span", piece.claims || piece.against ? "bearing" : "", piece.text)
      pieces.push([span, piece])
      text.append(span)
    }
    if (!card.pieces.length) text.append(make("em", "dim", "No text: only an address is known, so nothing can be checked."))
    element.append(text)
    onActivate(element, () => selectEvidence(card))
    evidenceCards.set(card.id, { element, pieces })
    return element
  }
  const drawEvidence = () => {
    evidence.append(make("h3", "", `Evidence (${data.evidence_total})`))
    const list = make("div", "cards")
    for (const card of data.evidence) list.append(drawCard(card))
    const rest = data.evidence_total - data.evidence.length
    if (rest > 0) list.append(make("p", "dim", `${rest} more chunks, cited nowhere and bearing no claim, are not drawn.`))
    evidence.append(why, list)
  }

  drawAnswer()
  drawFindings()
  drawEvidence()
  const left = make("div", "left")
  left.append(answer, findings)
  const changes = drawChanges()
  if (changes) left.append(changes)
  root.append(left, evidence)
}
