/** Groups items by the key that `toKey` returns. Each group keeps their order. */
export function groupBy<Item, Key>(items: Iterable<Item>, toKey: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = toKey(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
