// The rounds of a screening: what was searched and why, how the abstracts voted, whether both rules held.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const list = make("ol", "rounds")
  for (const round of data.rounds) {
    const item = make("li", "round")
    const head = make("div", "head")
    head.append(make("b", "number", `Round ${round.number}`), pill(round.decision))
    head.append(make("span", "dim", `${round.found} found, ${round.new} graded for the first time`))
    item.append(head)
    for (const query of round.queries) {
      const line = make("div", "query")
      const words = make("span", "words", query.text)
      words.dir = "auto"
      line.append(words, make("span", "dim why", query.why))
      item.append(line)
    }
    item.append(votes(round, data.keep_share))
    const rules = make("div", "rules")
    rules.append(rule(round.consensus.text === "sufficient", `Consensus: ${round.consensus.text}`))
    const average = round.average === null ? "nothing kept" : `average of the kept ${round.average.toFixed(2)}`
    rules.append(rule(round.reached, `Quality: ${average}, required ${round.required.toFixed(2)}`))
    item.append(rules)
    if (round.missing.length) item.append(make("div", "missing", `Missing: ${round.missing.join(" ")}`))
    for (const warning of round.warnings) item.append(make("div", "warning", warning))
    list.append(item)
  }
  if (data.waiting) { const item = make("li", "round dim", data.waiting); list.append(item) }
  root.append(list)
}

const NAMES = ["keep", "need more", "discard"]
const TONES = ["good", "warn", "bad"]

function votes(round, needed) {
  const box = make("div", "votes")
  const total = round.votes.reduce((sum, count) => sum + count, 0)
  const bar = make("div", "bar")
  bar.setAttribute("role", "img")
  bar.setAttribute("aria-label", total ? round.votes.map((count, place) => `${count} ${NAMES[place]}`).join(", ") : "no votes")
  round.shares.forEach((share, place) => {
    if (!share) return
    const part = make("span", `part tone-${TONES[place]}`)
    part.style.width = `${share * 100}%`
    bar.append(part)
  })
  const line = make("span", "line")
  line.style.left = `${needed * 100}%`
  line.title = `${Math.round(needed * 100)}% keep are a consensus`
  bar.append(line)
  const words = make("div", "vote-words")
  round.votes.forEach((count, place) => {
    const word = make("span", `vote tone-${TONES[place]}`)
    word.append(make("span", `dot tone-${TONES[place]}`), `${count} ${NAMES[place]}`, make("span", "dim", total ? ` ${Math.round(round.shares[place] * 100)}%` : ""))
    words.append(word)
  })
  box.append(bar, words)
  return box
}

function rule(held, text) {
  const element = make("span", held ? "held" : "not-held")
  element.append(make("b", "", held ? "✓ " : "✗ "), text)
  return element
}
