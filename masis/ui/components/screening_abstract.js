// One abstract: its text with the words the grade rests on, and every field with its reason beside it.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (root) whenReleased(root, () => drawAbstract(root, data))
}

function drawAbstract(root, data) {
  const { reveal, ...shown } = data
  const version = JSON.stringify(shown)
  // Opened by a click in the table above it: it comes into view.
  if (reveal) queueMicrotask(() => root.scrollIntoView({ block: "start", behavior: "auto" }))
  if (root.dataset.version === version) return
  const chosen = root.dataset.abstract === data.id ? root.dataset.chosen : ""
  root.dataset.version = version
  root.dataset.abstract = data.id
  root.replaceChildren()
  const marks = []
  const reasons = new Map()
  const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches

  const choose = (field, reveal) => {
    const again = root.dataset.chosen === field && reveal
    root.dataset.chosen = again ? "" : field
    const lit = marks.filter(([element, piece]) => {
      const on = !again && piece.fields.includes(field)
      element.classList.toggle("lit", on)
      return on
    })
    for (const [name, row] of reasons) {
      row.setAttribute("aria-pressed", String(!again && name === field))
      row.classList.toggle("chosen", !again && name === field)
    }
    if (reveal && lit.length) lit[0][0].scrollIntoView({ block: "nearest", behavior: still() ? "auto" : "smooth" })
    if (!reveal) reasons.get(field)?.scrollIntoView({ block: "nearest", behavior: still() ? "auto" : "smooth" })
  }

  const draw = (box, pieces) => {
    box.dir = "auto"
    for (const piece of pieces) {
      if (!piece.fields.length) { box.append(make("span", "", piece.text)); continue }
      const element = make("span", `mark f-${piece.fields[0]}`, piece.text)
      element.title = piece.fields.map(field => data.reasons.find(reason => reason.field === field)?.label.text).filter(Boolean).join(", ")
      element.onclick = () => {
        if (window.getSelection()?.toString()) return
        const place = piece.fields.indexOf(root.dataset.chosen)
        choose(piece.fields[(place + 1) % piece.fields.length], false)
      }
      marks.push([element, piece])
      box.append(element)
    }
  }

  const paper = make("article", "paper")
  const title = make("h3", "title")
  draw(title, data.title)
  const line = make("p", "facts dim", data.facts.join("  ·  "))
  line.dir = "auto"
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
    scores.append(make("dt", "", score.name), make("dd", "figure", score.value === null ? "unscored" : score.value.toFixed(2)), make("dd", "note dim", score.note))
  }
  side.append(scores)
  const list = make("div", "reasons")
  list.setAttribute("role", "group")
  list.setAttribute("aria-label", "Fields of the grade: press one to see the words it rests on")
  for (const reason of data.reasons) {
    const row = make("button", `reason f-${reason.field}`)
    row.type = "button"
    row.title = reason.label.meaning
    const top = make("span", "reason-head")
    top.append(make("span", "sample", reason.label.text), make("b", "", reason.value))
    if (reason.words) top.append(make("span", "dim count", reason.words === 1 ? "1 place" : `${reason.words} places`))
    row.append(top)
    if (reason.why) { const why = make("span", "why", reason.why); why.dir = "auto"; row.append(why) }
    if (reason.machine) row.append(make("span", "machine", `${reason.machine[0].toUpperCase()}${reason.machine.slice(1)}`))
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
  const table = make("table")
  const head = make("tr")
  for (const name of ["Grader", "Relevance", "Methodology", "Recommendation"]) { const cell = make("th", "", name); cell.scope = "col"; head.append(cell) }
  table.append(make("thead"), make("tbody"))
  table.tHead.append(head)
  const figure = value => make("td", "figure", value === null ? "–" : value.toFixed(2))
  for (const each of data.opinions) {
    const row = make("tr")
    const says = make("td")
    says.append(pill(each.recommendation))
    if (each.unscored) says.append(make("div", "dim", each.unscored))
    row.append(make("td", "who", each.by), figure(each.relevance), figure(each.methodology), says)
    table.tBodies[0].append(row)
  }
  box.append(table)
  return box
}
