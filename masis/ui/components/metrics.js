export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()

  const go = (element, target) => {
    if (!target.href) return element
    element.href = target.href
    element.target = "_self"
    element.onclick = event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      setTriggerValue("open", Object.fromEntries(new URLSearchParams(target.href.split("?")[1] ?? "")))
    }
    return element
  }
  const titled = (element, title) => {
    element.title = title
    if (element.href) element.setAttribute("aria-label", title)
    return element
  }

  const tiles = make("ul", "tiles")
  for (const tile of data.tiles) {
    const item = make("li")
    const box = go(make(tile.href ? "a" : "div", "tile"), tile)
    if (tile.meaning) box.title = tile.meaning
    box.append(make("span", "count", tile.value), make("span", "name", tile.title))
    item.append(box)
    tiles.append(item)
  }
  root.append(tiles)

  const heading = text => make("h2", "", text)
  const panel = (title, value) => {
    const box = make("section", "panel")
    const head = make("div", "head")
    head.append(make("h3", "", title), make("span", "value", value))
    box.append(head)
    return box
  }

  root.append(heading("Rates over time"))
  const rates = make("div", "grid")
  for (const rate of data.rates) {
    const box = panel(rate.title, rate.value)
    box.append(make("p", "dim small", rate.meaning))
    const plot = make("div", "plot")
    for (const share of [0, 50, 100]) {
      const line = make("div", "guide")
      line.style.bottom = `${share}%`
      line.append(make("span", "dim", `${share}%`))
      plot.append(line)
    }
    const field = make("div", "field")
    const days = rate.points.map(point => Date.parse(point.at) / 86400000)
    const first = Math.min(...days), span = Math.max(...days) - first
    const x = day => span ? (day - first) / span * 100 : 50
    if (rate.points.length > 1) {
      const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg")
      drawing.setAttribute("viewBox", "0 0 100 100")
      drawing.setAttribute("preserveAspectRatio", "none")
      drawing.setAttribute("aria-hidden", "true")
      const course = document.createElementNS("http://www.w3.org/2000/svg", "polyline")
      course.setAttribute("points", rate.points.map((point, index) => `${x(days[index])},${100 - point.share * 100}`).join(" "))
      drawing.append(course)
      field.append(drawing)
    }
    const small = rate.points.length > 60 ? "dot small-dot" : "dot"
    rate.points.forEach((point, index) => {
      const dot = titled(go(make("a", small), point), point.title)
      dot.tabIndex = -1 // the table of periods has the same ways, with room for each
      dot.style.left = `${x(days[index])}%`
      dot.style.bottom = `${point.share * 100}%`
      field.append(dot)
    })
    plot.append(field)
    box.append(plot)
    const ends = make("div", "ends dim")
    ends.append(make("span", "", rate.from), make("span", "", rate.to === rate.from ? "" : rate.to))
    box.append(ends)
    rates.append(box)
  }
  root.append(rates)

  root.append(heading("Distributions"))
  const spreads = make("div", "grid")
  for (const spread of data.spreads) {
    const box = panel(spread.title, "")
    const facts = make("p", "facts")
    for (const fact of spread.figures) {
      const pair = make("span", "fact")
      pair.append(make("span", "dim", `${fact.name} `), make("b", "", fact.value))
      facts.append(pair)
    }
    box.append(facts)
    const bars = make("div", "bars")
    for (const bin of spread.bins) {
      const bar = titled(go(make(bin.count ? "a" : "div", `bar${bin.over ? " over" : ""}`), bin.count ? bin : {}), bin.title)
      const fill = make("span", "fill")
      fill.style.height = `${Math.max(bin.share * 100, bin.count ? 2 : 0)}%`
      bar.append(fill)
      if (bin.p50 || bin.p95) bar.append(make("span", "mark", [bin.p50 && "p50", bin.p95 && "p95"].filter(Boolean).join(" ")))
      bars.append(bar)
    }
    box.append(bars)
    const ends = make("div", "ends dim")
    const [lowest, highest] = [spread.bins[0], spread.bins[spread.bins.length - 1]]
    ends.append(make("span", "", lowest.low ? `over ${lowest.low}` : `up to ${lowest.high}`))
    if (spread.bins.length > 1) ends.append(make("span", "", highest.high ? `up to ${highest.high}` : `over ${highest.low}`))
    box.append(ends)
    const foot = make("div", "foot")
    if (spread.limit) foot.append(pill(spread.limit))
    foot.append(make("span", "dim small", `${spread.count} measured`))
    box.append(foot)
    spreads.append(box)
  }
  root.append(spreads)

  for (const told of data.tables) {
    root.append(heading(told.title))
    const around = make("div", "scroll")
    const table = tabled(told.columns)
    for (const row of told.rows) {
      const line = make("tr")
      const name = make("th")
      name.scope = "row"
      name.append(go(make("a", "", row.name), row))
      line.append(name)
      for (const cell of row.cells) {
        const place = make("td", "figure")
        place.append(cell.href ? go(make("a", "", cell.text), cell) : make("span", "", cell.text))
        line.append(place)
      }
      table.tBodies[0].append(line)
    }
    around.append(table)
    root.append(around)
  }
}
