/** Finds the titles of the tests in a source, without those that are always skipped. Titles are plain texts. */
export function testTitles(source: string): Set<string> {
  const code = source.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, "");
  const calls = code.matchAll(/((?:\b(?:test|it)\b[.\w]*|\)))\(\s*(["'`])((?:\\.|(?!\2)[^\\])*)\2/g);
  return new Set(
    [...calls]
      .filter(([, callee = ""]) => !/skip|todo|fails/.test(callee))
      .map(([, , , title = ""]) => title.replaceAll(/\\(.)/g, "$1")),
  );
}
