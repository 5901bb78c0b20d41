/** The value under the longest key that `name` begins with; `undefined` if it begins with none. */
export function longestMatch<Value>(
  name: string,
  values: Readonly<Record<string, Value>>,
): Value | undefined {
  const [closest] = Object.keys(values)
    .filter((key) => name.startsWith(key))
    .sort((a, b) => b.length - a.length);
  return closest === undefined ? undefined : values[closest];
}
