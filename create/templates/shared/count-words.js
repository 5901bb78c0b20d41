/** Counts the words of a text, in any language. */
export function countWords(text) {
  const parts = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text);
  return [...parts].filter(({ isWordLike }) => isWordLike).length;
}
