/** Deepest nesting of a message. Schema checks descend by calls, so what is much deeper overflows the stack. */
const MAX_DEPTH = 200;

/** One text for it on every transport. */
export const TOO_DEEP = `Invalid request: the message is nested deeper than ${MAX_DEPTH} levels`;

/** Whether `value`, as JSON.parse returned it, has more than `limit` arrays and objects inside each other. */
export function isTooDeep(value: unknown, limit = MAX_DEPTH): boolean {
  let level = containersIn([value]);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= limit) return true;
    level = containersIn(level.flatMap((container) => Object.values(container)));
  }
  return false;
}

function containersIn(values: readonly unknown[]): object[] {
  return values.filter((value) => typeof value === "object" && value !== null);
}
