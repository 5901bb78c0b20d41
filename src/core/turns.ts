/**
 * Work that waits for its turn. There is one event loop in a process, and so one queue for it.
 */
const waiting: Array<() => void> = [];

/**
 * Resolves when it is the caller's turn, one caller per turn of the event loop: between two steps of many
 * agents, whatever came from outside is answered. Steps that become ready all at once would otherwise
 * run in one go.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next);
  });
}

function next(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(next);
}
