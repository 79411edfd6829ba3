// A table whose rows are links, with arrow keys to move between the rows. Real links can be opened
// in another tab, and Streamlit's own tables can't be used by keyboard.
export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!root) return
  whenReleased(root, () => drawTable(root, component))
  return listenForRowKeys(root)
}

// Focuses the row of the case that the user returns from. If that case is no longer in the list,
// the row in its place is focused. An element of the previous page may keep the focus for a moment,
// for example the clicked link, so this waits until no element has it.
function restoreFocus(links, isQueue) {
  const linkOf = id => links.find(link => link.dataset.open === id)
  const before = (isQueue && window.masisRows) || []
  const index = before.indexOf(window.masisLeft)
  const successor = () =>
    before
      .slice(index + 1)
      .map(linkOf)
      .find(Boolean) ?? links.at(-1)
  const link = linkOf(window.masisLeft) ?? (index < 0 ? null : successor())
  if (isQueue) window.masisRows = links.map(row => row.dataset.open)
  if (!link) return
  window.masisLeft = link.dataset.open
  const deadline = Date.now() + 2000
  const focusWhenFree = () => {
    if (!link.isConnected) return
    if (document.activeElement === document.body) {
      link.focus()
      window.masisLeft = ""
    } else if (Date.now() < deadline) setTimeout(focusWhenFree, 50)
    else window.masisLeft = "" // a later change of the list must not move the focus
  }
  focusWhenFree()
}

function drawTable(root, { data, setTriggerValue }) {
  const version = JSON.stringify(data)
  // Streamlit calls this after every run of the page, usually with the same data.
  if (root.dataset.version === version) return
  const holder = root.getRootNode().activeElement
  const focused = holder?.dataset?.open
  const focusedIndex = [...root.querySelectorAll("tbody tr")].indexOf(holder?.closest("tr"))
  root.dataset.version = version
  root.replaceChildren()

  const open = (event, id) => {
    // with these keys, the browser opens the link in a new tab or window
    if (event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    // the row around the link has a click handler of its own
    event.stopPropagation()
    setTriggerValue("open", id)
  }
  const drawLink = (cell, text) => {
    const link = make("a", "", text)
    link.href = cell.href
    link.target = "_self"
    link.dir = "auto"
    const target = cell.open ?? cell.href
    link.dataset.open = target
    if (cell.current) link.setAttribute("aria-current", "true")
    link.onclick = event => open(event, target)
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
    else if (cell.text) {
      const text = outsideText("div", "plain", cell.text)
      element.append(text)
    }
    for (const label of cell.pills ?? []) element.append(pill(label))
    if (cell.quote) {
      const quote = outsideText("div", "dim quote", cell.quote)
      element.append(quote)
    }
    for (const line of cell.below ?? [])
      if (line) element.append(separable(make("div", "dim below"), line))
    return element
  }

  const table = makeTable(
    data.columns.map(column => [column.title, `${column.kind} ${column.hide}`]),
  )
  const choice = data.choosing ? choiceOf(root) : null
  if (choice) choice.choosing = data.choosing
  if (choice) table.tHead.rows[0].prepend(choice.drawHead())
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
      // a click that ends a selection of text opens nothing
      line.onclick = event => {
        if (!window.getSelection()?.toString()) open(event, row.open)
      }
    }
    table.tBodies[0].append(line)
  }
  // Up and down move by a row, Home and End to the first and the last row. Enter follows a link
  // without our help.
  const links = [...table.tBodies[0].rows].map(row => row.querySelector("a")).filter(Boolean)
  table.tBodies[0].onkeydown = event => {
    const line = event.target.closest("tr")
    if (choice?.onKeydown(event, line?.querySelector("a")?.dataset.open)) return
    const current = links.findIndex(link => link.closest("tr") === event.target.closest("tr"))
    const next = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: links.length - 1 }[
      event.key
    ]
    if (current < 0 || next === undefined || event.metaKey || event.ctrlKey || event.altKey) return
    event.preventDefault()
    links[Math.min(Math.max(next, 0), links.length - 1)].focus()
  }
  root.append(table)
  if (choice) {
    const lines = new Map(links.map(link => [link.dataset.open, link.closest("tr")]))
    choice.attach(lines, data.choosing, chosen => setTriggerValue("act", chosen))
  }
  if (links.length) root.removeAttribute("tabindex")
  else root.tabIndex = 0 // a table without links must be focusable itself, or keys can't scroll it
  rowsOf.set(root, links)
  // keep the focus in the table: if its row is gone, the row in its place gets it
  if (focused)
    (
      links.find(link => link.dataset.open === focused) ??
      links[Math.min(focusedIndex, links.length - 1)]
    )?.focus()
  restoreFocus(links, data.head_stays)
}
