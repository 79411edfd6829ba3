export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  const REST_MS = 800
  const ARRIVES_MS = 3000
  let area = root.querySelector("textarea")
  if (!area) {
    const label = make("label")
    const name = make("span")
    label.append(name, make("span", "dim"))
    label.htmlFor = "area"
    area = make("textarea")
    area.id = "area"
    area.spellcheck = false
    area.dir = "auto"
    const full = make("p", "full")
    full.setAttribute("role", "status")
    root.append(label, make("p", "hint"), area, full)
  }
  root.querySelector("label span").textContent = data.label
  root.querySelector("label .dim").textContent = data.optional ? "optional" : ""
  const hint = root.querySelector(".hint")
  hint.textContent = data.hint
  hint.hidden = !data.hint
  area.rows = data.rows
  area.maxLength = data.most
  area.placeholder = data.placeholder
  if (root.dataset.version !== String(data.version)) {
    root.dataset.version = String(data.version)
    area.value = data.text
    root.posted = data.text
  }
  const full = root.querySelector(".full")
  const measure = () => {
    full.textContent = area.value.length >= data.most
      ? `This field takes ${data.most.toLocaleString("en")} characters; what came after is not here.` : ""
  }
  // With the version, so that text typed again after the field was emptied is not taken for what was posted before.
  const post = () => {
    clearTimeout(root.resting)
    if (area.value === root.posted) return
    root.posted = area.value
    root.send("typed", { text: area.value, version: data.version })
    clearTimeout(root.late)
    // Where the server does not show it after a while, it was lost on its way: it is posted again, once.
    root.late = setTimeout(() => {
      if (root.told !== root.posted && area.value === root.posted) root.send("typed", { text: root.posted, version: data.version })
    }, ARRIVES_MS)
  }
  root.told = data.text
  root.send = setStateValue
  area.oninput = () => {
    measure()
    clearTimeout(root.resting)
    root.resting = setTimeout(post, REST_MS)
  }
  area.onblur = post
  area.onkeydown = event => {
    if (event.key === "Escape") area.blur()
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) post()
    // a plain key is text here, not a shortcut of the page
    else if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation()
  }
  measure()
}
