/** How long work that waited for its turn may go on before the event loop sees to everything else. */
const TURN_MS = 2;

/** When the current turn is over; none while nobody had one yet. There is one event loop in a process. */
let over: number | undefined;

/** Who waits, in order; each of them has one immediate on its way, which is for whoever is first then. */
const waiting: Array<() => void> = [];

/**
 * Resolves when it is the caller's turn, a few milliseconds of work for each turn of the event loop: between
 * the steps of many agents, whatever came from outside is answered. Steps that become ready all at once
 * would otherwise run in one go. Who asked first is first, so that slow steps of one agent hold up no other.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    setImmediate(take);
  });
}

/** What an immediate's caller does with its turn is done when the next immediate runs. */
function take(): void {
  const now = performance.now();
  if (over === undefined) {
    over = now + TURN_MS;
    // The first of the next turn: all that wait were put behind it.
    setImmediate(() => (over = undefined));
  } else if (now >= over) {
    setImmediate(take);
    return;
  }
  waiting.shift()?.();
}
