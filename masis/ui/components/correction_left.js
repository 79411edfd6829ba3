// Beside the button that records a correction where Streamlit draws its form: what the correction leaves.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  // the answer shows an issue; the correction selects its words, or has the caret where what is missing may stand
  const show = number => {
    const asked = { number }
    window.dispatchEvent(new CustomEvent("masis-correct", { detail: asked }))
    const field = document.querySelector(".st-key-final-corrected textarea")
    if (!field) return
    const behind = asked.after ? field.value.lastIndexOf(asked.after) : -1
    const end = behind < 0 ? field.value.trimEnd().length : behind + asked.after.length
    const place = asked.answer ? wordsIn(field.value, asked.answer, asked) : "after" in asked ? [end, end] : null
    if (!place) return
    field.focus()
    selectIn(field, place)
  }
  let tries = 10, later = 0
  const draw = () => {
    const left = untouchedIssues(data.corrected, show)
    root.replaceChildren(...[left, ...offenders(data.check)].filter(Boolean))
    if (!left && tries--) later = setTimeout(draw, 200) // the answer with its issues may be drawn after the form
  }
  draw()
  return () => clearTimeout(later)
}
