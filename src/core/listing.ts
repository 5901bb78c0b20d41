/** Lists of names and descriptions in a prompt, which every call pays for. */

/** Takes up to 100 entries in order as long as their lines have room, in characters; `undefined`: takes all. */
export function withinRoom<Entry>(
  entries: readonly Entry[],
  lineOf: (entry: Entry) => string,
  room: number | undefined,
): { shown: Entry[]; characters: number } {
  const shown: Entry[] = [];
  let characters = 0;
  for (const entry of entries) {
    const length = lineOf(entry).length + 1;
    if (room !== undefined && (shown.length === 100 || characters + length > room)) continue;
    shown.push(entry);
    characters += length;
  }
  return { shown, characters };
}

const MOST_NAMES = 50;

/** Names for an error text, each in backquotes. */
export function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).map((name) => `\`${name}\``);
  return [...shown, ...(names.length > MOST_NAMES ? [`${names.length - MOST_NAMES} more`] : [])].join(", ");
}
