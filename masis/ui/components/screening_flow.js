// The PRISMA flow: what came in on the left, what left it on the right.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const list = make("ol", "flow")
  for (const step of data.steps) {
    const item = make("li", "step")
    const box = make("div", "box")
    box.append(make("span", "name", step.name), make("b", "count", step.count.toLocaleString("en")))
    item.append(box)
    if (step.left_title) {
      const left = make("div", "left")
      left.append(make("div", "left-title", step.left_title))
      for (const each of step.left) {
        const line = make("div", "why")
        line.append(make("b", "", each.count.toLocaleString("en")), ` ${each.name}`)
        left.append(line)
      }
      item.append(left)
    }
    list.append(item)
  }
  root.append(list)
}
