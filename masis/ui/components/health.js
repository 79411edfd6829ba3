const GOOD = ["good", "✓", "in order"]
const BAD = ["bad", "✗", "not in order"]
const ABSENT = ["calm", "–", "not installed"]

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  root.append(make("p", `sum tone-${data.sound ? "good" : "bad"}`, data.sound ? "All is in order." : "Something is not in order."))
  for (const group of data.groups) {
    if (group.title) root.append(make("h3", "", group.title))
    const list = make("ul")
    for (const item of group.items) {
      const [tone, drawn, said] = item.absent ? ABSENT : item.ok ? GOOD : BAD
      const line = make("li", `tone-${tone}`)
      const sign = make("span", "sign", drawn)
      sign.setAttribute("role", "img")
      sign.setAttribute("aria-label", said)
      const message = make("span", "message", item.message)
      if (item.cure) message.append(make("span", "cure", item.cure))
      line.append(sign, make("span", "", item.name), message)
      list.append(line)
    }
    root.append(list)
  }
}
