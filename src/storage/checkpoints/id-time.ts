/** The time in an id of a checkpoint. LangGraph makes ids as UUIDs of version 6. */
const TIME_ID = /^([\da-f]{8})-([\da-f]{4})-6([\da-f]{3})-[\da-f]{4}-[\da-f]{12}$/;

/** Units of 100 ns from the 15th of October 1582, where these ids begin, to 1970. */
const EPOCH = 0x01b21dd213814000n;

/** Milliseconds since the epoch; `NaN` for other ids. */
export function timeOfId(id: string): number {
  const [, high, middle, low] = TIME_ID.exec(id) ?? [];
  return high === undefined ? Number.NaN : Number((BigInt(`0x${high}${middle}${low}`) - EPOCH) / 10_000n);
}
