// The check of a correction next to the button that records it, on pages whose form Streamlit
// draws.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (!root) return
  // Shows an issue in the answer and selects its words in the correction. For a missing point, the
  // caret is put where it can be inserted.
  const showIssue = number => {
    const request = { number } // the view of the answer fills it in (answer_view.js)
    window.dispatchEvent(new CustomEvent("masis-correct", { detail: request }))
    const field = document.querySelector(".st-key-final-corrected textarea")
    if (!field) return
    const index = request.after ? field.value.lastIndexOf(request.after) : -1
    const end = index < 0 ? field.value.trimEnd().length : index + request.after.length
    const range = request.answer
      ? findWords(field.value, request.answer, request)
      : "after" in request
        ? [end, end]
        : null
    if (!range) return
    field.focus()
    selectRange(field, range)
  }
  let tries = 10,
    retryTimer = 0
  const draw = () => {
    const issues = untouchedIssues(data.corrected, showIssue)
    root.replaceChildren(...[issues, ...citationProblems(data.check)].filter(Boolean))
    // The answer with its issues may be drawn after the form
    if (!issues && tries--) retryTimer = setTimeout(draw, 200)
  }
  draw()
  return () => clearTimeout(retryTimer)
}
