/** Waiting is never shown as working: on the page, in the terminal, in the transcript and in progress. */
import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { colorsFor } from "../../../src/cli/terminal/text.ts";
import { renderTree } from "../../../src/cli/terminal/tree.ts";
import { activityOf } from "../../../src/runs/events.ts";
import type { RunView } from "../../../src/runs/run.ts";
import { runDocument } from "../../../src/server/views/run-document.ts";
import { transcriptOf } from "../../../src/server/views/transcript.ts";
import type { Question } from "../../../src/tools/request.ts";
import { type ToolSpec, defineTool } from "../../../src/tools/tool.ts";
import { databaseFile, follow, mine, noteTool, openServer, startRun } from "../../runs/support.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { type ScriptedToolCall, scriptedModel } from "../../support/scripted-model.ts";
import { linkTo, openPages, visit } from "./support.ts";

/** The agents and their steps as text, without the legend above them. */
const textOf = (html: string): string =>
  html
    .slice(html.indexOf('<ol class="tl-body"'))
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

const terminal = (view: RunView): string =>
  renderTree(runDocument(view), { colors: colorsFor({}, {}), width: 120, frame: 0, now: 0 }).join("\n");

const seat: Question = {
  kind: "elicitation",
  server: "shop",
  message: "Which seat?",
  mode: "form",
  fields: [{ name: "seat", type: "text" }],
};

const asking = (name: string, handle: ToolSpec["handle"]) =>
  defineTool({ name, kind: "execute", description: name, schema: z.strictObject({}), handle });

/** Tools that ask, each in its own way. */
const TOOLS = [
  tool(() => String(interrupt("Which seat?")), { name: "choose", description: "d", schema: z.object({}) }),
  asking("shop__buy", async (_args, { ask }) => ({ content: JSON.stringify(await ask?.(seat)) })),
  asking("shop__hold", async (_args, { hold }) => ({ content: JSON.stringify(await hold?.(seat)) })),
];
const call = (name: string, args: Record<string, unknown> = {}): ScriptedToolCall => ({ name, args });
const program = call("run_program", { source: "return await tools.shop__buy({})" });

const KINDS: [kind: string, ScriptedToolCall, words: string][] = [
  ["interrupt of a tool", call("choose"), "asked for a tool"],
  ["ask_user", call("ask_user", { question: "Which seat?" }), "asked"],
  ["question of a server", call("shop__buy"), "MCP server shop asks"],
  ["question during a call", call("shop__hold"), "MCP server shop asks"],
];

const task = (description: string) => call("task", { description, subagent_type: "general-purpose" });

/** A run whose one subagent makes these calls and has asked; a `note` works until the end of the test. */
async function waiting(calls: ScriptedToolCall[]) {
  const end = deferred();
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.type === "tool") return { text: "Done." };
    const [first] = messages.filter(({ type }) => type === "human");
    return { toolCalls: first?.text === "Part" ? calls : [task("Part")] };
  });
  const tools = [...TOOLS, noteTool([], () => end.promise)];
  const params = { model, tools, askUser: true, programs: true };
  const { service } = openServer(databaseFile(), params);
  const { id } = await startRun(service, "Buy it");
  const look = async () => (await mine(service).read.view(id)) ?? expect.fail("the run is gone");
  await expect
    .poll(
      async () => {
        const view = await look();
        return view.requests.length > 0 && (view.subagents[0]?.openCalls?.length ?? 0) >= calls.length;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  const view = await look();
  const visitor = await visit(linkTo(await openPages(service), id, "decide"));
  const read = async (path: string) => (await visitor.get(path)).body;
  const body = await read(`/runs/${id}/work`);
  const [, link = ""] = /<li id="agent-[^"]+">\s*<a class="tl-row" data-row href="([^"]+)"/.exec(body) ?? [];
  const steps = textOf(await read(link.replaceAll("&amp;", "&")));
  const events = await follow(service, id, ({ seq }) => seq === view.run.lastSeq);
  return { view, events, page: textOf(body), steps, end };
}

describe.each(KINDS)("an agent that waits by %s", (_kind, asks, words) => {
  test("is not at work, nor is the one that started it", async () => {
    const { view, events, page, steps } = await waiting([asks]);
    expect(page).toContain("Waiting for its agents: Main agent");
    expect(page).toContain("Asks: Part");
    expect(page).toMatch(/Subagent: Part \d\d:\d\d waiting/);
    expect(steps).toMatch(/ waiting /);
    expect(page + steps).not.toMatch(/At work: | at work /);
    expect(terminal(view)).toContain(`? Part  ${words}: Which seat?`);
    const asked = events.find(({ kind }) => kind === "question_asked");
    expect(asked && activityOf(asked)).toBe(`Part: ${words}: Which seat?`);
    const server = words.replace("shop", "` shop `");
    expect(transcriptOf(view, events)).toContain(`${server}:\n\n> Which seat?`);
  });

  test("is at work as long as another of its calls is", async () => {
    const { view, page, steps, end } = await waiting([asks, call("note", { text: "x" })]);
    expect(page).toContain("At work: Main agent");
    expect(steps).toMatch(/ waiting /);
    expect(steps).toMatch(/ at work /);
    expect(runDocument(view).agents).toEqual([expect.not.objectContaining({ waiting: true })]);
    end.resolve();
  });
});

test("a program waits with its calls", async () => {
  const { page, steps } = await waiting([program]);
  expect(page).toContain("Waiting for its agents: Main agent");
  expect(steps.match(/ waiting /g)).toHaveLength(2);
  expect(page + steps).not.toMatch(/At work: | at work /);
});
