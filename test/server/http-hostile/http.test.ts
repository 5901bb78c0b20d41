import { expect, test } from "vitest";
import { APPROVE, person, runIdOf, untilStatus, writeFile } from "../../e2e/support.ts";
import { play } from "../../support/harness-brain.ts";
import { send } from "../../support/clients-raw.ts";
import { IS_LONG } from "../../support/effort.ts";
import { entry, openGuarded, withTokens } from "../auth/support.ts";
import { answerTo, EXPECTED, HOSTILE_KINDS, hostileMessages, usedMemory, type Hostile } from "./messages.ts";

const COUNT = IS_LONG ? 1500 : 500;
const IN_FLIGHT = 16;
/** MiB that may be in use more after thousands of messages than after the first ones. */
const GROWTH = 32;

const think = play({
  "Change a file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "changed" }],
});

/** Header values are ASCII; everything else goes in as base64. */
const headerValue = (text: string): string =>
  /^[\x21-\x7e]*$/.test(text) ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;

test(`${COUNT} hostile messages over HTTP are refused`, { tags: "long", timeout: 600_000 }, async () => {
  const server = await openGuarded(
    think,
    {
      authenticator: withTokens(entry("alice-token", "alice"), entry("mallory-token", "mallory")),
      requestsPerMinute: 1_000_000,
    },
    { DEEPAGENT_APPROVALS_ALLOW_MODEL_ANSWERS: "true" },
  );
  const alice = await server.connect("alice-token", "v1");
  const runId = runIdOf(await alice.call("run_deep_agent", { task: "Change a file" }));
  const before = await untilStatus(alice, runId, "input_required");
  const [approval] = before["approvals"] as { id: string }[]; // as RunReport has it
  const foreign = { runId, threadId: String(before["thread_id"]), approvalId: approval?.id ?? "" };
  const messages = hostileMessages(foreign, COUNT, 7);
  expect(new Set(messages.map(({ kind }) => kind))).toEqual(new Set(HOSTILE_KINDS));

  const wrong: string[] = [];
  const attack = async ({ kind, text, method, name }: Hostile): Promise<void> => {
    const { status, body } = await send(server.url, {
      body: text,
      headers: {
        authorization: "Bearer mallory-token",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": headerValue(name),
      },
    });
    const answer = answerTo(JSON.parse(body));
    const right = (EXPECTED[kind] as readonly unknown[] | undefined)?.includes(answer) ?? false;
    if (!right || status >= 500) wrong.push(`${kind}: ${status} ${answer} for ${text.slice(0, 200)}`);
  };
  const sendAll = async (batch: readonly Hostile[]): Promise<void> => {
    const rest = batch.values();
    const worker = async (): Promise<void> => {
      for (const message of rest) await attack(message);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  };
  await sendAll(messages.slice(0, COUNT / 5));
  const first = usedMemory();
  await sendAll(messages.slice(COUNT / 5));
  expect(wrong).toEqual([]);
  expect(usedMemory() - first).toBeLessThan(GROWTH);

  expect(await untilStatus(alice, runId, "input_required")).toEqual(before);
  const other = await server.connect("alice-token", "v2-modern", person({ "new.md": APPROVE }).answer);
  expect(await untilStatus(other, runId, "completed")).toMatchObject({ answer: "changed" });
  const mallory = await server.connect("mallory-token", "v1");
  expect((await mallory.listResources()).filter(({ uri }) => uri.includes("/runs/"))).toEqual([]);
});
