// One step back for one step forward. Streamlit makes two steps in the history of the browser where a person made one:
// - to go to another page, the address that is left first gets the query of the page to come, and then the page follows;
//   Back would lead to a page with another's query, on which nothing is open;
// - where several parameters change at once (a filter, and the page of the list), each is a step.
// The first of two such steps is taken out. The case that was left last is remembered for the list it stands in.
const TOGETHER_MS = 250 // parameters that one click changes arrive at once
const FOLLOWS_MS = 2000 // the page follows when the server has begun with it
if (!history.masisWayBack) {
  history.masisWayBack = true
  const push = history.pushState.bind(history)
  let last = null
  let here = location.href
  const moved = () => {
    const from = new URL(here)
    here = location.href
    if (from.pathname.endsWith("/review") && from.searchParams.has("case")) window.masisLeft = from.searchParams.get("case")
  }
  window.addEventListener("popstate", moved)
  history.pushState = (state, title, address) => {
    const to = new URL(address ?? "", location.href)
    const samePath = to.pathname === location.pathname
    const onlyQuery = samePath && to.search !== location.search
    const since = last && last.href === location.href ? Date.now() - last.at : Infinity
    const together = samePath ? onlyQuery && since < TOGETHER_MS : to.search === location.search && since < FOLLOWS_MS
    last = onlyQuery ? { href: to.href, at: Date.now() } : null
    if (together) history.replaceState(state, title, address)
    else push(state, title, address)
    moved()
  }
}
