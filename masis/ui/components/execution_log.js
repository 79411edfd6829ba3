export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const version = JSON.stringify(data)
  if (!root || root.dataset.version === version) return
  root.dataset.version = version
  root.replaceChildren()
  const table = tabled([["Ended", "num"], ["Case", ""], ["How", ""], ["Iterations", "num"], ["Quality", "num"], ["Improvement", "num narrow"], ["Models", "wide"]])
  for (const row of data.rows) {
    const line = make("tr")
    const about = make("td")
    const link = make("a", "", row.case)
    link.href = row.href
    link.target = "_self"
    about.append(link, make("div", "small", row.run))
    const ended = make("td", "", row.ended)
    ended.title = row.meaning
    const models = make("td", "wide", row.models)
    models.append(make("div", "small", `version ${row.version}`))
    line.append(
      make("td", "num", row.at.slice(0, 16).replace("T", " ")), about, ended, make("td", "num", String(row.iterations)),
      make("td", "num", row.quality === null ? "unscored" : row.quality.toFixed(2)),
      make("td", "num narrow", row.improvement === null ? "–" : `${row.improvement > 0 ? "+" : ""}${row.improvement.toFixed(1)} %`), models)
    table.tBodies[0].append(line)
  }
  root.append(table)
}
