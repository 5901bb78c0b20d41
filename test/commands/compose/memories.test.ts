// @module-tag long
import { expect, it, onTestFinished } from "vitest";
import { answersOf, play } from "../../support/harness-brain.ts";
import { connect, openHome, openStdio } from "../../support/harness.ts";
import { meaningOf } from "../../support/wire-server-embeddings.ts";
import { startWireServer, type WireReply, type WireRequest } from "../../support/wire-server.ts";

/** A product whose agent notes what it is told, with an embedding service that does what `reply` says. */
async function openNotes(
  reply: (request: WireRequest) => WireReply | Promise<WireReply>,
  model = "openai:e",
) {
  const service = await startWireServer(reply);
  onTestFinished(() => service.close());
  const { OPENAI_API_KEY = "", OPENAI_BASE_URL = "" } = service.env("openai");
  const note = (name: string, content: string) => [
    { toolCalls: [{ name: "write_file", args: { file_path: `/memories/${name}.md`, content } }] },
    { text: "noted" },
  ];
  const home = await openHome({
    env: { OPENAI_API_KEY, OPENAI_BASE_URL, DEEPAGENT_MEMORIES_EMBEDDINGS: model },
    think: play({
      ships: note("ships", "Ships lie at the dock."),
      drinks: note("drinks", "The user likes tea."),
      find: [
        { toolCalls: [{ name: "search_memories", args: { query: "coffee" } }] },
        (thought) => ({ text: answersOf(thought)[0]?.text ?? "" }),
      ],
    }),
  });
  const server = await openStdio(home);
  return { service, client: () => connect(server, "v2-legacy") };
}

const vectors = ({ messages }: WireRequest): WireReply => ({
  vectors: messages.map((message) => meaningOf(message.text)),
});

it("memories are found by meaning, also those written while the service was down or by another process", async () => {
  const mode = { isDown: true };
  const { service, client } = await openNotes((request) =>
    mode.isDown ? { status: 500, message: "oops" } : vectors(request),
  );
  const first = await client();
  await first.call("run_deep_agent", { task: "note ships" });
  const byWords = await first.call("search_memories", { query: "dock" });
  expect(byWords.text).toMatch(/^\/memories\/ships\.md\nShips lie at the dock\.\n\nSearched by words only/);
  expect(byWords.text).toContain("HTTP 500");
  // It was asked to embed, failed, and its process ends.
  await expect.poll(() => service.requests.length).toBeGreaterThan(1);
  await first.close();
  mode.isDown = false;
  const [second, third] = [await client(), await client()];
  await third.call("run_deep_agent", { task: "note drinks" });
  const found = async (query: string) => (await second.call("search_memories", { query })).text;
  await expect.poll(() => found("harbour")).toMatch(/^\/memories\/ships\.md/);
  await expect.poll(() => found("coffee")).toMatch(/^\/memories\/drinks\.md/);
  await expect.poll(() => found("beverage")).not.toContain("by words only");
  const { text: agents } = await second.call("run_deep_agent", { task: "find" });
  expect(agents).toContain("/memories/drinks.md\nThe user likes tea.");
  expect((await third.call("search_memories", { query: "port" })).text).toMatch(/^\/memories\/ships\.md/);
});

it("a service that does not answer holds up neither a run nor the end of the process", async () => {
  const { service, client } = await openNotes(({ messages, ...request }) =>
    messages[0]?.text === "dock" ? vectors({ messages, ...request }) : { fault: "hang" },
  );
  const first = await client();
  expect((await first.call("run_deep_agent", { task: "note ships" })).text).toContain("noted");
  await expect.poll(() => service.requests).toHaveLength(1);
  const { text } = await first.call("search_memories", { query: "dock" });
  expect(text).toContain("Memories not yet embedded, which are searched by words only: 1.");
  await first.close();
});

it("a setting that cannot work is said with the hits, and the rest works", async () => {
  const { client } = await openNotes(vectors, "anthropic:claude-test");
  const first = await client();
  await first.call("run_deep_agent", { task: "note ships" });
  const { text, structured } = await first.call("search_memories", { query: "dock" });
  expect(text).toContain("/memories/ships.md");
  expect(structured["note"]).toContain("Embeddings need an openai:… model");
});
