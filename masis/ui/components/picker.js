export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (root) whenReleased(root, () => drawChoices(root, component))
}

function drawChoices(root, { data, setTriggerValue }) {
  const focused = root.getRootNode().activeElement?.dataset?.id
  root.replaceChildren()
  const list = make("ul")
  list.setAttribute("aria-label", "Cases")
  for (const row of data.rows) {
    const item = make("li")
    const button = make("button", "pick")
    button.type = "button"
    button.dataset.id = row.id
    button.setAttribute("aria-pressed", String(row.id === data.chosen))
    const words = make("span")
    const question = make("span", "question", row.question)
    question.dir = "auto"
    words.append(question, make("span", "id", row.id))
    button.append(make("span", "dot"), words, pill(row.state))
    button.onclick = () => setTriggerValue("pick", row.id)
    item.append(button)
    list.append(item)
    if (row.id === focused) queueMicrotask(() => button.focus())
  }
  root.append(list)
}
