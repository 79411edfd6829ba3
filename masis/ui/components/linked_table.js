// A table whose rows lead somewhere: real links, so that they open in another tab too, and arrow keys between the rows.
// Streamlit's own tables open nothing by keyboard.
// J and K (page_keys.js) ask every table on the page; the first that can walk takes the step.
const walkers = new WeakMap()

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  whenReleased(root, () => drawTable(root, component))
  const walked = event => {
    if (event.defaultPrevented || !root.isConnected) return
    if (walkers.get(root)?.(event.detail.step, event.detail.within)) event.preventDefault()
  }
  window.addEventListener("masis-row", walked)
  return () => window.removeEventListener("masis-row", walked)
}

// Whoever comes back from a case goes on where they left the list; of a case that is gone since, at the row that took its
// place. The page that is left has the focus for a moment still, as where its link was clicked.
function goesOn(links, isQueue) {
  const here = id => links.find(link => link.dataset.open === id)
  const before = (isQueue && window.masisRows) || []
  const at = before.indexOf(window.masisLeft)
  const left = here(window.masisLeft) ?? (at < 0 ? null : before.slice(at + 1).map(here).find(Boolean) ?? links.at(-1))
  if (isQueue) window.masisRows = links.map(link => link.dataset.open)
  if (!left) return
  window.masisLeft = left.dataset.open
  const until = Date.now() + 2000
  const enter = () => {
    if (!left.isConnected) return
    if (document.activeElement === document.body) {
      left.focus()
      window.masisLeft = ""
    } else if (Date.now() < until) setTimeout(enter, 50)
  }
  enter()
}

function drawTable(root, { data, setTriggerValue }) {
  const version = JSON.stringify(data)
  if (root.dataset.version === version) return
  const holder = root.getRootNode().activeElement
  const focused = holder?.dataset?.open
  const place = [...root.querySelectorAll("tbody tr")].indexOf(holder?.closest("tr"))
  root.dataset.version = version
  root.replaceChildren()

  const open = (event, id) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    event.stopPropagation()
    setTriggerValue("open", id)
  }
  const drawLink = (cell, text) => {
    const link = make("a", "", text)
    link.href = cell.href
    link.target = "_self"
    link.dir = "auto"
    const opens = cell.open ?? cell.href
    link.dataset.open = opens
    if (cell.current) link.setAttribute("aria-current", "true")
    link.onclick = event => open(event, opens)
    return link
  }
  const drawScore = value => {
    if (value === null) return ["–"]
    const bar = make("span", "bar")
    const fill = make("span", "fill")
    fill.style.width = `${Math.round(value * 100)}%`
    bar.append(fill)
    return [value.toFixed(2), bar]
  }
  const drawCell = (cell, column) => {
    const element = make("td", column.kind)
    if (cell === null || typeof cell !== "object") {
      element.textContent = typeof cell === "number" ? cell.toLocaleString("en") : (cell ?? "–")
      return element
    }
    if ("score" in cell) element.append(...drawScore(cell.score))
    if (cell.href) element.append(drawLink(cell, cell.text))
    else if (cell.text) element.append(cell.text)
    for (const each of cell.pills ?? []) element.append(pill(each))
    if (cell.quote) { const quote = make("div", "dim quote", cell.quote); quote.dir = "auto"; element.append(quote) }
    for (const line of cell.below ?? []) if (line) element.append(separable(make("div", "dim below"), line))
    return element
  }

  const table = tabled(data.columns.map(column => [column.title, `${column.kind} ${column.hide}`]))
  table.className = data.head_stays ? "list stays" : "list"
  table.setAttribute("aria-label", data.description)
  for (const row of data.rows) {
    const line = make("tr", row.marked ? "marked" : "")
    row.cells.forEach((cell, index) => {
      const element = drawCell(cell, data.columns[index])
      if (data.columns[index].hide) element.classList.add(data.columns[index].hide)
      line.append(element)
    })
    if (row.open !== null) {
      line.classList.add("leads")
      line.onclick = event => { if (!window.getSelection()?.toString()) open(event, row.open) }
    }
    table.tBodies[0].append(line)
  }
  // Up and down go from row to row, Home and End to the first and the last; Enter opens, as it does with every link.
  const links = [...table.tBodies[0].rows].map(row => row.querySelector("a")).filter(Boolean)
  table.tBodies[0].onkeydown = event => {
    const here = links.findIndex(link => link.closest("tr") === event.target.closest("tr"))
    const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key]
    if (here < 0 || there === undefined || event.metaKey || event.ctrlKey || event.altKey) return
    event.preventDefault()
    links[Math.min(Math.max(there, 0), links.length - 1)].focus()
  }
  root.append(table)
  if (links.length) root.removeAttribute("tabindex")
  else root.tabIndex = 0 // nothing else in it takes the focus that scrolls it by keys
  walkers.set(root, (step, within) => {
    const here = links.findIndex(link => link.closest("tr") === root.getRootNode().activeElement?.closest("tr"))
    if (!links.length || root.offsetParent === null || (within && here < 0)) return false
    if (step === 0) { links[0].click(); return true }
    const there = here < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(here + step, 0), links.length - 1)
    links[there].focus()
    return true
  })
  // the focus is not lost with a row that is gone: the one in its place has it
  if (focused) (links.find(link => link.dataset.open === focused) ?? links[Math.min(place, links.length - 1)])?.focus()
  goesOn(links, data.head_stays)
}
