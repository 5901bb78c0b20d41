/** Character references of HTML that people write in Markdown. */

/** `text` with the references replaced by their characters; others stay as they are. */
export const decodeEntities = (text: string): string => text.replace(REFERENCE, characterOf);

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;

function characterOf(reference: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return NAMED.get(name) ?? reference;
  const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : reference;
}

const NAMED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    nbsp: "\u00a0",
    copy: "©",
    reg: "®",
    trade: "™",
    deg: "°",
    plusmn: "±",
    times: "×",
    divide: "÷",
    middot: "·",
    bull: "•",
    hellip: "…",
    ndash: "–",
    mdash: "—",
    lsquo: "‘",
    rsquo: "’",
    ldquo: "“",
    rdquo: "”",
    laquo: "«",
    raquo: "»",
    larr: "←",
    rarr: "→",
    harr: "↔",
    le: "≤",
    ge: "≥",
    ne: "≠",
    euro: "€",
    pound: "£",
    sect: "§",
    check: "✓",
  }),
);
