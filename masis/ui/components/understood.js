export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  root.replaceChildren()
  const box = make("section", "box")
  box.setAttribute("aria-label", data.title)
  box.append(make("h2", "", data.title))
  if (data.question) {
    const question = make("p", "question", data.question)
    question.dir = "auto"
    box.append(question)
  }
  for (const line of data.lines) {
    const row = make("p", "line")
    row.append(make("b", "", line.head), make("span", "", line.rest ? ` ${line.rest}` : ""))
    box.append(row)
  }
  for (const note of data.notes) box.append(make("p", "note", note))
  if (data.errors.length) {
    const errors = make("div", "errors")
    errors.setAttribute("role", "alert")
    for (const error of data.errors) {
      const row = make("p", "error")
      row.append(make("b", "", error.place ? `${error.place}: ` : ""), make("span", "", `${error.problem}. ${error.cure}`))
      errors.append(row)
    }
    box.append(errors)
  }
  if (data.chunks.length) {
    const list = make("ul", "chunks")
    list.tabIndex = 0
    list.setAttribute("aria-label", data.chunks_label)
    for (const chunk of data.chunks) {
      const item = make("li", "chunk")
      const name = make("span", "chunk-id", chunk.id)
      name.title = chunk.id
      const text = make("span", "chunk-text", chunk.text)
      text.dir = "auto"
      item.append(name, text)
      list.append(item)
    }
    if (data.more) list.append(make("li", "chunk dim", data.more))
    box.append(list)
  }
  root.append(box)
}
