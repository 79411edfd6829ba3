// The frame's script on every page. It remembers the reviewer's name in this browser, and runs the
// whole page when a part of it sends "masis-wake", because a restarted server ignores posts until
// the page has run once.
const STORAGE_KEY = "masis-reviewer"
const BADGE = ".st-key-reviewer-badge button"
// Focuses the field of the name as soon as it is shown.
document.addEventListener("click", event => {
  if (!event.target.closest?.(BADGE)) return
  let tries = 40
  const focusField = () => {
    const field = document.querySelector(".st-key-reviewer-field input")
    // It has kept the focus since the last try
    if (field && document.activeElement === field) return
    field?.focus()
    if (tries-- > 0) setTimeout(focusField, 50)
  }
  focusField()
})
// Enter stores the name and closes the popover.
document.addEventListener("keyup", event => {
  if (event.key !== "Enter" || !event.target.closest?.(".st-key-reviewer-field")) return
  document.querySelector(BADGE)?.click()
})
// The header covers the top of the page and would swallow the wheel there.
document.addEventListener(
  "wheel",
  event => {
    if (event.target.closest?.(STREAMLIT.elements.header))
      document.querySelector(STREAMLIT.elements.main)?.scrollBy(0, event.deltaY)
  },
  { passive: true },
)
let wake = null
window.addEventListener("masis-wake", () => wake?.())

export default function ({ data, setTriggerValue }) {
  wake = () => setTriggerValue("wake", Date.now())
  if (data.signed_in) return
  try {
    const stored = localStorage.getItem(STORAGE_KEY)
    if (data.name) {
      if (stored !== data.name) localStorage.setItem(STORAGE_KEY, data.name)
    } else if (stored) setTriggerValue("kept", stored)
  } catch {
    /* storage is forbidden: the name is asked for again */
  }
}
