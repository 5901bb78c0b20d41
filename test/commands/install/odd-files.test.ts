import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { findClient, type FileClient } from "../../../src/cli/clients/catalogue.ts";
import { differOnlyInForm, hasEntry, withEntry, withoutEntry } from "../../../src/cli/clients/entries.ts";
import { parseJson } from "../../../src/config/load.ts";

const host = { home: "/home/me", platform: "linux", env: {}, cwd: "/home/me" } as const;
function clientOf(name: string): FileClient {
  const client = findClient(name, { host });
  if (client?.kind !== "file") throw new Error(`${name} has no file`);
  return client;
}

const QUESTION = { type: "promptString", id: "deepagent-a-key", description: "A", password: true } as const;
/** Only clients that ask for keys have questions in their files. */
const entryOf = ({ asksForKeys }: FileClient) => ({
  command: "node",
  args: ["x.js", "--model", "offline"],
  env: { A_KEY: "${input:deepagent-a-key}" },
  inputs: asksForKeys ? [QUESTION] : [],
});

function installed(text: string, client: FileClient): string {
  const result = withEntry(text, client, entryOf(client));
  if (!result.ok) throw new Error(result.problem);
  expect(hasEntry(result.text, client)).toBe(true);
  return result.text;
}
function uninstalled(text: string, client: FileClient, before?: string): string {
  const result = withoutEntry(text, client, before);
  if (!result.ok) throw new Error(result.problem);
  return result.text;
}

/** Where it was seen, or why; the client; a file that has its block of servers already. */
const ODD: readonly (readonly [source: string, client: string, text: string])[] = [
  ["an empty block in two lines", "cursor", '{\n  "mcpServers": {\n  }\n}\n'],
  ["one line", "cursor", '{ "mcpServers": { "x": { "url": "http://127.0.0.1:1/mcp" } } }'],
  ["one line without spaces", "cursor", '{"mcpServers":{"x":{"command":"y"}},"z":[1,2]}'],
  ["one line with an empty block", "cursor", '{"mcpServers":{}}'],
  ["one line with spaces in the block", "cursor", '{ "mcpServers": { } }\n'],
  ["one line with commas at the ends", "cursor", '{"mcpServers":{"x":{},},}'],
  ["a block in one line", "cursor", '{\n  "a": [1,   2],\n  "mcpServers": { "x": 1, "y":  2 }\n}\n'],
  ["tabs", "cursor", '{\n\t"mcpServers": {\n\t\t"a": { "url": "https://a" }\n\t}\n}\n'],
  ["four spaces, no line break at the end", "cursor", '{\n    "mcpServers": {\n        "a": {}\n    }\n}'],
  ["vercel/vercel#393", "cursor", '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'],
  ["a comment behind the last server", "cursor", '{\n  "mcpServers": {\n    "a": {} // keep\n  }\n}\n'],
  [
    "a comment below the last server",
    "cursor",
    '{\n  "mcpServers": {\n    "a": {}\n    // "b": {}\n  }\n}\n',
  ],
  ["a comment between braces", "zed", '{\n  "context_servers": {\n    // none yet\n  }\n}\n'],
  [
    "commas at the ends",
    "zed",
    '// mine\n{\n  "context_servers": {\n    "a": {"command":"x"}, // keep\n  },\n}\n',
  ],
  ["braces on lines of their own", "cursor", '{"mcpServers":\n{\n"a":{}\n}\n}'],
  [
    "questions",
    "vscode",
    '{\n\t"inputs": [\n\t\t{ "id": "mine" } // my own\n\t],\n\t"servers": {\n\t\t"a": {}\n\t}\n}\n',
  ],
  ["questions in one line", "vscode", '{"inputs":[],"servers":{}}'],
  ["a block inside a block", "opencode", '{\n  "mcp": {\n    "servers": {\n      "a": {}\n    }\n  }\n}\n'],
  [
    "YAML",
    "goose",
    "# mine\nextensions:\n    memory: # builtin\n        enabled: true\n\nGOOSE_MODEL: x   # keep\n",
  ],
  ["YAML with an empty block", "goose", "extensions: {}\nGOOSE_MODEL: 'x'\n"],
  ["YAML with the line ends of Windows", "goose", "extensions:\r\n  a:\r\n    enabled: false\r\nb: 1\r\n"],
];

it.each(ODD)("%s: %s has its bytes again, also without a copy of %j", (_source, name, text) => {
  const client = clientOf(name);
  const withServer = installed(text, client);
  expect(uninstalled(withServer, client)).toBe(text);
  expect(uninstalled(withServer, client, text)).toBe(text);
  expect(withServer.trim().includes("\n")).toBe(text.trim().includes("\n"));
});

it.each([
  [
    "plmbr/notebook-intelligence#433",
    "cursor",
    '{\n  "a": 1,\n  "mcpServers": null\n}\n',
    { a: 1, mcpServers: {} },
  ],
  ["a block that is null in one line", "zed", '{"context_servers":null}', { context_servers: {} }],
  ["questions that are null", "vscode", '{ "servers": null, "inputs": null }', { servers: {}, inputs: [] }],
  ["a file of comments", "zed", "// Zed settings\r\n/* {\n*/\n", { context_servers: {} }],
])("%s: %s gets the server, and keeps the rest", (_source, name, text, rest) => {
  const client = clientOf(name);
  const withServer = installed(text, client);
  const parsed = parseJson(uninstalled(withServer, client));
  expect(parsed.ok && parsed.value).toEqual(rest);
  expect(withServer).toContain(text.startsWith("//") ? text.trimEnd() : "");
});

describe("blocks that install made", () => {
  it.each([
    [
      "cursor",
      '{\n  "a": 1 // mine\n}\n',
      '{\n  "a": 1 // mine\n}\n',
      '{\n  "a": 1, // mine\n  "mcpServers": {\n  }\n}\n',
    ],
    ["cursor", '{"a":1}', '{"a":1}', '{"a":1, "mcpServers": { }}'],
    ["vscode", "{\n}\n", "{\n}\n", '{\n  "servers": {\n  },\n  "inputs": [\n  ]\n}\n'],
    ["opencode", '{\n  "mcp": {\n  }\n}\n', '{\n  "mcp": {\n  }\n}\n', '{\n  "mcp": {\n  }\n}\n'],
    ["goose", "a: 1\n", "a: 1\n", "a: 1\nextensions: {}\n"],
  ])("of %s go with the server; without the file %j they stay", (name, before, known, unknown) => {
    const client = clientOf(name);
    const text = installed(before, client);
    expect(uninstalled(text, client, before)).toBe(known);
    expect(uninstalled(text, client)).toBe(unknown);
  });

  it("stay if somebody put something into them", () => {
    const client = clientOf("cursor");
    const text = installed("{\n}\n", client).replace('"mcpServers": {', '"mcpServers": {\n    "mine": {},');
    expect(JSON.parse(uninstalled(text, client, "{\n}\n"))).toEqual({ mcpServers: { mine: {} } });
  });
});

/** White space, commas and comments as people put them between the parts of a file. */
const space = fc.constantFrom(
  "",
  " ",
  "\n",
  "\n  ",
  "\n\t",
  "\r\n    ",
  " // a\n",
  " /* b */ ",
  "\n  // c\n  ",
);
const scalar = fc.constantFrom("1", '"x"', "{}", "[]", '{ "url": "u" }', '{"a":\n1}', "[ 1,\n2 ]");
function object(names: readonly string[], member: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const members = names.map((name) =>
    fc.tuple(space, space, member, space).map(([a, b, value, c]) => `${a}"${name}":${b}${value}${c}`),
  );
  return fc
    .tuple(fc.tuple(...members), space, fc.boolean())
    .map(([parts, end, hasComma]) => `{${parts.join(",")}${hasComma && parts.length > 0 ? "," : ""}${end}}`);
}
const servers = fc.constantFrom([], ["a"], ["a", "b"]).chain((names) => object(names, scalar));
const files = fc
  .tuple(servers, servers, space, space)
  .chain(([one, two, first, last]) =>
    object(["mcpServers"], fc.constant(one)).chain((alone) =>
      fc.constantFrom(alone, `{"z":${two},${alone.slice(1)}`).map((text) => first + text + last),
    ),
  );

test("a file of any form has its values and comments again, and differs in white space only", () => {
  const client = clientOf("cursor");
  fc.assert(
    fc.property(files, (text) => {
      const withServer = installed(text, client);
      const after = uninstalled(withServer, client);
      const [now, then] = [parseJson(after), parseJson(text)];
      expect(now.ok && now.value).toEqual(then.ok && then.value);
      for (const comment of ["// a", "/* b */", "// c"])
        expect(after.split(comment).length).toBe(text.split(comment).length);
      // So its copy is put back.
      expect(differOnlyInForm(text, after)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{ "a": "b c" }', '{ "a": "bc" }'],
  ['{ "a": "{}" }', '{ "a": "" }'],
  ["a: b c\n", "a: bc\n"],
  ["{}", '{ "a": 1 }'],
])("%j and %j differ in more than their form", (one, other) => {
  expect(differOnlyInForm(one, other)).toBe(false);
});

test.each([
  ["", "{\n}\n"],
  ['{"a":{}}', '{\n  "a": {\n  }\n}\n'],
  ["extensions:\na: 1\n", "extensions: {}\na: 1\n"],
])("%j and %j differ in their form only", (one, other) => {
  expect(differOnlyInForm(one, other)).toBe(true);
});
