// The answer with its marks, issues and changes, and next to it the evidence, which scrolls
// separately. The desk calls `drawAnswer` and the functions that it returns (desk.js).
const NARROW_PX = 700
const FIRST_CHARACTERS = 20_000 // of an answer; the rest is drawn on demand
const FIRST_ISSUES = 40
const LONG_CHUNK = 1_600
const referenceWords = {
  fabricated: "fabricated",
  misattributed: "misattributed",
  redundant: "redundant",
  unsupported: "does not support this",
  contradicts: "contradicts this",
  valid: "names evidence",
}
const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`
const shortened = (text, length) =>
  text.length > length ? `${text.slice(0, length).trimEnd()} …` : text
const lettersIn = text => Array.from(text).length // in code points, as Python counts them
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
    key.append(
      make("del", "", "removed"),
      ` ${plural(difference.words_out, "word")}  `,
      make("ins", "", "added"),
      ` ${plural(difference.words_in, "word")}`,
    )
  }
  return key
}

const drawFixed = data => {
  const title = make("h3", "", `Fixed since iteration ${data.iteration - 1}`)
  const list = make("ul", "fixed")
  for (const issue of data.fixed) {
    const item = make("li", "")
    item.append(make("span", "tick", "✓"), make("b", "", ` ${issue.label.text}. `))
    const words = outsideText("span", "", issue.description)
    item.append(words)
    list.append(item)
  }
  return [title, list]
}

const drawChanges = data => {
  if (!data.changes.length && !data.changes_made) return null
  const section = make("section", "changes")
  section.append(make("h2", "", "Changes that led to this answer"))
  if (!data.changes.length) section.append(make("p", "", data.changes_made))
  for (const change of data.changes) {
    const row = make("div", "change")
    row.append(make("span", "change-kind", change.kind))
    const words = outsideText("div", "change-words")
    if (change.before) words.append(make("del", "", change.before))
    if (change.after) words.append(make("ins", "", change.after))
    words.append(make("p", "why", change.why))
    row.append(words)
    section.append(row)
  }
  return section
}

// A selection is widened to whole words, but not in scripts that write words without spaces between
// them.
const WITHOUT_BLANKS =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u
const inWord = letter => /[\p{L}\p{M}\p{N}]/u.test(letter) && !WITHOUT_BLANKS.test(letter)

const chunkTarget = id => `evidence:${id}`

// Draws an answer and returns the functions that act on it. `desk` has what its buttons do.
function drawAnswer(root, data, desk) {
  root.dataset.version = data.version
  const [run] = data.version.split("/", 1)
  // Marks are hidden for one case; the next case shows all of them
  if (root.run !== run) root.hiddenMarks = new Set()
  root.run = run
  // The part of another answer can't be labelled here
  root.targetAt = root.selectedAt = null
  root.replaceChildren()

  const pieceElements = []
  const issueCards = new Map()
  const tags = new Map()
  // The elements that hold text, each with its offset in the answer, in characters
  const textPieces = []
  const evidenceCards = new Map()
  const issuesByNumber = new Map(data.issues.map(issue => [issue.number, issue]))
  const answer = make("section", "answer")
  answer.tabIndex = -1
  const issues = make("section", "issues")
  const evidence = make("section", "evidence")
  const why = make("div", "why-panel")
  why.setAttribute("role", "status")
  why.setAttribute("aria-live", "polite")
  const close = plainButton("close", "✕") // shown when the reasons cover the answer
  close.setAttribute("aria-label", "Close the reasons")
  close.onclick = () => dismiss()
  let drawRest = () => {}

  // --- the selection and its explanation
  // ----------------------------------------------------------------------------
  const isNarrow = () => root.clientWidth < NARROW_PX
  // In a narrow window, answer and evidence are tabs.
  const grid = make("div", "grid")
  const tabs = make("div", "tabs")
  tabs.setAttribute("role", "tablist")
  const showTab = name => {
    grid.dataset.tab = name
    for (const tab of tabs.children)
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name))
  }
  for (const [name, text] of [
    ["answer", "Answer"],
    ["evidence", `Evidence (${data.evidence_total.toLocaleString("en")})`],
  ]) {
    const tab = plainButton("tab", text)
    tab.dataset.tab = name
    tab.setAttribute("role", "tab")
    tab.onclick = () => showTab(name)
    tabs.append(tab)
  }
  showTab("answer")
  const reducesMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches
  const reveal = element =>
    element?.scrollIntoView({ block: "nearest", behavior: reducesMotion() ? "auto" : "smooth" })
  // Moves the focus to the answer or the evidence. Going back to the answer returns to the element
  // that the reader left.
  const turnTo = (name, element) => {
    showTab(name)
    const goal =
      element ??
      (name === "answer" ? (root.cameFrom?.isConnected ? root.cameFrom : answer) : evidence)
    goal.focus({ preventScroll: true })
    if (isNarrow())
      goal.scrollIntoView({ block: name === "evidence" || goal === answer ? "start" : "center" })
  }
  const turn = () => {
    const focused = root.getRootNode().activeElement
    const isInEvidence = isNarrow() ? grid.dataset.tab === "evidence" : evidence.contains(focused)
    if (!isInEvidence && answer.contains(focused)) root.cameFrom = focused
    turnTo(isInEvidence ? "answer" : "evidence")
  }
  const revealEvidence = (element, follow, opening) => {
    if (!element) return
    const card = element.closest(".card")
    card?.unfold?.()
    if (isNarrow() && follow) {
      root.cameFrom = follow
      turnTo("evidence", card.querySelector(".card-head"))
      // the reader still stands on the marker: L labels it, not the chunk
      card.dataset.followed = "true"
      card.addEventListener("focusout", () => delete card.dataset.followed, { once: true })
      const back = plainButton("link back", "Back to the answer")
      back.append(make("kbd", "", "G"))
      back.onclick = () => turnTo("answer")
      close.after(back) // at the top, as long lists of reasons have to be scrolled
    }
    if (isNarrow() && grid.dataset.tab === "answer") return
    const pane = evidence.getBoundingClientRect()
    const head = isNarrow() ? 0 : why.offsetHeight + 14
    const room = pane.height - head
    const isCardInView = card && card.offsetHeight <= room
    const { top } = (isCardInView ? card : element).getBoundingClientRect()
    // Shows the card from its head, or if it's too long centers the passage with its context
    const margin = isCardInView ? 0 : (room - element.offsetHeight) / 2
    const goal = evidence.scrollTop + top - pane.top - head - Math.max(margin, 0)
    evidence.scrollTo({
      top: Math.max(0, goal),
      behavior: opening || reducesMotion() ? "auto" : "smooth",
    })
    if (!opening && (pane.top < 0 || pane.bottom > window.innerHeight)) reveal(evidence)
  }
  const clear = () => {
    root.targetAt = null
    root.selections = (root.selections ?? 0) + 1
    root.selectedAt = root.getRootNode().activeElement
    // the bar that labels a part stays until the reader closes it (label_bar.js)
    why.replaceChildren(...why.querySelectorAll(":scope > .label-bar"), close)
    for (const element of root.querySelectorAll(".lit, .lit-near, .lit-against, .chosen")) {
      element.classList.remove("lit", "lit-near", "lit-against", "chosen")
    }
  }
  const dismiss = () => {
    clear()
    close.remove()
  }
  const addLines = (row, lines) =>
    row.append(...lines.map(line => outsideText("div", "reason-line", line)))
  // Adds a reason to the panel. `target` is the claim, reference or sentence that it's about.
  const addReason = (label, head, lines, target) => {
    const row = make("div", `reason tone-${label.tone}`)
    const title = make("div", "reason-head")
    title.append(pill(label))
    if (head) {
      const words = outsideText("span", "reason-about", head)
      title.append(words)
    }
    row.append(title)
    addLines(row, lines)
    if (target) title.append(labelButton(target))
    why.append(row)
    return row
  }
  // L labels the part that was chosen, or else the first one whose reasons are shown.
  const labelButton = target => {
    const [kind] = target.split(":")
    const go = plainButton("link label-this", `Label this ${kind === "evidence" ? "chunk" : kind}`)
    root.targetAt ??= target
    if (target === root.targetAt && !why.querySelector(".label-this kbd"))
      go.append(make("kbd", "", "L"))
    go.onclick = () => desk.labelTarget(target)
    return go
  }
  const isMissing = issue => issue.claim < 0
  const targetOf = (issue, piece) =>
    issue.target ??
    (
      data.claims[issue.claim] ??
      data.references[piece?.citation] ??
      data.claims[piece?.claims?.[0]]
    )?.target
  // Several checks may raise the same issue. Their additions are listed below it, but a mere
  // repetition by the critic is shown only on the issue's card.
  const linesOf = issue => [
    ...(isMissing(issue) ? [issue.description, issue.reason] : [issue.reason || issue.description]),
    ...issue.also
      .filter(addition => !addition.restates)
      .map(
        ({ label, description, reason }) =>
          `${label.text}: ${[description, reason].filter(Boolean).join(" ")}`,
      ),
  ]
  const explainIssue = (issue, piece) => {
    const row = addReason(
      issue.label,
      `Issue ${issue.number}, ${issue.severity}`,
      linesOf(issue),
      targetOf(issue, piece),
    )
    if (!issue.insert || desk.isFinal || !data.audited) return row
    const add = plainButton(
      "link insert",
      isMissing(issue)
        ? "Insert into the correction"
        : `Insert the ${issue.insert.cites ? "citation" : "evidence’s sentence"}`,
    )
    add.append(make("kbd", "", "I"))
    add.title = issue.insert.text
    // A missing point may be said in other words. A sentence that contradicts the answer has most
    // words in common with it, so only the sentence itself counts.
    const { says } = issue.insert
    const isSaid = text =>
      isMissing(issue) ? addsPoint(whole, text, says, "sentence") : text.includes(says)
    add.onclick = () => desk.insert(issue.insert, isSaid, issue.number)
    add.hideIfInserted = () => {
      add.hidden = isSaid(desk.correction())
    }
    add.hideIfInserted()
    row.append(add)
    return row
  }
  // A range such as [1-3] has several references in one place.
  const referencesOf = piece =>
    (piece.members ?? [piece.citation]).map(index => data.references[index]).filter(Boolean)
  const explainPiece = piece => {
    const own = (piece.issues ?? [])
      .map(number => issuesByNumber.get(number))
      .filter(Boolean)
      .sort((a, b) => a.number - b.number)
    const rows = new Map(own.map(issue => [issue, explainIssue(issue, piece)]))
    const shown = own.flatMap(linesOf).join(" ").toLowerCase()
    const fresh = lines => lines.filter(line => !shown.includes(line.toLowerCase()))
    for (const reference of referencesOf(piece)) {
      const lines = fresh(reference.says)
      const issue = own.find(issue => issue.target === reference.target)
      if (issue) {
        addLines(rows.get(issue), lines)
        continue
      }
      const isOffered = own.some(issue => targetOf(issue, piece) === reference.target)
      addReason(reference.label, reference.text, lines, isOffered ? null : reference.target)
    }
    for (const number of piece.claims ?? []) {
      const claim = data.claims[number]
      if (own.some(issue => issue.claim === number)) continue
      const support = claim.support === undefined ? "" : `, support ${claim.support.toFixed(2)}`
      addReason(
        claim.label,
        `Claim${support}${claim.by ? `, judged by ${claim.by}` : ""}`,
        fresh(claim.says),
        claim.target,
      )
    }
    if (piece.status && piece.status !== "cited" && !own.length)
      addReason(sentenceLabel(piece.status), "Sentence", [piece.why])
  }
  // Green means that the evidence supports the claim. A passage that only resembles an unconfirmed
  // claim is neutral.
  const isSupported = claim => data.claims[claim]?.label.tone === "good"
  // An unconfirmed claim is marked calmly, since nothing was found against it.
  const isUnconfirmed = claim => data.claims[claim]?.label.tone === "calm"
  const sentenceLabel = status =>
    data.legend.find(entry => entry.mark === `sentence-${status}`)?.label ?? {
      text: status,
      tone: "calm",
    }

  const lightClaims = claims => {
    const lit = []
    for (const [id, card] of evidenceCards) {
      for (const [element, piece] of card.pieces) {
        const against = piece.against?.some(claim => claims.includes(claim))
        if (!against && !piece.claims?.some(claim => claims.includes(claim))) continue
        element.classList.add(
          against ? "lit-against" : claims.some(isSupported) ? "lit" : "lit-near",
        )
        card.element.classList.add("chosen")
        lit.push({ id, element, against })
      }
    }
    return lit
  }
  const showEvidence = (claims, ids, follow, opening) => {
    const lit = lightClaims(claims)
    const first = lit.find(item => item.against) ?? lit[0]
    let target = first?.element
    for (const id of ids) {
      const card = evidenceCards.get(id)
      if (!card) continue
      card.element.classList.add("chosen")
      target ??= card.element
    }
    // a claim confirmed without a passage needs no note about passages
    if (ids.length || (claims.length && (lit.length || !claims.some(isSupported))))
      listPassages(lit, ids, claims)
    revealEvidence(target, follow, opening)
  }
  const listPassages = (lit, ids, claims) => {
    const isUndecided = claims.length && claims.every(isUnconfirmed)
    const line = make("div", "lit-note")
    const places = [...new Set(lit.map(item => item.id))]
    const named = places.length ? places : ids.filter(id => evidenceCards.has(id))
    line.append(
      make(
        "span",
        "",
        lit.length
          ? isUndecided
            ? "Not confirmed. The most similar words are in "
            : "Highlighted in the evidence: "
          : named.length
            ? "No passage is highlighted. Compare with "
            : "The checks found no passage that supports or contradicts it. There may be one.",
      ),
    )
    for (const id of named.slice(0, 6)) {
      const go = plainButton("chip", id)
      go.onclick = () => {
        const place = lit.find(item => item.id === id)?.element ?? evidenceCards.get(id).element
        revealEvidence(place, answer)
      }
      line.append(go)
    }
    if (named.length > 6) line.append(make("span", "", `and ${named.length - 6} more`))
    why.append(line)
    if (isNarrow() && lit.length) {
      // Contradicting passages matter more than supporting ones
      const against = lit.some(item => item.against)
      const passages = Map.groupBy(
        lit.filter(item => Boolean(item.against) === against),
        item => item.id,
      )
      for (const [id, items] of [...passages].slice(0, 2)) {
        const words = make(
          "blockquote",
          "",
          `${id}: ${shortened(
            items
              .map(
                ({ element }, place) =>
                  (place && element.previousSibling !== items[place - 1].element ? " … " : "") +
                  element.textContent,
              )
              .join("")
              .trim(),
            300,
          )}`,
        )
        words.dir = "auto"
        line.before(words)
      }
    }
  }
  const choosePieces = test => {
    const chosen = pieceElements.filter(([, piece]) => test(piece))
    if (chosen.length && data.corrected) showVersion("audited")
    for (const [element] of chosen) element.classList.add("chosen")
    return chosen
  }
  const selectIssue = (number, from) => {
    const issue = issuesByNumber.get(number)
    if (!issue) return
    clear()
    root.issueAt = number
    root.claimAt = null
    const card = issueCards.get(number)
    card?.classList.add("chosen")
    if (issue.placed && !pieceElements.some(([, piece]) => piece.issues?.includes(number)))
      drawRest()
    const [piece] = choosePieces(item => item.issues?.includes(number))
    explainIssue(issue, piece?.[1])
    showEvidence(
      issue.claim === undefined ? (piece?.[1].claims ?? []) : [issue.claim],
      issue.evidence,
    )
    // While correcting, the reader keeps the tab that is open
    if (from !== "correction") showTab("answer")
    if (from === "issues" && piece) reveal(piece[0])
  }
  // `follow` is set for a marker: in a narrow window it opens its evidence, and the reader can come
  // back to it. `target` is the part that was chosen, if it's known.
  const selectPiece = (piece, follow, target = null) => {
    clear()
    root.targetAt = target
    // F continues from this issue or claim
    root.claimAt = target ?? data.claims[piece.claims?.[0]]?.target ?? null
    if (piece.issues?.length) {
      root.issueAt = Math.min(...piece.issues)
      root.claimAt = null
    }
    for (const number of piece.issues ?? []) issueCards.get(number)?.classList.add("chosen")
    choosePieces(item => item.sentence === piece.sentence)
    explainPiece(piece)
    // A marker often stands behind the words of the claims that it's for.
    const references = referencesOf(piece)
    const claims = [...(piece.claims ?? []), ...references.flatMap(reference => reference.claims)]
    const ids = references.map(reference => reference.evidence).filter(Boolean)
    showEvidence([...new Set(claims)], [...new Set(ids)], follow)
  }
  const selectMarker = (piece, element) =>
    selectPiece(piece, piece.evidence ? element : null, data.references[piece.citation]?.target)
  const isOfTarget = (piece, key) =>
    data.references[piece.citation]?.target === key ||
    piece.claims?.some(claim => data.claims[claim].target === key) ||
    piece.issues?.some(number => issuesByNumber.get(number)?.target === key)
  // Shows the reasons and the evidence of a claim, a reference or a sentence, by its key among the
  // labels.
  const showTarget = key => {
    const hasKey = piece => isOfTarget(piece, key)
    if (!pieceElements.some(([, piece]) => hasKey(piece))) drawRest()
    const [element, piece] = pieceElements.find(([, each]) => hasKey(each)) ?? []
    if (!piece) return
    selectPiece(piece, null, key)
    reveal(element)
  }
  const selectEvidence = card => {
    clear()
    evidenceCards.get(card.id).element.classList.add("chosen")
    const relies = piece =>
      piece.evidence === card.id || piece.claims?.some(claim => card.bearing.includes(claim))
    if (data.pieces.some(relies)) drawRest()
    const chosen = choosePieces(relies)
    const sentences = new Set(chosen.map(([, piece]) => piece.sentence))
    const words = data.difference
      ? "Marks in the answer are hidden while changes are shown."
      : chosen.length
        ? `Highlighted in the answer: ${plural(sentences.size, "sentence")} that ` +
          `${sentences.size === 1 ? "relies" : "rely"} on ${card.id}.`
        : `No sentence of the answer relies on ${card.id}.`
    const note = make("div", "lit-note", `${words} `)
    note.append(labelButton(chunkTarget(card.id)))
    why.append(note)
    reveal(chosen[0]?.[0])
  }
  // Returns the piece of the answer, or the issue of the tag or card, that has the focus. An element
  // that had the focus when something was selected doesn't count: the selection is newer.
  const focusedPart = () => {
    const focused = root.getRootNode().activeElement
    if (!focused || focused === root.selectedAt) return {}
    const [, piece] = pieceElements.find(([element]) => element === focused) ?? []
    const isOf = element => element === focused || element.querySelector(".issue-head") === focused
    const [number] = [...tags, ...issueCards].find(([, element]) => isOf(element)) ?? []
    const issue = issuesByNumber.get(number)
    const [first] = issue ? data.pieces.filter(own => own.issues?.includes(number)) : []
    return { piece: piece ?? first, issue }
  }
  const targetInFocus = () => {
    const focused = root.getRootNode().activeElement
    const card =
      evidence.contains(focused) && focused !== root.selectedAt && focused.closest(".card")
    if (card && !card.dataset.followed) return chunkTarget(card.dataset.id)
    const { piece, issue } = focusedPart()
    return issue ? targetOf(issue, piece) : data.references[piece?.citation]?.target
  }
  // Returns the ids of the evidence that the sentences with these words cite.
  const citedBy = (start, end) => {
    const isInWords = piece =>
      offsets.get(piece) < end && offsets.get(piece) + lettersIn(piece.text) > start
    const sentences = data.pieces.filter(isInWords).map(piece => piece.sentence)
    const cited = data.pieces.filter(piece => sentences.includes(piece.sentence))
    return cited.flatMap(piece => referencesOf(piece).map(reference => reference.evidence))
  }
  // Returns the element that gets the focus for a target: its issue's tag, its marker or its chunk.
  const elementOf = key => {
    const [kind, id] = [key.slice(0, key.indexOf(":")), key.slice(key.indexOf(":") + 1)]
    if (kind === "evidence") return evidenceCards.get(id)?.element.querySelector(".card-head")
    const isOfIssue = ([number]) => targetOf(issuesByNumber.get(number)) === key
    const isMarker = ([element, piece]) =>
      element.tabIndex === 0 && data.references[piece.citation]?.target === key
    return [...tags].find(isOfIssue)?.[1] ?? pieceElements.find(isMarker)?.[0] ?? answer
  }
  // Returns the offset in the answer of the part that has the focus or is selected, in characters.
  const placeOfReader = () => {
    const chosen = pieceElements.find(([element]) => element.classList.contains("chosen"))
    return offsets.get(focusedPart().piece ?? chosen?.[1])
  }
  const onActivate = (element, activate) => {
    element.onclick = event => {
      if (window.getSelection()?.toString()) return
      event.stopPropagation()
      activate()
    }
    element.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return
      if (event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      event.stopPropagation()
      activate()
    }
  }

  // --- the answer
  // ------------------------------------------------------------------------------------------
  const sampleOf = mark => ({ ref: "[1]", fact: "42" })[mark.split("-", 1)[0]] ?? "abc"
  const classesOf = mark =>
    ["ref", "fact"]
      .filter(kind => mark.startsWith(`${kind}-`))
      .concat(mark)
      .join(" ")
  const drawLegend = () => {
    if (!data.legend.length) return
    const legend = make("div", "legend")
    legend.setAttribute("role", "group")
    legend.setAttribute("aria-label", "Marks shown in the answer: press to hide or show a kind")
    const buttons = []
    const redraw = () => {
      for (const [button, entry] of buttons) {
        const off = root.hiddenMarks.has(entry.mark)
        button.setAttribute("aria-pressed", String(!off))
        answer.classList.toggle(`hide-${entry.mark}`, off)
      }
      all.hidden = !data.legend.some(entry => root.hiddenMarks.has(entry.mark))
    }
    for (const entry of data.legend) {
      const button = plainButton(`key tone-${entry.label.tone}`)
      button.title = `${entry.label.meaning}. Press to hide or show.`
      button.append(make("span", `sample mark ${classesOf(entry.mark)}`, sampleOf(entry.mark)))
      button.append(
        make("span", "key-word", entry.label.text),
        make("span", "key-count", entry.count),
      )
      button.onclick = () => {
        root.hiddenMarks.has(entry.mark)
          ? root.hiddenMarks.delete(entry.mark)
          : root.hiddenMarks.add(entry.mark)
        redraw()
      }
      buttons.push([button, entry])
      legend.append(button)
    }
    const all = plainButton("link", "Show all")
    all.onclick = () => {
      root.hiddenMarks.clear()
      redraw()
    }
    legend.append(all)
    redraw()
    answer.append(legend)
  }

  const drawPiece = piece => {
    const element = make("span", "mark", piece.text)
    if (piece.status) element.classList.add(`sentence-${piece.status}`)
    if (piece.verdict) element.classList.add(`claim-${piece.verdict}`)
    if (piece.closes) element.classList.add("closes")
    if (piece.reference && !piece.beside) element.classList.add("ref", `ref-${piece.reference}`)
    if (piece.fact) {
      element.classList.add("fact", `fact-${piece.fact}`)
      element.title = data.claims[piece.claims?.[0]]?.says[0] ?? ""
    }
    const clickable =
      piece.issues?.length || piece.claims?.length || piece.reference || piece.status
    applyStyles(element, piece)
    if (clickable && !piece.hidden && piece.text.trim()) {
      element.classList.add("active")
      onActivate(element, () => (piece.beside ? selectPiece(piece) : selectMarker(piece, element)))
    }
    if (piece.reference && !piece.beside) {
      element.tabIndex = 0
      element.setAttribute("role", "button")
      element.setAttribute(
        "aria-label",
        `${piece.text} ${referenceWords[piece.reference] ?? piece.reference}`,
      )
      element.title = referenceWords[piece.reference] ?? piece.reference
    }
    if (!piece.hidden) {
      pieceElements.push([element, piece])
      textPieces.push({ element, at: offsets.get(piece) })
    }
    if (!piece.beside?.length) return element
    const drawn = document.createDocumentFragment()
    drawn.append(element, drawBeside(piece))
    return drawn
  }
  // A citation that was attached to the answer, rather than written in it, covers words of it. The
  // words stay text, and a chip after them names the evidence. The style sheet draws the name, so
  // that it isn't copied or searched with the answer.
  const drawBeside = piece => {
    const chip = make("span", `mark active ref beside ref-${piece.reference}`)
    const names = piece.beside.map(id => (id.length > 24 ? `${id.slice(0, 23)}…` : id)).join(", ")
    chip.dataset.names = `[${names}]`
    chip.tabIndex = 0
    chip.setAttribute("role", "button")
    chip.setAttribute(
      "aria-label",
      `Citation beside the answer, ${names}: ${referenceWords[piece.reference] ?? piece.reference}`,
    )
    chip.title = referenceWords[piece.reference] ?? piece.reference
    onActivate(chip, () => selectMarker(piece, chip))
    pieceElements.push([chip, piece])
    return chip
  }
  const drawTag = number => {
    const issue = issuesByNumber.get(number)
    if (!issue) return ""
    const tag = plainButton(`tag tone-${issue.label.tone}`)
    tag.append(make("b", "", number), make("span", "", ` ${issue.label.text}`))
    tag.setAttribute(
      "aria-label",
      `${number} ${issue.label.text}: issue ${number}. ${issue.reason || issue.description}`,
    )
    onActivate(tag, () => selectIssue(number, "answer"))
    tags.set(number, tag)
    return tag
  }
  // Draws the first items, and the rest when the reader asks for it or something in it is selected.
  const drawLong = (box, items, lengthOf, draw) => {
    let place = 0
    let drawn = 0
    for (; place < items.length && drawn < FIRST_CHARACTERS; place += 1) {
      drawn += lengthOf(items[place])
      draw(items[place])
    }
    if (place === items.length) return
    const left = items.slice(place).reduce((sum, item) => sum + lengthOf(item), 0)
    const more = plainButton("more", `Show the rest of the answer (${plural(left, "character")})`)
    drawRest = () => {
      more.remove()
      drawRest = () => {}
      for (; place < items.length; place += 1) draw(items[place])
    }
    more.onclick = () => drawRest()
    box.after(more)
  }
  // A recorded correction is shown first, with its changes. A button shows the answer that it
  // corrects, with its marks.
  const showVersion = name => {
    answer.dataset.version = name
    for (const button of answer.querySelectorAll(".versions button"))
      button.setAttribute("aria-pressed", String(button.dataset.version === name))
  }
  const drawCorrected = () => {
    if (!data.corrected) return
    const versions = make("div", "versions")
    for (const [name, text] of [
      ["corrected", "Corrected answer"],
      ["audited", data.iteration > 1 ? `Revision ${data.iteration}` : "Original answer"],
    ]) {
      const button = plainButton("key", text)
      button.dataset.version = name
      button.onclick = () => showVersion(name)
      versions.append(button)
    }
    const text = outsideText("div", "text corrected")
    text.append(...renderDiff(data.corrected))
    versions.lastChild.append(make("kbd", "", "V"))
    answer.append(versions, text)
    showVersion("corrected")
  }
  const drawAnswer = () => {
    const { difference } = data
    answer.append(
      make(
        "h2",
        "",
        difference
          ? `Answer: from iteration ${difference.left} to iteration ${difference.right}`
          : "Answer",
      ),
    )
    const text = outsideText("div", "text")
    if (difference) {
      answer.append(drawDifferenceKey(difference))
      answer.append(text)
      const tags = { same: "span", out: "del", in: "ins" }
      drawLong(
        text,
        difference.changes,
        ([, words]) => words.length,
        ([kind, words]) => {
          // leading spaces stay outside the element, so that they aren't underlined or struck
          // through
          const blanks =
            kind === "same" ? "" : words.slice(0, words.length - words.trimStart().length)
          if (words.length > blanks.length)
            text.append(blanks, make(tags[kind], "", words.slice(blanks.length)))
          else text.append(make(tags[kind], "", words))
        },
      )
      return
    }
    drawCorrected()
    drawLegend()
    if (!data.pieces.length) {
      answer.append(make("p", "dim", data.no_answer))
      return
    }
    answer.append(text)
    const blocks = blockDrawer(text, data.blocks)
    drawLong(
      text,
      data.pieces,
      piece => piece.text.length,
      piece => {
        const block = blocks.of(piece)
        block.append(drawPiece(piece))
        for (const number of piece.ends ?? []) block.append(drawTag(number))
      },
    )
  }

  // --- words that a reviewer labels (passages.js says how places are counted)
  // ---------------------------------------------------------------------------------
  const letters = Array.from(data.pieces.map(piece => piece.text).join(""))
  const offsets = new Map()
  data.pieces.reduce((at, piece) => {
    offsets.set(piece, at)
    return at + lettersIn(piece.text)
  }, 0)
  const selectedRange = () => selectedRangeIn(root)
  // Returns the selected words of the answer and their place, or null.
  const selectedWords = () => {
    const range = selectedRange()
    return range?.intersectsNode(answer) ? wordsInRange(range, textPieces, letters) : null
  }
  const offer = plainButton("label-words", "Report an issue here")
  offer.append(make("kbd", "", "M"))
  offer.setAttribute("aria-keyshortcuts", "M")
  offer.hidden = true
  // A press would clear the selection before the click
  offer.onpointerdown = event => event.preventDefault()
  offer.onclick = event => {
    event.stopPropagation()
    const words = selectedWords()
    offer.hidden = true
    if (words) desk.labelWords(words)
  }
  let pointing = false
  const offerLabel = () => {
    const isOff = pointing || data.difference || desk.isFinal || desk.issue?.opened
    const words = isOff ? null : selectedWords()
    offer.hidden = !words
    if (!words) return
    const last =
      [...selectedRange().getClientRects()].findLast(rect => rect.width) ??
      selectedRange().getBoundingClientRect()
    const home = answer.getBoundingClientRect()
    offer.style.top = `${last.bottom - home.top + 6}px`
    const left = Math.min(last.left - home.left, home.width - offer.offsetWidth)
    offer.style.left = `${Math.max(0, left)}px`
  }
  const unmark = () => {
    for (const chip of answer.querySelectorAll(".reported-chip:not(.labelled-chip)")) chip.remove()
    for (const mark of answer.querySelectorAll(".reported")) {
      const parent = mark.parentNode
      mark.replaceWith(...mark.childNodes)
      parent.normalize() // joins the text nodes that markWords split
    }
  }
  const markWords = (issue, place, edited) => {
    let last = null
    for (const { element, at } of textPieces) {
      let passed = at
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
      const nodes = []
      while (texts.nextNode()) nodes.push(texts.currentNode)
      for (const node of nodes) {
        const own = Array.from(node.data)
        const from = Math.max(0, issue.start - passed)
        const to = Math.min(own.length, issue.end - passed)
        passed += own.length
        if (from >= to) continue
        const words = node.splitText(own.slice(0, from).join("").length)
        words.splitText(own.slice(from, to).join("").length)
        const mark = make("span", "reported")
        words.replaceWith(mark)
        mark.append(words)
        last = { mark, element }
      }
    }
    if (!last) return
    const chip = make(
      "span",
      `reported-chip tone-${{ medium: "warn", low: "calm" }[issue.severity] ?? "bad"}`,
    )
    // Drawn by the style sheet, so that it isn't copied or searched with the answer
    chip.dataset.names = issue.type
    const name = `Reported issue: ${issue.type}, ${issue.severity}`
    if (edited) {
      chip.tabIndex = 0
      chip.setAttribute("role", "button")
      chip.setAttribute("aria-label", `${name}. Edit`)
      onActivate(chip, () => desk.editReport(place))
    } else {
      chip.setAttribute("role", "img")
      chip.setAttribute("aria-label", name)
    }
    chip.title = name
    // a button within the button of a reference can't be reached by keyboard or screen reader
    const outerButton = last.element.closest("[role=button]")
    if (outerButton) outerButton.after(chip)
    else {
      // if nested marks end at the same place, the chip follows the outermost
      let after = last.mark
      while (after.parentNode.classList.contains("reported") && !after.nextSibling?.textContent)
        after = after.parentNode
      after.after(chip)
    }
  }
  const markReported = (reported, edited) => {
    unmark()
    if (data.difference) return
    const placed = reported
      .map((issue, place) => [issue, place])
      .filter(([issue]) => issue.start !== null)
    if (placed.some(([issue]) => issue.end > (textPieces.at(-1)?.at ?? 0))) drawRest()
    for (const [issue, place] of placed) markWords(issue, place, edited)
  }

  // Marks the parts that the reviewer has labelled, each with a chip after it that names the label.
  const markLabelled = marks => {
    for (const chip of answer.querySelectorAll(".labelled-chip")) chip.remove()
    if (data.difference) return
    for (const { key, text, tone, lines } of marks) {
      if (!pieceElements.some(([, piece]) => isOfTarget(piece, key))) drawRest()
      const [element] = pieceElements.findLast(([, piece]) => isOfTarget(piece, key)) ?? []
      if (!element) continue
      const chip = make("span", `reported-chip labelled-chip tone-${tone}`)
      chip.dataset.names = `you: ${text}` // drawn by the style sheet, so that it isn't copied
      chip.tabIndex = 0
      chip.setAttribute("role", "button")
      chip.setAttribute("aria-label", `Your label: ${[text, ...lines].join(". ")}. Edit`)
      chip.title = [`Your label: ${text}`, ...lines].join("\n")
      onActivate(chip, () => desk.labelTarget(key))
      element.after(chip)
    }
  }

  // --- issues and changes
  // -----------------------------------------------------------------------------------------
  const drawIssue = issue => {
    const card = make("article", `issue tone-${issue.label.tone}`)
    const head = plainButton("issue-head")
    head.append(make("b", "number", issue.number), make("span", "issue-word", issue.label.text))
    if (issue.course) head.append(pill(issue.course, "course"))
    head.append(make("span", `severity severity-${issue.severity}`, issue.severity))
    card.append(head)
    const line = (className, text) => {
      const words = outsideText("p", className, text)
      card.append(words)
    }
    line("what", issue.description)
    if (issue.quote) line("quote", `“${issue.quote}”`)
    if (issue.reason) line("why", issue.reason)
    if (issue.suggestion) line("hint", issue.suggestion)
    for (const { label, description, reason } of issue.also) {
      const row = outsideText("p", "also")
      row.append(make("b", "", label.text), ` ${[description, reason].filter(Boolean).join(" ")}`)
      card.append(row)
    }
    for (const id of issue.evidence) card.append(make("span", "chip", id))
    if (!issue.placed) head.append(make("span", "dim", "about the answer as a whole"))
    const activate = () => selectIssue(issue.number, "issues")
    onActivate(head, activate)
    card.onclick = () => {
      if (!window.getSelection()?.toString()) activate()
    }
    issueCards.set(issue.number, card)
    return card
  }
  const drawIssues = () => {
    if (!data.audited) return
    issues.append(
      make(
        "h2",
        "",
        `Issues${data.corrected ? " before the correction" : ""} ` +
          `(${data.issues_total.toLocaleString("en")})`,
      ),
    )
    if (!data.issues.length) {
      issues.append(make("p", "dim", data.nothing_found))
    }
    const list = make("div", "issue-list")
    issues.append(list)
    // a button that shows fewer than ten more issues isn't worth its place
    const first = data.issues.length > FIRST_ISSUES + 10 ? FIRST_ISSUES : data.issues.length
    list.append(...data.issues.slice(0, first).map(drawIssue))
    if (first < data.issues.length) {
      const more = plainButton("more", `Show ${data.issues.length - first} more issues`)
      more.onclick = () => {
        more.remove()
        list.append(...data.issues.slice(first).map(drawIssue))
      }
      issues.append(more)
    }
    const unsent = data.issues_total - data.issues.length
    if (unsent > 0)
      issues.append(
        make(
          "p",
          "dim",
          `${plural(unsent, "less severe issue")} not listed here. The report has all of them.`,
        ),
      )
    if (data.fixed.length) issues.append(...drawFixed(data))
  }
  // --- the evidence
  // ------------------------------------------------------------------------------------------
  const drawCard = card => {
    const element = make("article", "card")
    element.dataset.id = card.id
    const head = plainButton("card-head")
    const name = outsideText("b", "card-id", card.id)
    // the name by which the answer cites the chunk comes first, because readers look for it
    if (card.cited_as) head.append(make("span", "cited-as", card.cited_as))
    head.append(name)
    if (data.audited)
      head.append(
        make(
          "span",
          "dim",
          card.cited ? `cited by ${plural(card.cited, "sentence")}` : "not cited",
        ),
      )
    element.append(head)
    const pieces = []
    if (card.source) {
      const source = outsideText("div", "source dim")
      source.append(make("span", card.source_against?.length ? "refuting" : "", card.source))
      if (card.source_against?.length)
        pieces.push([source.firstChild, { against: card.source_against }])
      element.append(source)
    }
    const text = outsideText("div", "card-text")
    const blocks = blockDrawer(text, card.blocks)
    let length = 0
    for (const piece of card.pieces) {
      const kind = piece.instructs
        ? "instructing"
        : piece.against
          ? "refuting"
          : piece.claims?.some(isSupported)
            ? "bearing"
            : piece.claims?.some(claim => claim >= 0)
              ? "near"
              : ""
      const span = applyStyles(make("span", kind, piece.text), piece)
      if (piece.instructs) span.title = "Instructs a reader, a model or a tool"
      length += piece.text.length
      pieces.push([span, piece])
      blocks.of(piece).append(span)
    }
    blocks.end()
    if (!card.pieces.length)
      text.append(
        make(
          "em",
          "dim",
          "Only an address is stored for this chunk, so nothing can be checked against it.",
        ),
      )
    element.append(text)
    let unfold = () => {}
    if (length > LONG_CHUNK) {
      text.classList.add("folded")
      const more = plainButton("more", `Show all ${plural(length, "character")}`)
      unfold = () => {
        text.classList.remove("folded")
        more.remove()
      }
      more.onclick = event => {
        event.stopPropagation()
        unfold()
      }
      element.append(more)
    }
    element.unfold = unfold
    const activate = () => selectEvidence(card)
    onActivate(head, activate)
    element.onclick = () => {
      if (!window.getSelection()?.toString()) activate()
    }
    evidenceCards.set(card.id, { element, pieces, unfold, body: card.body ?? 0 })
    return element
  }
  const drawEvidence = () => {
    evidence.setAttribute("aria-label", "Evidence")
    evidence.tabIndex = 0
    evidence.append(make("h2", "", `Evidence (${data.evidence_total.toLocaleString("en")})`))
    const list = make("div", "cards")
    for (const card of data.evidence) list.append(drawCard(card))
    evidence.append(list)
    const rest = data.evidence_total - data.evidence.length
    if (rest > 0) {
      const what = data.audited ? "Chunks that are cited or used for a claim are listed first." : ""
      const more = plainButton("more", `Show more (${plural(rest, "chunk")} left)`)
      more.onclick = () => desk.showMoreEvidence(data.evidence.length)
      evidence.append(make("p", "dim", what), more)
    }
  }

  // If the decision form is below the answer, a button scrolls to it.
  const drawWayToDecision = () => {
    root.decision?.disconnect()
    const panel = desk.column
    if (!panel || desk.isFinal) return
    const go = plainButton("to-decision", "Decision ↓")
    go.onclick = () =>
      panel.scrollIntoView({ block: "start", behavior: reducesMotion() ? "auto" : "smooth" })
    root.append(go)
    root.decision = new IntersectionObserver(([seen]) => {
      go.hidden = seen.isIntersecting || seen.boundingClientRect.top < 0
    })
    root.decision.observe(panel)
  }

  // Returns the claims that aren't confirmed and have no issue of their own, in order.
  const openClaims = () =>
    data.difference
      ? []
      : [...data.claims.keys()].filter(
          claim =>
            !isSupported(claim) &&
            !data.issues.some(issue => issue.claim === claim) &&
            data.pieces.some(piece => piece.claims?.includes(claim)),
        )
  // Goes to the next or previous issue by number, for F and Shift+F, and after the last issue to the
  // claims that aren't confirmed. Issue 1 is the most severe. Returns what to say about it, or "".
  const stepIssue = step => {
    const numbers = data.issues.map(issue => issue.number)
    const claims = openClaims()
    const stops = [...numbers, ...claims.map(claim => data.claims[claim].target)]
    if (!stops.length) return "There is no issue and no unconfirmed claim to go to in this answer."
    const present = stops.indexOf(root.claimAt ?? root.issueAt)
    const at =
      present < 0
        ? step > 0
          ? 0
          : stops.length - 1
        : (present + step + stops.length) % stops.length
    if (at >= numbers.length) {
      showTab("answer")
      showTarget(stops[at])
      root.claimAt = stops[at]
      root.issueAt = null
      answer.focus({ preventScroll: true })
      return `Not confirmed: claim ${at - numbers.length + 1} of ${claims.length}.`
    }
    selectIssue(stops[at], "answer")
    const isOnly = present === at
    const card = issueCards.get(root.issueAt)
    const tag = tags.get(root.issueAt)
    ;(tag ?? card?.querySelector(".issue-head"))?.focus({ preventScroll: true })
    // The tag is at the end of its sentence, which may start lines above
    const start = tag && firstPieceOf(root.issueAt)
    const isHidden =
      start &&
      start.getBoundingClientRect().top <
        Math.max(left.getBoundingClientRect().top, 0) +
          parseFloat(getComputedStyle(start).scrollMarginTop)
    reveal(isHidden ? start : (tag ?? card))
    return isOnly ? "This is the only issue of the answer." : ""
  }
  const firstPieceOf = number => {
    const sentence = data.pieces.find(piece => piece.issues?.includes(number))?.sentence
    return pieceElements.find(([, piece]) => piece.sentence === sentence)?.[0]
  }
  // Scrolls answer and evidence of an adjudication to the issue in its headline. The page itself
  // isn't scrolled.
  const scrollToWorst = () => {
    const [worst] = data.issues
    if (!desk.isFinal || !worst) return
    const [piece] = choosePieces(item => item.issues?.includes(worst.number))
    showEvidence(
      worst.claim === undefined ? (piece?.[1].claims ?? []) : [worst.claim],
      worst.evidence,
      null,
      true,
    )
    if (!piece) return
    const offsetOf = element =>
      left.scrollTop + element.getBoundingClientRect().top - left.getBoundingClientRect().top
    const text = answer.querySelector(".text")
    const end = offsetOf(piece[0]) + piece[0].offsetHeight
    // Shows the legend above the answer in full or not at all, and the answer from its first line if
    // the words are in view then
    const top = [0, offsetOf(text)].find(start => end <= start + left.clientHeight)
    left.scrollTop = top ?? offsetOf(piece[0]) - left.clientHeight / 3
    if (top !== undefined) return
    // no line is cut in half at the top
    const edge = left.getBoundingClientRect().top
    const range = document.createRange()
    range.selectNodeContents(text)
    const isCut = line => line.top < edge && line.bottom > edge
    const cut = [...range.getClientRects()].filter(line => isCut(line) && line.height < 60)
    left.scrollTop -= Math.max(0, ...cut.map(line => edge - line.top))
  }
  // Returns the pieces that an issue is about. For a misplaced citation, these are its marker; for
  // a claim, the pieces of the claim, even if the critic raised the issue for the whole sentence.
  const piecesOf = number => {
    const { claim = -1, reference } = issuesByNumber.get(number)
    const own = data.pieces.filter(piece => piece.issues?.includes(number))
    const isInSentence = piece => own.some(({ sentence }) => sentence === piece.sentence)
    const cited = data.pieces.filter(
      piece => reference && piece.reference === reference && isInSentence(piece),
    )
    if (cited.length) return cited
    return claim < 0
      ? own
      : own.filter(piece => piece.claims?.includes(claim) || piece.ends?.includes(number))
  }
  // Shows the issue with this number, or the one gone to last, or the most severe. Returns the
  // offsets of the words to replace, in characters: the facts marked as wrong, or else all words of
  // the issue, without valid citations and the full stop after them. For a missing point, returns
  // the sentence that it belongs after.
  const showFaulty = requested => {
    const number = requested ?? root.issueAt ?? data.issues[0]?.number
    if (number === undefined) return {}
    selectIssue(number, "correction")
    const issue = issuesByNumber.get(number)
    if (isMissing(issue)) return { after: issue.insert?.after }
    const own = data.difference ? [] : piecesOf(number)
    const inFirst = own.filter(piece => piece.sentence === own[0].sentence)
    const wrongFacts = inFirst.filter(
      piece => piece.fact && piece.fact !== "figure" && piece.fact !== "marked",
    )
    // a citation is replaced if it's fabricated or misplaced; other pieces if they hold a letter or
    // a digit
    const isReplaced = piece =>
      piece.reference && !piece.beside
        ? !["valid", "contradicts", "unsupported"].includes(piece.reference)
        : /[\p{L}\p{N}]/u.test(piece.text)
    const last = (wrongFacts.length ? wrongFacts : inFirst).findLast(isReplaced) ?? inFirst.at(-1)
    const [first] = wrongFacts.length ? wrongFacts : own
    if (!first) return {}
    const start = offsets.get(first) + lettersIn(first.text) - lettersIn(first.text.trimStart())
    return { start, end: offsets.get(last) + lettersIn(last.text.trimEnd()), answer: whole }
  }
  // Returns whether a correction leaves an issue unchanged: it still has the words, or still lacks
  // the missing point. Words that the answer repeats are recognized by the 20 characters before or
  // after them. If these are repeated as well, as with the full stop after a last citation, the
  // issue is unchanged if the correction has the words as often as the answer.
  const whole = data.pieces.map(piece => piece.text).join("")
  const isUntouched = (corrected, issue) => {
    const { number } = issue
    if (isMissing(issue)) {
      const point = issue.insert?.says ?? issue.description
      return !addsPoint(whole, corrected, point, "words")
    }
    const own = piecesOf(number)
    const first = data.pieces.indexOf(own[0])
    const last = data.pieces.indexOf(own.at(-1))
    const textOf = (from, to) =>
      data.pieces
        .slice(from, to)
        .map(piece => piece.text)
        .join("")
    const words = textOf(first, last + 1)
    const count = (text, part) => text.split(part).length - 1
    if (count(whole, words) === 1) return corrected.includes(words.trim())
    const contexts = [textOf(0, first).slice(-20) + words, words + textOf(last + 1).slice(0, 20)]
    const unique = contexts.filter(context => count(whole, context) === 1)
    if (unique.length) return unique.some(context => corrected.includes(context))
    return count(corrected, words) >= count(whole, words)
  }
  root.issueAt = root.claimAt = null
  root.listeners?.abort()
  root.listeners = new AbortController()
  const listen = (target, name, handler) =>
    target.addEventListener(
      name,
      event => {
        if (root.isConnected) handler(event)
      },
      { signal: root.listeners.signal },
    )
  listen(document, "keydown", event => {
    if (
      event.key === "Escape" &&
      close.isConnected &&
      !event.defaultPrevented &&
      !event.composedPath()[0].closest?.("input, textarea, select, dialog")
    )
      dismiss()
  })
  listen(document, "selectionchange", offerLabel)
  listen(document, "pointerdown", () => {
    pointing = true
  })
  for (const end of ["pointerup", "pointercancel"])
    listen(document, end, () => {
      pointing = false
      setTimeout(offerLabel)
    })

  const left = make("div", "left")
  drawAnswer()
  answer.append(offer)
  drawIssues()
  drawEvidence()
  left.append(answer, issues)
  const changes = drawChanges(data)
  if (changes) left.append(changes)
  grid.append(left, evidence)
  root.append(tabs, grid)
  drawWayToDecision()
  // In a narrow window the reasons are at the bottom of the window, so that the answer stays in
  // view above them.
  const placeReasons = () => {
    isNarrow() ? root.append(why) : evidence.prepend(why)
  }
  placeReasons()
  root.stopFitting?.()
  // the editor of the correction and, in a narrow window, the reasons cover the bottom of the
  // evidence
  root.stopFitting = fitToWindow(evidence, () => desk.dock + (isNarrow() ? why.offsetHeight : 0))
  root.resizes?.disconnect()
  root.resizes = new ResizeObserver(() => {
    if ((why.parentElement === root) !== isNarrow()) placeReasons()
  })
  root.resizes.observe(root)
  scrollToWorst()
  return {
    version: data.version,
    stepIssue,
    turn,
    showFaulty,
    markReported,
    markLabelled,
    selectedWords: () => (data.difference ? null : selectedWords()),
    elementOf,
    citedBy,
    // The part or chunk that has the focus, or else the one whose reasons are shown
    target: () => targetInFocus() ?? root.targetAt,
    placeOfReader,
    offerLabel,
    // What the label bar needs of the evidence (label_bar.js)
    evidence,
    reasons: why,
    chunks: evidenceCards,
    chosenCard: () => evidence.querySelector(".card.chosen")?.dataset.id,
    showTarget,
    // Scrolls the evidence to an element. In a narrow window, `turns` changes the tab for it.
    reveal: (element, turns) => {
      if (turns) showTab("evidence")
      revealEvidence(element)
    },
    // Switches between a recorded correction and its answer; returns false if there is none
    switchVersion: () => {
      if (!data.corrected) return false
      showVersion(answer.dataset.version === "corrected" ? "audited" : "corrected")
      return true
    },
    // What can be inserted into a correction, to recognize it there
    insertions: data.issues.flatMap(({ insert }) => (insert && !insert.cites ? [insert.text] : [])),
    // Inserts what the evidence says about the chosen issue. Returns why it can't, or "".
    insertChosen: () => {
      const add = why.querySelector(".insert")
      add?.click()
      if (add) return ""
      return issueCards.has(root.issueAt) && why.querySelector(".reason")
        ? `There is nothing to insert for issue ${root.issueAt}. Press O to correct its words.`
        : "Nothing to insert. Press F to go to an issue."
    },
    onCorrection: () => {
      for (const add of why.querySelectorAll(".insert")) add.hideIfInserted()
    },
    selections: () => root.selections,
    // Ends the choice of words. L labels the report about them, and no longer what the reasons are
    // about.
    onLabelled: () => {
      window.getSelection()?.removeAllRanges()
      offer.hidden = true
      why.querySelector(".label-this kbd")?.remove()
    },
    // The issues that a correction leaves unchanged, and the number of all issues and of those that
    // are missing points
    untouched: corrected => {
      const checkable = data.issues.filter(issue => issue.placed || isMissing(issue))
      const left = checkable
        .filter(issue => isUntouched(corrected, issue))
        .map(issue => ({
          number: issue.number,
          text: issue.label.text,
          isMissing: isMissing(issue),
        }))
      return {
        count: checkable.length,
        left,
        others: data.issues_total - checkable.length,
        missing: checkable.filter(isMissing).length,
      }
    },
    leave: () => {
      root.listeners.abort()
      root.stopFitting()
      root.resizes.disconnect()
      root.decision?.disconnect()
    },
  }
}
