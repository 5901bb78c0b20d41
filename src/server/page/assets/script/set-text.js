/** Writes a text only where it differs, so that a selection in it stays. */
export const setText = (element, text) => {
  if (element !== null && element.textContent !== text) element.textContent = text;
};
