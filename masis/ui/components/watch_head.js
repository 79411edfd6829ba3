export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const title = make("h1", "", data.question)
  title.dir = "auto"
  root.append(make("p", "kicker", data.title), title, make("div", "case", data.case))
}
