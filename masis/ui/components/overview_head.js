export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  if (data.headline) root.append(make("h1", "", data.headline), make("p", "sub", data.sub))
  const strip = make("div", "strip")
  strip.setAttribute("aria-hidden", "true")
  const list = make("ul")
  for (const state of data.states) {
    const part = make("div", `part tone-${state.label.tone}`)
    part.style.flexGrow = state.count
    part.title = `${state.label.text}: ${state.count.toLocaleString("en")}`
    strip.append(part)
    const item = make("li", `tone-${state.label.tone}`)
    const link = make("a")
    link.href = state.href
    link.target = "_self"
    link.title = state.label.meaning
    link.append(make("span", "count", state.count.toLocaleString("en")), make("span", "name", state.label.text))
    link.onclick = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", state.state)
    }
    item.append(link)
    list.append(item)
  }
  root.append(strip, list)
}
