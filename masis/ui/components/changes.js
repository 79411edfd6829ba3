// A text in which removed words are struck through and added words underlined.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  const before = new Set([...root.querySelectorAll("ins, del")].map(change => change.textContent))
  const isRedraw = root.dataset.version
  root.dataset.version = version
  root.replaceChildren()
  if (data.key) {
    const key = make("p", "dim key")
    key.append(make("del", "", data.key.out), " ", make("ins", "", data.key.in))
    root.append(key)
  }
  const text = outsideText("div", "text")
  text.tabIndex = 0
  text.setAttribute("role", "region")
  text.setAttribute("aria-label", data.description)
  text.append(...renderDiff(data.pieces.map(({ kind, text }) => [kind, text])))
  root.append(text)
  if (!isRedraw) return
  // while somebody types, keep the end of the newest change in view
  const newest = [...text.querySelectorAll("ins, del")].find(
    change => !before.has(change.textContent),
  )
  if (newest)
    text.scrollTop = newest.offsetTop + newest.offsetHeight + 8 - text.offsetTop - text.clientHeight
}
