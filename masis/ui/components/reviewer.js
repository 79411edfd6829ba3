// The frame's part in the page: it remembers who sits before it, and has the whole page run when a part of it asks for
// that ("masis-wake": a restarted server ignores what parts of a page post until the page has run once).
const PLACE = "masis-reviewer"
const BADGE = ".st-key-reviewer-badge button"
// The field of the name is ready to be typed in as soon as it is shown.
document.addEventListener("click", event => {
  if (!event.target.closest?.(BADGE)) return
  const shown = new MutationObserver(() => {
    const field = document.querySelector(".st-key-reviewer-field input")
    if (!field) return
    shown.disconnect()
    field.focus()
    field.select()
  })
  shown.observe(document.body, { childList: true, subtree: true })
  setTimeout(() => shown.disconnect(), 2000)
})
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
