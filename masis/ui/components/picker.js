// A list of stored cases to pick one from for a new audit.
export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (root) whenReleased(root, () => drawChoices(root, component))
}

function drawChoices(root, { data, setTriggerValue }) {
  // Replacing an element that has the focus moves the focus to the page, so it's restored below.
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
    const question = outsideText("span", "question", row.question)
    words.append(question, make("span", "id", row.id))
    button.append(make("span", "dot"), words, pill(row.state))
    button.onclick = () => setTriggerValue("pick", row.id)
    item.append(button)
    list.append(item)
    // an element can get the focus only once it's in the document
    if (row.id === focused) queueMicrotask(() => button.focus())
  }
  root.append(list)
}
