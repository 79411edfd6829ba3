// Shared by the components. Text from outside only ever becomes text: textContent, never markup.
const make = (tag, className, text) => {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (text !== undefined && text !== null) element.textContent = text
  return element
}
const pill = (label, extra) => {
  const element = make("span", `pill tone-${label.tone} ${extra ?? ""}`, label.text)
  if (label.meaning) element.title = label.meaning
  return element
}
