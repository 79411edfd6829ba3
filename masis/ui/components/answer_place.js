// The place in the page for an answer and its evidence, with their styles. The desk draws into it
// (desk.js), so that Streamlit can draw elements of its own below the answer and the decision.
export default () => {}
