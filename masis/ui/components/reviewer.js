// The frame's part in the page: it remembers who sits before it, and has the whole page run when a part of it asks for
// that ("masis-wake": a restarted server ignores what parts of a page post until the page has run once).
const PLACE = "masis-reviewer"
const BADGE = ".st-key-reviewer-badge button"
// The field of the name is ready to be typed in as soon as it is shown.
document.addEventListener("click", event => {
  if (!event.target.closest?.(BADGE)) return
  let looks = 40
  const look = () => {
    const field = document.querySelector(".st-key-reviewer-field input")
    if (field && document.activeElement === field) return // it has kept the focus since the look before
    field?.focus()
    if (looks-- > 0) setTimeout(look, 50)
  }
  look()
})
// Enter stores the name; the box that asks for it closes.
document.addEventListener("keyup", event => {
  if (event.key !== "Enter" || !event.target.closest?.(".st-key-reviewer-field")) return
  document.querySelector(BADGE)?.click()
})
// The page is scrolled over its head, too, which lies over it.
document.addEventListener("wheel", event => {
  if (event.target.closest?.(STREAMLIT.elements.header)) document.querySelector(STREAMLIT.elements.main)?.scrollBy(0, event.deltaY)
}, { passive: true })
let wake = null
window.addEventListener("masis-wake", () => wake?.())

export default function ({ data, setTriggerValue }) {
  wake = () => setTriggerValue("wake", Date.now())
  try {
    const kept = localStorage.getItem(PLACE)
    if (data.name) {
      if (kept !== data.name) localStorage.setItem(PLACE, data.name)
    } else if (kept) setTriggerValue("kept", kept)
  } catch { /* a browser that keeps nothing: the name is asked for again */ }
}
