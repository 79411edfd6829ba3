// Keys that move the focus by rows. J and K (page_keys.js) send "masis-row" to every list on the
// page. The first that can move the focus cancels the event.
const rowsOf = new WeakMap()

// Listens for these keys while a component is drawn. Returns a function that stops it.
const listenForRowKeys = root => {
  const onMoveRow = event => {
    if (event.defaultPrevented || !root.isConnected) return
    if (moveRow(root, event.detail.step, event.detail.within)) event.preventDefault()
  }
  window.addEventListener("masis-row", onMoveRow)
  return () => window.removeEventListener("masis-row", onMoveRow)
}

// Focuses the next or previous of the controls that rows have for it (`rowsOf`), or with a step of
// 0 presses the first. With `within`, only if a row has the focus. Returns whether it did.
const moveRow = (root, step, within) => {
  const controls = rowsOf.get(root) ?? []
  const focused = root.getRootNode().activeElement?.closest("tr")
  const current = controls.findIndex(control => focused && control.closest("tr") === focused)
  // offsetParent is null while the list is hidden, as on a tab that isn't open
  if (!controls.length || root.offsetParent === null || (within && current < 0)) return false
  if (step === 0) {
    controls[0].click()
    return true
  }
  const last = controls.length - 1
  const start = step > 0 ? 0 : last
  controls[current < 0 ? start : Math.min(Math.max(current + step, 0), last)].focus()
  return true
}
