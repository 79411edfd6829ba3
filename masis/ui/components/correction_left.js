// Beside the button that records a correction where Streamlit draws its form: what the correction leaves.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  const show = number => window.dispatchEvent(new CustomEvent("masis-correct", { detail: { number } }))
  let tries = 10, later = 0
  const draw = () => {
    const left = untouchedIssues(data.corrected, show)
    root.replaceChildren(...[left, ...offenders(data.check)].filter(Boolean))
    if (!left && tries--) later = setTimeout(draw, 200) // the answer with its issues may be drawn after the form
  }
  draw()
  return () => clearTimeout(later)
}
