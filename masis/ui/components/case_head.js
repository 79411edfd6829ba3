export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const title = make("h1", "", data.question)
  title.dir = "auto"
  const line = make("div", "facts")
  line.append(pill(data.state))
  for (const flag of data.flags) line.append(pill(flag))
  for (const fact of data.facts) line.append(make("span", "dim", fact))
  root.append(title, line)
  if (data.reasons.length) {
    const list = make("ul", "reasons")
    for (const reason of data.reasons) list.append(make("li", "", reason))
    root.append(list)
  }
}
