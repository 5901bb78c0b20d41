/** Writes a text only where it differs, so that a selection in it stays. */
export function setText(element, text) {
  if (element === null || element.textContent === text) return;
  // An update of the screen changes the node that it made.
  if (element.firstChild instanceof Text && element.childNodes.length === 1) element.firstChild.data = text;
  else element.textContent = text;
}
