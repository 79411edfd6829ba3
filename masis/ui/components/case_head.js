// The head of a case: question, status and worst issue. Long and secondary parts unfold, on top of
// the page below.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const title = outsideText("h1", "", data.question)
  const line = make("div", "facts")
  line.append(pill(data.state))
  if (data.reasons?.length) line.append(reviewReasons(root, data))
  // Before the headline: after it, they would wrap alone
  for (const fact of data.facts) line.append(separable(make("span", "dim fact"), fact))
  if (data.headline) {
    const words = outsideText("b", `headline tone-${data.headline.tone}`, data.headline.text)
    line.append(words)
    if (data.headline.others) line.append(make("span", "dim others", data.headline.others))
  }
  root.append(title, line)
  const fold = make("button", "fold", "Show full question")
  fold.type = "button"
  fold.setAttribute("aria-expanded", "false")
  fold.onclick = () => {
    const open = title.classList.toggle("open")
    fold.setAttribute("aria-expanded", String(open))
    fold.textContent = open ? "Collapse question" : "Show full question"
  }
  fold.hidden = true
  line.prepend(fold)
  // The width decides whether the question is cut, so the button follows every change of it. The
  // extra pixel absorbs rounding: scrollHeight and clientHeight are integers.
  root.resizes?.disconnect()
  root.resizes = new ResizeObserver(() => {
    if (!title.classList.contains("open"))
      fold.hidden = title.scrollHeight <= title.clientHeight + 1
  })
  root.resizes.observe(title)
}

// Returns the reasons for a review, folded. Technical details are folded once more inside.
function reviewReasons(root, { reasons, reasons_title: title, technical }) {
  const list = make("ul")
  for (const reason of reasons) list.append(make("li", "", reason))
  const panel = make("div", "reasons")
  panel.append(list)
  if (technical) panel.append(folded("Technical details", make("p", "dim", technical)))
  const details = folded(title, panel)
  // the list covers the answer, so it closes as soon as the reader clicks elsewhere or presses a
  // key
  root.listeners?.abort()
  root.listeners = new AbortController()
  const closeOn = (type, isLeaving) =>
    document.addEventListener(
      type,
      event => {
        if (isLeaving(event)) details.open = false
      },
      { capture: true, signal: root.listeners.signal },
    )
  closeOn("pointerdown", event => !event.composedPath().includes(details))
  closeOn(
    "keydown",
    event => event.key === "Escape" || (event.key.length === 1 && event.key !== " "),
  )
  return details
}

function folded(name, inner) {
  const details = make("details")
  details.append(make("summary", "", name), inner)
  return details
}
