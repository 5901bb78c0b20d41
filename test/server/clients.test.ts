/** Results for each client of the table: what is built for it, and that its model sees all that it needs. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import { CLIENT_NAMES, findClient } from "../../src/cli/clients/catalogue.ts";
import type { RunRequest, RunView } from "../../src/runs/run.ts";
import type { Outcome } from "../../src/server/calls/outcome.ts";
import { toResult } from "../../src/server/calls/results.ts";
import {
  CLIENTS,
  type McpClient,
  type ResultForm,
  knownClient,
  resultForm,
} from "../../src/server/calls/known-clients.ts";
import { attempts } from "../support/effort.ts";
import { CLIENT_KINDS } from "../support/clients.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { databaseFile, openServer } from "../runs/support.ts";
import { NO_WORK, aQuestion, aView, anApproval, connect, depsFor } from "./support.ts";

const WAYS = { forms: false, model: true, ttlMs: null };

const FORMS: Readonly<Record<string, Omit<ResultForm, "room"> & { page: "short" | "long" }>> = {
  "Claude Code": { structure: false, page: "short", namesFailure: false },
  Codex: { structure: false, page: "short", namesFailure: true },
  "GitHub Copilot CLI": { structure: false, page: "short", namesFailure: false },
  "Qwen Code": { structure: false, page: "short", namesFailure: false },
  "Gemini CLI": { structure: false, page: "short", namesFailure: false },
  opencode: { structure: false, page: "short", namesFailure: false },
  "AI SDK": { structure: true, page: "long", namesFailure: true },
  "LangChain MCP adapters": { structure: false, page: "long", namesFailure: false },
  mcporter: { structure: true, page: "long", namesFailure: false },
};
/** Clients that were not measured, and those that nobody knows. */
const SAFE = { structure: true, page: "short", namesFailure: false };

test.each([...CLIENTS, undefined])("the form of results for $title", (client) => {
  const { room, ...form } = resultForm(client);
  const page = room < 10_000 ? "short" : "long";
  expect({ ...form, page }).toEqual(FORMS[client?.title ?? ""] ?? SAFE);
  const outcome: Outcome = { kind: "run", view: aView({ run: { status: "failed" } }) };
  const result = toResult(outcome, { ...WAYS, form: { room, ...form } });
  expect(result).toHaveProperty("isError", true);
  expect("structuredContent" in result).toBe(form.structure);
  expect(JSON.stringify(result)).toMatch(/Run run_1 failed/);
  // Adapters make broken requests of links.
  expect(JSON.stringify(result)).not.toContain("resource_link");
  const refusal = toResult({ kind: "refused", message: "No." }, { ...WAYS, form: { room, ...form } });
  expect(refusal).toEqual({
    content: [{ type: "text", text: form.namesFailure ? "Error: No." : "No." }],
    isError: true,
  });
});

const text = z.string().min(1);
const size = z.int().positive().optional();
const TABLE = z.array(
  z.strictObject({
    title: text,
    names: z.array(text),
    install: text.optional(),
    reader: z.enum(["model", "program"]),
    measured: z.strictObject({ version: text, date: z.iso.date(), how: text }).optional(),
    sees: z.enum(["text", "structure", "both"]).optional(),
    marksFailure: z.boolean().optional(),
    cuts: z.strictObject({ characters: size, bytes: size, lines: size, shows: text }).optional(),
    links: z.enum(["shown", "dropped", "breaks"]).optional(),
    waits: z
      .strictObject({
        extendsOnProgress: z.literal(true).optional(),
        pausesForForms: z.literal(true).optional(),
        source: text,
      })
      .optional(),
    adds: z.array(text).optional(),
    notes: z.array(text).optional(),
  }),
);

test("each row is complete and has a source, each name one row, and install the same names", () => {
  expect(TABLE.parse(CLIENTS)).toEqual(CLIENTS);
  for (const { sees, measured, cuts } of CLIENTS)
    if (sees !== undefined || cuts !== undefined) expect(measured).toBeDefined();
  const names = CLIENTS.flatMap((client) => client.names);
  expect(new Set(names).size).toBe(names.length);
  expect(knownClient("qwen-cli-mcp-client-deepagent")?.title).toBe("Qwen Code");
  expect(knownClient("qwen")).toBeUndefined();
  const place = { host: { cwd: "/", home: "/home/me", platform: "linux" as const, env: {} } };
  const installed = CLIENT_NAMES.map((name) => [name, findClient(name, place)?.title]);
  const listed = CLIENTS.flatMap(({ install, title }) => (install === undefined ? [] : [[install, title]]));
  expect(listed.toSorted()).toEqual(installed.toSorted());
});

/** What the model of a client sees of a result, and the parts that it loses. */
function seen(reader: McpClient, result: ReturnType<typeof toResult>): string {
  const { content, structuredContent } = result as {
    content: { text?: string }[];
    structuredContent?: object;
  };
  const text = content.map((block) => block.text ?? "").join("\n");
  const json = structuredContent === undefined ? "" : JSON.stringify(structuredContent);
  if (json === "" || reader.sees === "text") return text;
  return reader.sees === "both" ? `${text}\n\n${json}` : json;
}

function expectWhole(reader: McpClient, text: string): void {
  const { characters = Infinity, bytes = Infinity, lines = Infinity } = reader.cuts ?? {};
  expect(text.length).toBeLessThanOrEqual(characters);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytes);
  expect(text.split("\n").length).toBeLessThanOrEqual(lines);
}

/** Each client, and an unknown one that is like each client. */
const READERS = CLIENTS.filter(({ sees }) => sees !== undefined).flatMap((reader) => [
  { reader, form: resultForm(reader) },
  { reader, form: resultForm(undefined) },
]);

const texts = (limit: number) =>
  fc
    .tuple(
      fc.constantFrom("word ", "漢字", "\n", '"\\', "😀", "\u0001", "a line of text\n", "<b>&*_[x](y)", "\t"),
      fc.integer({ min: 0, max: limit }),
      fc.string({ maxLength: 20 }),
    )
    .map(([unit, length, end]) => `${unit.repeat(Math.ceil(length / unit.length))}${end}`);

const requests: fc.Arbitrary<RunRequest[]> = fc.array(
  fc.oneof(
    texts(9000).map((detail) => anApproval({ preview: { kind: "command", summary: detail, detail } })),
    texts(9000).map((text) => aQuestion({ question: { kind: "ask", text, fields: [] } })),
  ),
  { maxLength: 30 },
);

const views: fc.Arbitrary<RunView> = fc
  .record({
    status: fc.constantFrom("working", "input_required", "completed", "failed", "cancelled"),
    answer: fc.option(texts(80_000), { nil: undefined }),
    failure: texts(5000),
    asked: requests,
    many: fc.array(texts(900), { maxLength: 120 }),
    structured: fc.option(texts(9000), { nil: undefined }),
  })
  .map(({ status, answer, failure, asked, many, structured }) =>
    aView({
      run: {
        status,
        ...(answer === undefined || status === "working" ? {} : { answer }),
        ...(status === "failed" ? { failure: { reason: "internal", message: failure } } : {}),
        ...(structured === undefined ? {} : { structured }),
        todos: many.map((content) => ({ content, status: "pending" })),
      },
      activity: failure,
      requests:
        status === "input_required" ? asked.map((one, index) => ({ ...one, id: `int:${index}` })) : [],
      filesChanged: many,
      subagents: many.slice(0, 60).map((description) => ({
        agent: [{ callId: "c", name: "researcher" }],
        name: "researcher",
        description,
        status: "completed",
        step: description,
        ...NO_WORK,
      })),
    }),
  );

test("the model of every client sees a report whole, and how to read on first and last", () => {
  fc.assert(
    fc.property(views, fc.constantFrom(...READERS), (view, { reader, form }) => {
      const { answer = "" } = view.run;
      let read = "";
      for (let offset = 0, pages = 0; ; pages += 1) {
        const result = toResult({ kind: "run", view, offset }, { ...WAYS, form });
        const text = seen(reader, result);
        expectWhole(reader, text);
        expect(text).toContain("run_1");
        const [first, last] = [text.slice(0, 400), text.slice(-300)].map((part) =>
          /with run_id run_1 and offset (\d+)|"run_id":"run_1","offset":(\d+)/.exec(part)?.slice(1),
        );
        const next = Number(last?.find(Boolean) ?? -1);
        if (form.structure) read += (result.structuredContent as { answer?: string }).answer ?? "";
        if (next < 0) break;
        expect(Number(first?.find(Boolean) ?? -1)).toBe(next);
        expect(next).toBeGreaterThan(offset);
        expect(text).toContain(form.structure ? "" : answer.slice(offset, next));
        offset = next;
        expect(pages).toBeLessThan(400);
      }
      if (form.structure) expect(read).toBe(answer);
    }),
    { ...attempts(160), endOnFailure: true },
  );
});

const LONG = Array.from({ length: 900 }, (_, index) => `${index} ${"x".repeat(60)}`).join("\n");
const stored = (content: string) => {
  const at = new Date(0).toISOString();
  return { content, mimeType: "text/plain", created_at: at, modified_at: at };
};
const FILES = {
  "/memories/short-lines.md": stored("\n".repeat(5000)),
  "/memories/wide.md": stored("漢字\n".repeat(5000)),
  "/memories/quotes.md": stored('"\\"\n'.repeat(5000)),
};

/** A server whose agent answers at length, and a client of this name. */
async function longAnswers(kind: (typeof CLIENT_KINDS)[number], name: string) {
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: LONG })) },
    {
      tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles(FILES) })),
      searchMemories: () => {
        const hit = (index: number) => ({
          path: `/memories/${index}.md`,
          snippet: "漢".repeat(3000),
          score: 1,
        });
        return Promise.resolve({ hits: Array.from({ length: 50 }, (_, index) => hit(index)) });
      },
    },
  );
  return connect(depsFor(service), { kind, name });
}

test.each(
  CLIENT_KINDS.flatMap((kind) => ["codex-mcp-client", "someone"].map((name) => [kind, name] as const)),
)("%s as %s: an answer, files and memories come in pages that suit the client", async (kind, name) => {
  const client = await longAnswers(kind, name);
  const isText = name === "codex-mcp-client";
  const reader = CLIENTS.find(({ title }) => title === "Codex");
  for (const tool of await client.listTools()) expect("outputSchema" in tool).toBe(!isText);
  let page = await client.call("run_deep_agent", { task: "answer at length" });
  const id = /run_[\w-]{20,}/.exec(page.text)?.[0];
  let read = "";
  for (let offset = 0; ;) {
    const { text, structured, raw } = page;
    expect("structuredContent" in (raw as object)).toBe(!isText);
    if (reader) expectWhole(reader, isText ? text : JSON.stringify(structured));
    const how = `To read on, call check_deep_agent with run_id ${id} and offset `;
    const next = Number(text.split(how)[1]?.split(".")[0] ?? LONG.length);
    expect(text).toContain(LONG.slice(offset, next).trim());
    read += isText ? LONG.slice(offset, next) : String(structured["answer"]);
    if (next === LONG.length) break;
    expect(text.startsWith("Part of the answer: ")).toBe(true);
    expect(text.endsWith(`${how}${next}.`)).toBe(true);
    offset = next;
    page = await client.call("check_deep_agent", { run_id: id, offset });
  }
  expect(read).toBe(LONG);
  for (const path of Object.keys(FILES)) {
    const { text, structured } = await client.call("read_agent_file", { path });
    if (reader) expectWhole(reader, isText ? text : JSON.stringify(structured));
    expect(text.split("\n").length).toBeLessThan(2000);
    expect(text).toMatch(/^\[lines 1-\d+ of \d+; continue with offset=\d+\]/);
  }
  const found = await client.call("search_memories", { query: "all", limit: 50 });
  if (reader) expectWhole(reader, isText ? found.text : JSON.stringify(found.structured));
  expect(found.text).toMatch(/\d+ more matched and are not shown/);
});
