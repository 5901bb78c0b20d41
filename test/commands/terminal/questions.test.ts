// @module-tag python3
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Asker } from "../../../src/cli/terminal/asker.ts";
import { openQuestion } from "../../../src/cli/terminal/ask-question.ts";
import { colorsFor, displayWidth } from "../../../src/cli/terminal/text.ts";
import { askingForReview, writeFiles } from "../../runs/proposing.ts";
import { mine } from "../../runs/support.ts";
import { type WireReply } from "../../support/wire-server.ts";
import { filesIn } from "../../support/files-in.ts";
import { play } from "./scene.ts";

const asks = (args: object): WireReply => ({ toolCalls: [{ name: "ask_user", args: { ...args } }] });

const HULL = {
  question: `Which colours? 検潮所 👩‍👩‍👧 ${"a long question ".repeat(6)}\n\u202eand <b>more</b>`,
  wait_minutes: 60,
  fields: [
    { name: "hull", title: "Hull 🚢", options: ["Red", "Signal blue"] },
    { name: "trim", options: ["White", "検潮所"], many: true, other: true },
    { name: "coats", type: "number" },
    { name: "name", title: "Paint the name?", type: "yes_no" },
    { name: "notes", optional: true },
  ],
};

test.each([40, 100])("a question is answered field by field, on %i columns", async (columns) => {
  const terminal = await play({
    columns,
    rows: 60,
    args: ["run", "Paint the boat"],
    main: [asks(HULL), { text: "Painted." }],
  });
  const first = await terminal.until(/Question 1 of 1 waiting[^]*The main agent asks:[^]*Number ›/);
  for (const line of first.split("\n")) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  expect(first).toContain("\\u202eand <b>more</b>");
  expect(first.replace(/\s+/g, " ")).toMatch(/no answer by \d{4}-.* Type \/decline/);
  terminal.type("3\r");
  await terminal.until(/'Hull 🚢' must be one of: Red,\sSignal\sblue/);
  terminal.type("2\r");
  await terminal.until(/› Signal blue\n[^]*trim[^]*own\s+answer ›/);
  terminal.type("1, gold 金\r");
  await terminal.until(/› White, gold 金\n[^]*coats[^]*A number ›/);
  terminal.type("two\r");
  await terminal.until(/'coats' must be a number/);
  terminal.type("2\r");
  await terminal.until(/Paint the name\?[^]*y or n ›/);
  terminal.type("y\r");
  await terminal.until(/notes \(optional: Enter skips\)[^]*Answer ›/);
  terminal.type("\r");
  await terminal.until(/› answered[^]*Painted\./);
  const [, second] = terminal.model.requests;
  expect(JSON.stringify(second)).toContain(
    JSON.stringify(
      JSON.stringify({ hull: "Signal blue", trim: ["White", "gold 金"], coats: 2, name: true }),
    ).slice(1, -1),
  );
  await terminal.until(/Next task/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test("a proposed change asks for files and a branch only where the decision needs them", async () => {
  const { service, question } = await askingForReview({
    before: { "a.txt": "a\n", "検潮所.md": "b\n" },
    work: (copy) => writeFiles(copy, { "a.txt": "A\n", "検潮所.md": "B\n" }),
    isRepository: true,
  });
  const prompts = async (...typed: string[]) => {
    const shown: string[] = [];
    const asker: Asker = {
      colors: colorsFor({}, {}),
      size: () => ({ columns: 80, rows: 40 }),
      print: (text) => shown.push(text),
      key: async () => "",
      line: async () => typed.shift() ?? "",
      secret: async () => "",
      edit: async () => undefined,
    };
    const { signal } = new AbortController();
    const answer = await openQuestion(question, "1 of 1", { runs: mine(service), asker }, signal);
    const given = await answer();
    return { given, text: shown.join("\n") };
  };
  const none = await prompts("4");
  expect(none.given).toMatchObject({ type: "review", choice: { apply: {} } });
  expect(none.text).not.toMatch(/^(?:Selected files|Name of the branch)/m);
  expect(none.text).toMatch(/^Message to the agent/m);
  const some = await prompts("2", "1");
  expect(some.given).toMatchObject({ choice: { apply: { "a.txt": "all" } } });
  expect(some.text).toMatch(/^Selected files/m);
  expect(some.text).not.toMatch(/^Name of the branch/m);
  const branch = await prompts("3", "agent/tides");
  expect(branch.text).toMatch(/^Name of the branch/m);
  expect(branch.text).not.toMatch(/^Selected files/m);
  expect(branch.given).toMatchObject({ choice: { branch: "agent/tides" } });
});

test("a person declines with a word to the agent, also with --yes", async () => {
  const terminal = await play({
    columns: 80,
    rows: 40,
    args: ["run", "--yes", "Paint the boat"],
    main: [asks({ question: "Which colour?" }), { text: "Painted white." }],
  });
  await terminal.until(/Which colour\?[^]*Answer ›/);
  terminal.type("\r");
  await terminal.until(/'answer' is missing/);
  terminal.type("/decline you choose\r");
  await terminal.until(/› declined[^]*Painted white\./);
  expect(JSON.stringify(terminal.model.requests.at(-1))).toContain("They said: you choose");
  expect(await terminal.exited).toBe(0);
});

test("an answer that comes from elsewhere ends the asking", async () => {
  const terminal = await play({
    columns: 80,
    rows: 40,
    args: ["run", "Paint the boat"],
    main: [asks({ question: "Which colour?" }), { text: "Painted." }],
  });
  await terminal.until(/Which colour\?[^]*Answer ›/);
  terminal.type("gre");
  const answered = await terminal.home.bin("runs", "answer", "last", "--value", "blue");
  expect(answered.stdout).toMatch(/ answered: Which colour\?/);
  await terminal.until(/› answered elsewhere[^]*Painted\.[^]*Next task/);
  expect(JSON.stringify(terminal.model.requests.at(-1))).toContain("The person answered: blue");
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});

test("in a pipe the run stops and says how to answer", async () => {
  const terminal = await play({
    columns: 100,
    rows: 40,
    shell: '"$@" | cat',
    args: ["run", "Paint the boat"],
    main: [asks(HULL)],
  });
  await terminal.until(/is waiting for an answer\. Answer here[^]*runs answer run_/);
  await terminal.exited;
  const shown = await terminal.home.bin("runs", "show", "last");
  expect(shown.stdout).toMatch(
    /\? Question \S+\nThe main agent asks:[^]*coats: a number[^]*notes: a text \(optional\)/,
  );
  const none = await terminal.home.bin("runs", "answer", "last");
  expect(none.code).toBe(2);
  expect(none.stderr).toContain("use --value TEXT, --field NAME=VALUE, --opened or --decline");
  const bad = ["--field", "hull=Green", "--field", "coats=2"];
  const wrong = await terminal.home.bin("runs", "answer", "last", ...bad);
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain("'Hull 🚢' must be one of: Red, Signal blue.");
  expect((await terminal.home.bin("runs", "answer", "last", "--value", "x")).stderr).toContain(
    "--field hull=VALUE",
  );
  expect((await terminal.home.bin("runs", "answer", "last", "--approve")).stderr).toContain(
    "Only questions are open",
  );
  const fields = ["hull=Red", "trim=White", "trim=gold", "coats=2", "name=no"].flatMap((field) => [
    "--field",
    field,
  ]);
  const right = await terminal.home.bin("runs", "answer", "last", ...fields);
  expect(right.stdout).toMatch(/ answered: Which colours\?[^]*--resume run_/);
  expect(right.code).toBe(0);
  expect((await terminal.home.bin("runs", "show", "last")).stdout).toContain(
    "answered (terminal) Which colours?",
  );
  const twice = await terminal.home.bin("runs", "answer", "last", "--decline");
  expect(twice.stderr).toContain("has nothing waiting for approval or an answer");
});

/** Asks for a seat, and answers with the person's answer. */
const AIRLINE = `
  const out = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  const seat = { type: "string", enum: ["w", "a"], enumNames: ["Window", "Aisle"], default: "a", examples: ["w"] };
  const requestedSchema = { type: "object", properties: { seat, bags: { type: "integer", default: 2 } }, required: ["seat"] };
  let call;
  const answer = ({ id, method, result }) => {
    if (method === "initialize") return out({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } } });
    if (method === "tools/list") return out({ id, result: { tools: [{ name: "book", inputSchema: { type: "object" } }] } });
    if (id === "q") return out({ id: call, result: { content: [{ type: "text", text: JSON.stringify(result.content) }] } });
    if (method !== "tools/call") return id === undefined ? undefined : out({ id, error: { code: -32601, message: "?" } });
    call = id;
    out({ id: "q", method: "elicitation/create", params: { message: "Which seat?", requestedSchema } });
  };
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));
`;

test("Enter takes the value that another server suggests", async () => {
  const config = join(filesIn(), "config.json");
  const airline = { command: process.execPath, args: ["-e", AIRLINE], approve: "none" };
  writeFileSync(config, JSON.stringify({ mcpServers: { airline } }));
  const terminal = await play({
    columns: 100,
    rows: 40,
    args: ["run", "Fly"],
    main: [{ toolCalls: [{ name: "airline__book", args: {} }] }, { text: "Booked." }],
    env: { DEEPAGENT_CONFIG: config },
  });
  const shown = await terminal.until(/Number ›/);
  expect(shown).toMatch(/seat \(Enter: a\)\s+examples: w\s+1 {2}Window\s+2 {2}Aisle/);
  terminal.type("\r");
  await terminal.until(/bags \(Enter: 2\)[^]*number ›/);
  terminal.type("\r");
  await terminal.until(/Booked\./);
  expect(JSON.stringify(terminal.model.requests.at(-1))).toContain(String.raw`{\"seat\":\"a\",\"bags\":2}`);
  await terminal.until(/Next task/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
});
