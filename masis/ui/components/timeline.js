// The timeline of an audit: its iterations with their steps, scores and warnings.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return

  const duration = ms => {
    if (ms === null || ms === undefined) return ""
    if (ms < 1000) return `${Math.round(ms)} ms`
    if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`
    return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`
  }
  // The status element is kept between drawings: a screen reader announces a change of its text,
  // not a new element.
  if (!root.querySelector(".status")) {
    const status = make("div", "status")
    status.setAttribute("role", "status")
    root.append(status, make("div", "drawing"))
  }
  const status = root.querySelector(".status")
  const drawing = root.querySelector(".drawing")
  if (status.textContent !== data.live) status.textContent = data.live
  // Without the clock, which changes twice a second: replacing the list each time would drop a
  // selection of its text.
  const version = JSON.stringify([data.groups, data.spent, data.waiting, data.end])
  const clock = duration(data.elapsed_ms)
  if (root.dataset.version === version) {
    const shown = drawing.querySelector(".clock")
    if (shown) shown.textContent = clock
    return
  }
  root.dataset.version = version
  drawing.replaceChildren()

  if (data.end) {
    const end = make("div", `end tone-${data.end.tone}`)
    end.append(make("b", "", data.end.text), make("span", "dim", `  after ${clock}`))
    for (const detail of data.end.details) end.append(make("p", "", detail))
    if (data.spent) end.append(make("p", "dim", data.spent))
    drawing.append(end)
  } else {
    const line = make("div", "now-line")
    line.append(pill({ text: data.waiting ? "Waiting" : "Auditing", tone: "busy" }))
    line.append(make("span", "", data.waiting || data.current_step))
    if (!data.waiting) line.append(make("span", "clock", clock))
    if (data.spent) line.append(make("span", "dim", data.spent))
    drawing.append(line)
  }

  const SIGN = { done: "✓", unscored: "!", now: "", cut: "–", failed: "!" }
  const TONE = { done: "good", unscored: "warn", now: "busy", cut: "warn", failed: "bad" }
  const SPOKEN = {
    done: "done",
    unscored: "done, but unscored",
    now: "in progress",
    cut: "interrupted",
    failed: "failed",
  }
  const drawStep = step => {
    const row = make("div", `step is-${step.state}`)
    const sign = make("span", `sign tone-${TONE[step.state]}`, SIGN[step.state])
    sign.setAttribute("role", "img")
    sign.setAttribute("aria-label", SPOKEN[step.state])
    const name = make("span", "step-name", step.name)
    if (step.meaning) name.title = step.meaning
    const words =
      step.words || (step.state === "now" ? "…" : step.state === "done" ? "" : SPOKEN[step.state])
    row.append(sign, name, make("span", "step-words", words), make("span", "ms", duration(step.ms)))
    return row
  }
  const drawFigure = figure => {
    const box = make("div", "figure")
    box.title = figure.meaning
    box.append(make("div", "figure-name", figure.name))
    const value = make(
      "div",
      "figure-value",
      figure.value === null ? "unscored" : figure.value.toFixed(2),
    )
    if (figure.delta) {
      const up = figure.delta > 0
      value.append(
        make(
          "span",
          `delta ${up ? "up" : "down"}`,
          `${up ? "▲" : "▼"} ${Math.abs(figure.delta).toFixed(2)}`,
        ),
      )
    }
    box.append(value)
    if (figure.value !== null) {
      const track = make("span", "track")
      const fill = make("span", "fill")
      fill.style.width = `${Math.round(figure.value * 100)}%`
      track.append(fill)
      box.append(track)
    }
    return box
  }
  const drawGroup = group => {
    const item = make("li", "group")
    const states = group.steps.map(step => step.state)
    const state =
      ["now", "failed", "cut", "unscored"].find(candidate => states.includes(candidate)) ?? "done"
    const knot = make("span", `knot tone-${TONE[state]}`, SIGN[state])
    knot.setAttribute("aria-hidden", "true")
    const head = make("div", "group-head")
    head.append(make("h2", "", group.title), make("span", "dim", group.note))
    if (group.chosen)
      head.append(pill({ text: "chosen", tone: "good", meaning: "The best of the iterations" }))
    item.append(knot, head)
    const steps = make("div", "steps")
    for (const step of group.steps) steps.append(drawStep(step))
    if (group.scores.length) {
      const figures = make("div", "figures")
      for (const figure of group.scores) figures.append(drawFigure(figure))
      figures.append(make("span", "found", group.issues))
      steps.append(figures)
    }
    item.append(steps)
    for (const retry of group.retries) item.append(make("p", "retry", retry))
    for (const warning of group.warnings) item.append(make("p", "warning", warning))
    return item
  }
  const rail = make("ol", "rail")
  for (const group of data.groups) rail.append(drawGroup(group))
  drawing.append(rail)
}
