// The preview beside a form: the case as it would be stored, its chunks, and all errors.
export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (root) whenReleased(root, () => drawUnderstood(root, component))
}

// Adds a field for the id of a chunk and a button that joins the chunk to the one above.
function editChunk(item, chunk, index, trigger) {
  const field = make("input", "chunk-id")
  field.defaultValue = chunk.id
  field.maxLength = 200
  field.setAttribute("aria-label", `Id of chunk ${index + 1}`)
  const label = make("label", "chunk-label", "Id")
  field.onchange = () => {
    field.defaultValue = field.value // sent
    trigger("edit", { kind: "rename", index, id: chunk.id, name: field.value, at: Date.now() })
  }
  label.append(field)
  item.append(label)
  if (!index) return
  const merge = make("button", "merge", "Join to the one above")
  merge.type = "button"
  merge.setAttribute("aria-label", `Join chunk ${index + 1} to the one above`)
  merge.onclick = () => trigger("edit", { kind: "merge", index, id: chunk.id, at: Date.now() })
  item.append(merge)
}

function drawUnderstood(root, component) {
  const { data, setTriggerValue } = component
  const version = JSON.stringify(data)
  if (root.dataset.version === version) return
  // Redrawing would replace a field while somebody types in it
  const field = root.getRootNode().activeElement
  if (root.contains(field) && field.matches("input") && field.value !== field.defaultValue) {
    field.onblur = () => drawUnderstood(root, component)
    return
  }
  root.dataset.version = version
  root.replaceChildren()
  const box = make("section", "box")
  box.setAttribute("aria-label", data.title)
  box.append(make("h2", "", data.title))
  if (data.question) {
    const question = outsideText("p", "question", data.question)
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
      row.append(
        make("b", "", error.place ? `${error.place}: ` : ""),
        make("span", "", `${error.problem}. ${error.hint}`),
      )
      errors.append(row)
    }
    box.append(errors)
  }
  if (data.chunks.length) {
    const list = make("ul", "chunks")
    list.tabIndex = 0
    list.setAttribute("aria-label", data.chunks_label)
    data.chunks.forEach((chunk, index) => {
      const item = make("li", data.editable ? "chunk editable" : "chunk")
      if (data.editable) editChunk(item, chunk, index, setTriggerValue)
      else {
        const name = make("span", "chunk-id", chunk.id)
        name.title = chunk.id
        item.append(name)
      }
      const text = outsideText("span", "chunk-text", chunk.text)
      item.append(text)
      list.append(item)
    })
    if (data.more) list.append(make("li", "chunk dim", data.more))
    box.append(list)
  }
  root.append(box)
}
