// Makes one click one entry in the browser's history. Streamlit pushes two:
// - To open another page, it first gives the old page the query of the new one, and then changes
//   the page. "Back" would lead to the old page with the wrong query, on which nothing is open.
// - If several parameters change at once (a filter and the page of the list), it pushes an entry
//   for each.
// The second entry replaces the first. The case that was left last is remembered, so that its row
// in the list gets the focus (linked_table.js).
//
// A link to the open page with another query, such as from one case to another, pushes none at all:
// Streamlit draws the other case under the address of the first. The link's address is pushed here.
const TOGETHER_MS = 250 // parameters that one click changes arrive together
const FOLLOWS_MS = 2000 // the page changes once the server has started to run it
if (!history.masisWayBack) {
  history.masisWayBack = true
  const push = history.pushState.bind(history)
  let last = null
  let current = location.href
  const onNavigate = () => {
    const from = new URL(current)
    current = location.href
    if (from.pathname.endsWith("/review") && from.searchParams.has("case"))
      window.masisLeft = from.searchParams.get("case")
  }
  window.addEventListener("popstate", onNavigate)
  document.addEventListener("click", event => {
    const link = event.target.closest?.(STREAMLIT.elements.page_link)
    // Streamlit leaves a click that opens another tab to the browser
    if (!link?.href || !event.defaultPrevented) return
    const to = new URL(link.href)
    const isOpenPage = to.origin === location.origin && to.pathname === location.pathname
    if (isOpenPage && to.search !== location.search) push({}, "", to.href)
    if (isOpenPage) onNavigate()
  })
  history.pushState = (state, title, address) => {
    const to = new URL(address ?? "", location.href)
    const samePath = to.pathname === location.pathname
    const onlyQuery = samePath && to.search !== location.search
    const since = last && last.href === location.href ? Date.now() - last.at : Infinity
    const isSecond = samePath
      ? onlyQuery && since < TOGETHER_MS
      : to.search === location.search && since < FOLLOWS_MS
    last = onlyQuery ? { href: to.href, at: Date.now() } : null
    if (isSecond) history.replaceState(state, title, address)
    else push(state, title, address)
    onNavigate()
  }
}
