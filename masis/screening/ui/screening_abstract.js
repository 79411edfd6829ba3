// An abstract: its text with the words that the grade is based on, and next to it every field with
// its reason.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (root) whenReleased(root, () => drawAbstract(root, data))
}

function drawAbstract(root, data) {
  // `reveal` is true in a single run, so it's left out of the version that decides about redrawing.
  const { reveal, ...shown } = data
  const version = JSON.stringify(shown)
  // scroll to an abstract that was opened in the table above
  // in a microtask, because the abstract is drawn below
  if (reveal) queueMicrotask(() => root.scrollIntoView({ block: "start", behavior: "auto" }))
  if (root.dataset.version === version) return
  const chosen = root.dataset.abstract === data.id ? root.dataset.chosen : ""
  root.dataset.version = version
  root.dataset.abstract = data.id
  root.replaceChildren()
  const marks = []
  const reasons = new Map()
  const reducesMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches

  const choose = (field, reveal) => {
    const deselects = root.dataset.chosen === field && reveal // a second press on the field
    root.dataset.chosen = deselects ? "" : field
    const lit = marks.filter(([element, piece]) => {
      const on = !deselects && piece.fields.includes(field)
      element.classList.toggle("lit", on)
      return on
    })
    for (const [name, row] of reasons) {
      row.setAttribute("aria-pressed", String(!deselects && name === field))
      row.classList.toggle("chosen", !deselects && name === field)
    }
    if (reveal && lit.length)
      lit[0][0].scrollIntoView({ block: "nearest", behavior: reducesMotion() ? "auto" : "smooth" })
    if (!reveal)
      reasons
        .get(field)
        ?.scrollIntoView({ block: "nearest", behavior: reducesMotion() ? "auto" : "smooth" })
  }

  const draw = (box, pieces) => {
    box.dir = "auto"
    for (const piece of pieces) {
      if (!piece.fields.length) {
        box.append(make("span", "", piece.text))
        continue
      }
      const element = make("span", `mark f-${piece.fields[0]}`, piece.text)
      element.title = piece.fields
        .map(field => data.reasons.find(reason => reason.field === field)?.label.text)
        .filter(Boolean)
        .join(", ")
      element.onclick = () => {
        // a click that ends a selection of text chooses nothing
        if (window.getSelection()?.toString()) return
        // words that several fields are based on go through these with each click
        const index = piece.fields.indexOf(root.dataset.chosen)
        choose(piece.fields[(index + 1) % piece.fields.length], false)
      }
      marks.push([element, piece])
      box.append(element)
    }
  }

  const paper = make("article", "paper")
  const title = make("h3", "title")
  draw(title, data.title)
  const line = outsideText("p", "facts dim", data.facts.join("  ·  "))
  const text = make("div", "text")
  draw(text, data.text)
  if (!data.text.length) text.append(make("span", "dim", "This record has no abstract."))
  paper.append(title, line, text)

  const side = make("section", "side")
  const head = make("div", "verdict")
  head.append(pill(data.recommendation), make("span", "rule", data.rule))
  side.append(head)
  if (data.unscored) side.append(make("p", "unscored", data.unscored))
  const scores = make("dl", "scores")
  for (const score of data.scores) {
    scores.append(
      make("dt", "", score.name),
      make("dd", "figure", score.value === null ? "unscored" : score.value.toFixed(2)),
      make("dd", "note dim", score.note),
    )
  }
  side.append(scores)
  const list = make("div", "reasons")
  list.setAttribute("role", "group")
  list.setAttribute("aria-label", "Fields of the grade: press one to see the words it's based on")
  for (const reason of data.reasons) {
    const row = make("button", `reason f-${reason.field}`)
    row.type = "button"
    row.title = reason.label.meaning
    const top = make("span", "reason-head")
    top.append(make("span", "sample", reason.label.text), make("b", "", reason.value))
    if (reason.words)
      top.append(
        make("span", "dim count", reason.words === 1 ? "1 place" : `${reason.words} places`),
      )
    row.append(top)
    if (reason.why) {
      const why = outsideText("span", "why", reason.why)
      row.append(why)
    }
    if (reason.machine)
      row.append(
        make("span", "machine", `${reason.machine[0].toUpperCase()}${reason.machine.slice(1)}`),
      )
    row.onclick = () => choose(reason.field, true)
    reasons.set(reason.field, row)
    list.append(row)
  }
  side.append(list)
  if (data.opinions.length) side.append(drawOpinions(data))
  side.append(make("p", "by dim", `Judged by ${data.by}`))
  const grid = make("div", "grid")
  grid.append(paper, side)
  root.append(grid)
  root.dataset.chosen = ""
  for (const row of reasons.values()) row.setAttribute("aria-pressed", "false")
  if (chosen && reasons.has(chosen)) choose(chosen, true)
}

function drawOpinions(data) {
  const box = make("div", "opinions")
  const agreed = data.agreement === null ? "" : `, agreement ${data.agreement.toFixed(2)}`
  box.append(make("h4", "", `${data.opinions.length} graders${agreed}`))
  const table = makeTable(["Grader", "Relevance", "Methodology", "Recommendation"])
  const figure = value => make("td", "figure", value === null ? "–" : value.toFixed(2))
  for (const opinion of data.opinions) {
    const row = make("tr")
    const recommendation = make("td")
    recommendation.append(pill(opinion.recommendation))
    if (opinion.unscored) recommendation.append(make("div", "dim", opinion.unscored))
    row.append(
      make("td", "who", opinion.by),
      figure(opinion.relevance),
      figure(opinion.methodology),
      recommendation,
    )
    table.tBodies[0].append(row)
  }
  box.append(table)
  return box
}
