/** `make` with a memory: it is called once for each object, and its value is kept as long as the object is. */
export function byIdentity<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, { value: Value }>();
  return (key) => {
    let known = made.get(key);
    if (!known) made.set(key, (known = { value: make(key) }));
    return known.value;
  };
}

/**
 * Folds lists that usually grow at their end. If a list begins with the items that were folded before, only those behind
 * them are visited; `add` may change the value that it returns.
 */
export function byGrowth<Item extends object, Value>(
  start: () => Value,
  add: (value: Value, item: Item) => Value,
): (items: readonly Item[]) => Value {
  const folds = new WeakMap<Item, { items: Item[]; value: Value }>();
  return (items) => {
    const [first] = items;
    if (!first) return start();
    const last = folds.get(first) ?? { items: [], value: start() };
    let at = 0;
    while (at < last.items.length && last.items[at] === items[at]) at += 1;
    const fold = at === last.items.length ? last : { items: [], value: start() };
    // Nothing is kept if `add` throws.
    folds.delete(first);
    for (const item of items.slice(fold.items.length)) {
      fold.value = add(fold.value, item);
      fold.items.push(item);
    }
    folds.set(first, fold);
    return fold.value;
  };
}

/** Caches a value for each number or text. Values are never dropped, so use it where there are few. */
export function byValue<Key extends number | string, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    const known = made.get(key) ?? make(key);
    made.set(key, known);
    return known;
  };
}
