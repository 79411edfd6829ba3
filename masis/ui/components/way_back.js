// One step back for one step forward. Streamlit goes to another page in two steps: first the address that is left gets
// the query of the page to come, then the page follows; Back would lead to a page with another's query, on which nothing
// is open. The first of two such steps is taken out of the history of the browser.
const TOGETHER_MS = 2000
if (!history.masisWayBack) {
  history.masisWayBack = true
  const push = history.pushState.bind(history)
  let between = null
  history.pushState = (state, title, address) => {
    const from = location
    const to = new URL(address ?? "", from.href)
    const follows = between && between.href === from.href && Date.now() - between.at < TOGETHER_MS
    if (follows && to.search === from.search && to.pathname !== from.pathname) {
      between = null
      history.replaceState(state, title, address)
      return
    }
    const onlyQuery = to.pathname === from.pathname && to.search !== from.search
    between = onlyQuery ? { href: to.href, at: Date.now() } : null
    push(state, title, address)
  }
}
