/** `before`: when it was, or what it did. `line` of `file` is replaced by `instead`. */
export const BROKEN: Readonly<
  Record<string, { finds: string[]; before: string; file: string; line: string; instead: string }>
>;
