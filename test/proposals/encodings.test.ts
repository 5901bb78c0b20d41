import { describe, expect, it } from "vitest";
import { applied, proposedFile } from "../../src/proposals/change.ts";
import type { Content } from "../../src/proposals/content.ts";
import type { Sides } from "../../src/proposals/workspace-copy.ts";

const file = (bytes: Buffer): Content => ({ kind: "file", bytes, executable: false });
const sides = (base: Buffer, proposed: Buffer, folder = base): Sides => ({
  path: "a.txt",
  base: file(base),
  proposed: file(proposed),
  folder: { content: file(folder), version: "v" },
  ignored: false,
});
const shownOf = (one: Sides) => proposedFile(one, { decided: {} });
const bytesIn = (content: Content | undefined): Buffer | undefined =>
  content?.kind === "file" ? content.bytes : undefined;

/** Lines that end with CR and LF, and that begin with bytes that are not UTF-8; some of them are others. */
const lines = (word: Buffer, changes: Readonly<Record<number, string>> = {}, count = 40): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, (_, index) =>
      Buffer.concat([word, Buffer.from(` ${changes[index + 1] ?? `line ${index + 1}`}\r\n`)]),
    ),
  );

describe.each<[string, Buffer, string]>([
  ["WINDOWS-1252", Buffer.from([0x80, 0x20, 0xe9, 0x74, 0xe9]), "€ été"],
  ["CP932", Buffer.from("8386815b8355815b88ea979782f093c782dd8d9e82de", "hex"), "ユーザー一覧を読み込む"],
  ["GB18030", Buffer.from([0xc4, 0xe3, 0xba, 0xc3, 0xd6, 0xd0, 0xce, 0xc4]), "你好中文"],
])("a text in %s", (name, word, shown) => {
  const base = lines(word);

  it("has places, shown in its encoding, and no other byte changes", () => {
    const one = sides(base, lines(word, { 3: "three", 30: "thirty" }));
    const { places, notes } = shownOf(one);
    expect(notes).toEqual([`not UTF-8, shown as ${name}`]);
    expect(places.map(({ added, removed }) => [added, removed])).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect(places[0]?.diff).toContain(`-${shown} line 3\n+${shown} three\n`);
    const result = applied(one, [1], false);
    expect(bytesIn(result?.folder)).toEqual(lines(word, { 30: "thirty" }));
    expect(bytesIn(result?.base)).toEqual(lines(word, { 30: "thirty" }));
    expect(bytesIn(applied(one, "all", false)?.folder)).toEqual(lines(word, { 3: "three", 30: "thirty" }));
  });

  it("is merged with what the folder has, or shows what is in the way", () => {
    const proposed = lines(word, { 3: "three" });
    const merged = applied(sides(base, proposed, lines(word, { 20: "twenty" })), "all", false);
    expect(bytesIn(merged?.folder)).toEqual(lines(word, { 3: "three", 20: "twenty" }));
    const plain = (changes: Readonly<Record<number, string>>): Buffer =>
      lines(Buffer.from("plain"), { 20: "before", ...changes });
    const grown = Buffer.concat([plain({}), word]);
    const three = applied(sides(plain({}), plain({ 3: "three" }), grown), "all", false);
    expect(bytesIn(three?.folder)).toEqual(Buffer.concat([plain({ 3: "three" }), word]));
    const opposed = sides(base, proposed, lines(word, { 3: "drei" }));
    expect(shownOf(opposed).places[0]?.conflict).toBe(`${shown} drei\r`);
    expect(applied(opposed, "all", false)).toBeUndefined();
    expect(bytesIn(applied(opposed, "all", true)?.folder)).toEqual(proposed);
  });

  it("may be all ASCII before or after, and has its lines shown when it is new or deleted", () => {
    const plain = lines(Buffer.from("plain"), {}, 2);
    const grown = Buffer.concat([plain, lines(word, {}, 1)]);
    expect(bytesIn(applied(sides(plain, grown), [0], false)?.folder)).toEqual(grown);
    expect(bytesIn(applied(sides(grown, plain), [0], false)?.folder)).toEqual(plain);
    const added = {
      ...sides(base, base),
      base: undefined,
      folder: { content: undefined, version: undefined },
    };
    expect(shownOf(added)).toMatchObject({ added: 40, notes: [`not UTF-8, shown as ${name}`] });
    expect(shownOf({ ...sides(base, base), proposed: undefined })).toMatchObject({ removed: 40 });
  });
});

describe("a text in UTF-16", () => {
  it.each(["le", "be"])("has places, and its byte order stays (%s)", (order) => {
    const encoded = (changes: Readonly<Record<number, string>> = {}): Buffer => {
      const bytes = Buffer.from(`\ufeff${lines(Buffer.from("潮位"), changes).toString()}`, "utf16le");
      return order === "le" ? bytes : bytes.swap16();
    };
    const one = sides(encoded(), encoded({ 3: "three", 30: "thirty" }), encoded({ 20: "twenty" }));
    const { places, notes } = shownOf(one);
    expect([places.length, notes]).toEqual([2, []]);
    expect(places[1]?.diff).toContain("-潮位 line 30\n+潮位 thirty");
    expect(bytesIn(applied(one, [1], false)?.folder)).toEqual(encoded({ 20: "twenty", 30: "thirty" }));
    expect(bytesIn(applied(one, [1], false)?.base)).toEqual(encoded({ 30: "thirty" }));
  });
});

describe("a text whose encoding changes", () => {
  const word = Buffer.from([0xe9, 0x74, 0xe9]);
  const [western, utf8] = [lines(word), lines(Buffer.from("été"))];

  it("is applied whole, and said to change it", () => {
    const one = sides(western, utf8);
    expect(shownOf(one)).toMatchObject({ notes: ["its encoding changes"], places: [{ added: 40 }] });
    expect(shownOf(one).places[0]?.diff).toContain("\n-été line 40\n+été line 1\n");
    expect(bytesIn(applied(one, [0], false)?.folder)).toEqual(utf8);
  });

  it("is in the way of a change, if the folder changed it", () => {
    const one = sides(western, lines(word, { 3: "three" }), utf8);
    expect(shownOf(one).conflict).toBe("The file was changed in the folder since the copy was made.");
    expect(applied(one, "all", false)).toBeUndefined();
  });

  it("is binary with a byte order mark that does not fit, or a NUL", () => {
    for (const bytes of [Buffer.from([0xff, 0xfe, 0x41]), Buffer.from([0xe9, 0, 0x0a])])
      expect(shownOf(sides(western, bytes))).toMatchObject({
        places: [],
        notes: ["not a text, 3 bytes"],
      });
  });
});
