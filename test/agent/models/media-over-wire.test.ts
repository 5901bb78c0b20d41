import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { shownBlock } from "../../../src/agent/models/media.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { FILES, base64, gif, png } from "../../support/media-files.ts";
import { wireServer, type WireReply, type WireRequest } from "../../support/wire-server.ts";
import { list, record } from "../../support/wire-server-protocol.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

type Blocks = Array<{ type: string } & Record<string, unknown>>;
const image = (bytes: Uint8Array, mimeType = "image/png"): Blocks[number] => ({
  type: "image",
  mimeType,
  data: base64(bytes),
});
const refusal = (message: string, status = 400): WireReply => ({
  status,
  type: "invalid_request_error",
  message,
});

/** An agent whose model calls `show`, which answers with these blocks, in its first turn. */
async function setUp(
  { provider, spec }: { provider: (typeof PROVIDERS)[number]["provider"]; spec: string },
  reply: (request: WireRequest) => WireReply,
  shown: Blocks[] = [],
) {
  const server = await wireServer(reply);
  const { model } = await resolveModel({ model: spec, env: server.env(provider), requestMs: 20_000 });
  const checkpointer = new MemorySaver();
  const show = tool(({ at }) => shown[at] ?? [], {
    name: "show",
    description: "Shows.",
    schema: z.object({ at: z.number() }),
  });
  const config = { configurable: { thread_id: "t" } };
  /** As a new process makes it each time. */
  const ask = async (content: string | Blocks) => {
    const agent = createDeepAgent({ model, checkpointer, tools: [show] });
    const { messages } = await agent.invoke({ messages: [new HumanMessage({ content })] }, config);
    return messages.at(-1)?.text;
  };
  const put = (messages: BaseMessage[]) =>
    createDeepAgent({ model, checkpointer, tools: [show] }).updateState(config, { messages });
  return { server, ask, put };
}

const callsShow = (count: number): WireReply => ({
  toolCalls: Array.from({ length: count }, (_, at) => ({ id: `c${at}`, name: "show", args: { at } })),
});
const hasResults = (request: WireRequest): boolean =>
  request.messages.some(({ toolResults }) => toolResults.length > 0);
const bodyOf = (request: WireRequest | undefined): string => JSON.stringify(request?.body);

describe.each(PROVIDERS)("media over $protocol", (protocol) => {
  const turn =
    (count: number) =>
    (request: WireRequest): WireReply =>
      hasResults(request) ? { text: "seen" } : callsShow(count);

  test("results of tools are shown with the type of their bytes, or in words", async () => {
    const shown = [
      [image(FILES["image/jpeg"])],
      [image(FILES["image/bmp"], "image/bmp")],
      [image(new Uint8Array())],
      [{ ...image(FILES["image/png"]), data: "not base64!" }],
      [image(FILES["image/svg+xml"], "image/svg+xml")],
      [image(FILES["image/png"].subarray(0, 40))],
    ];
    const { server, ask } = await setUp(protocol, turn(shown.length), shown);
    expect(await ask("look")).toBe("seen");
    expect(await ask("and now?")).toBe("seen");
    expect(server.refusals).toEqual([]);
    const sent = bodyOf(server.requests[1]);
    expect(sent).toContain(base64(FILES["image/jpeg"]));
    expect(sent).toContain("image/jpeg");
    expect(sent).toContain(
      "[image/bmp, 3 × 2 px, 30 bytes: Not shown. The model does not accept this format.",
    );
    expect(sent).toContain("[image/png, 0 bytes: Not shown. It cannot be read: it is empty (0 bytes).");
    expect(sent).toContain("[image/png: Its data is not base64. Fetch it again.]");
    expect(sent).toContain("http://www.w3.org/2000/svg");
    expect(sent).toContain("it is cut off, its end is missing");
  });

  test("messages of callers are, in each form", async () => {
    const data = base64(FILES["image/jpeg"]);
    const forms: Blocks = [
      image(FILES["image/jpeg"]),
      { type: "image", source_type: "base64", mime_type: "image/png", data },
      { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
      { type: "image_url", image_url: `data:image/tiff;base64,${base64(FILES["image/tiff"])}` },
    ];
    const { server, ask } = await setUp(protocol, () => ({ text: "seen" }));
    expect(await ask([{ type: "text", text: "look" }, ...forms])).toBe("seen");
    const sent = bodyOf(server.requests[0]);
    expect(server.refusals).toEqual([]);
    // LangChain's package for Anthropic sends one of them twice.
    expect(sent.split(data).length).toBeGreaterThanOrEqual(4);
    expect(sent).not.toMatch(/"image\/png"|image\/png;/);
    expect(sent).toContain("[image/tiff, 8 bytes: Not shown.");
  });

  test.each<[string, string, number]>([
    ["words about media", "Could not process image", 400],
    ["words that say nothing", "Request contains an invalid argument.", 400],
    ["words of a server without eyes", "image input is not supported by this model", 422],
    ["a status of a fault", "image input is not supported - hint: you may need to provide the mmproj", 500],
    ["words of a fault in the model's files", "this model is missing data required for image input", 500],
  ])("are left out after a refusal with %s, and the thread goes on", async (_what, message, status) => {
    const picture = base64(FILES["image/png"]);
    const refuses = (request: WireRequest): WireReply =>
      bodyOf(request).includes(picture) ? refusal(message, status) : turn(1)(request);
    const { server, ask } = await setUp(protocol, refuses, [[image(FILES["image/png"])]]);
    expect(await ask("look")).toBe("seen");
    expect(server.requests).toHaveLength(3);
    expect(bodyOf(server.requests.at(-1))).toContain(
      `[image/png left out: the model's provider refused it (${message})`,
    );
    const before = server.requests.length;
    expect(await ask("and now?")).toBe("seen");
    // A second refusal would have cost a request.
    expect(server.requests).toHaveLength(before + 1);
  });

  test("bring a thread back to life that an earlier version left with a bad one", async () => {
    const picture = base64(FILES["image/png"]);
    const { ask, put } = await setUp(protocol, (request) =>
      bodyOf(request).includes(picture) ? refusal("Could not process image") : { text: "alive" },
    );
    const calls = [{ id: "c0", name: "show", args: { at: 0 } }];
    await put([
      new HumanMessage({ id: "h", content: "look" }),
      new AIMessage({ id: "a", content: "", tool_calls: calls }),
      new ToolMessage({ tool_call_id: "c0", content: [image(FILES["image/png"])] }),
      new HumanMessage({ id: "h2", content: "hello?" }),
    ]);
    expect(await ask("and now?")).toBe("alive");
  });

  test("do not hide a refusal for another reason", async () => {
    const { server, ask } = await setUp(protocol, () => refusal("tools.0: schema is bad"), []);
    await expect(ask([image(FILES["image/png"])])).rejects.toThrow("schema is bad");
    expect(server.requests).toHaveLength(2);
    await expect(ask("without")).rejects.toThrow("schema is bad");
  });
});

const [anthropic, openai] = PROVIDERS;

test("documents of other types are the provider's to judge", () => {
  const limits = { accepts: () => true };
  const word = { type: "file", mimeType: "application/msword", data: base64(Buffer.from("PK\u0003\u0004")) };
  const pages = { type: "document", source: { type: "text", media_type: "text/plain", data: "hello" } };
  const far = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
  for (const block of [word, pages, far]) expect(shownBlock(block, limits)).toBe(block);
  expect(shownBlock({ ...word, data: "" }, limits)).toMatchObject({ type: "text" });
});

test("only the picture that the provider names is left out", async () => {
  const shown = [[image(png(3, 1))], [image(png(3, 2))], [image(png(3, 3))]];
  const bad = base64(png(3, 2));
  const { server, ask } = await setUp(
    anthropic,
    (request) => {
      if (!hasResults(request)) return callsShow(3);
      const results = list(list(request.body["messages"])[2]?.["content"]);
      const at = results.findIndex((result) => JSON.stringify(record(result)).includes(bad));
      const place = `messages.2.content.${at}.tool_result.content.0.image.source.base64.data`;
      return at < 0 ? { text: "seen" } : refusal(`${place}: Could not process image`);
    },
    shown,
  );
  expect(await ask("look")).toBe("seen");
  const sent = bodyOf(server.requests.at(-1));
  expect(sent).toContain(base64(png(3, 1)));
  expect(sent).toContain(base64(png(3, 3)));
  expect(sent).not.toContain(bad);
});

test("limits of Anthropic hold before it refuses", async () => {
  const large = Buffer.concat([png(3, 2), Buffer.alloc(4 * 1024 ** 2)]);
  const many = Array.from({ length: 30 }, (_, at) => image(png(at === 0 ? 2001 : 3, at + 1)));
  const { server, ask } = await setUp({ ...anthropic, spec: "anthropic:claude-sonnet-4-6" }, () => ({
    text: "seen",
  }));
  await ask([image(png(8001, 2)), image(large), image(png(2001, 9))]);
  expect(bodyOf(server.requests[0])).toMatch(/at most 8000 pixels per side.*accepts up to 3\.8 MB/);
  expect(bodyOf(server.requests[0])).toContain(base64(png(2001, 9)));
  await ask(many);
  expect(bodyOf(server.requests[1])).toMatch(
    /at most 2000 pixels per side here.*at most 2000 pixels per side here/,
  );
  await ask(Array.from({ length: 90 }, (_, at) => image(png(5, at + 1))));
  const last = bodyOf(server.requests[2]);
  expect(last.split('"media_type":"image/png"')).toHaveLength(101);
  expect(last).toContain("left out, because the conversation has more media than the model accepts");
  expect(last).toContain(base64(png(5, 90)));
  expect(server.refusals).toEqual([]);
});

test("OpenAI gets no animation; a fallback gets what its own provider takes", async () => {
  const { server, ask } = await setUp(openai, () => ({ text: "seen" }));
  await ask([image(gif(3, 2, 2), "image/gif"), image(gif(3, 2), "image/gif")]);
  expect(bodyOf(server.requests[0])).toContain("The model does not accept animated GIFs.");
  expect(bodyOf(server.requests[0])).toContain(base64(gif(3, 2)));

  const spare = await wireServer(() => ({ text: "spare" }));
  const down = await wireServer(() => refusal("no such model", 404));
  const modelOf = async (spec: string, env: NodeJS.ProcessEnv) =>
    (await resolveModel({ model: spec, env })).model;
  const agent = createDeepAgent({
    model: await modelOf(openai.spec, down.env("openai")),
    fallbackModels: [await modelOf(anthropic.spec, spare.env("anthropic"))],
  });
  const animated = image(gif(3, 2, 2), "image/gif");
  const { messages } = await agent.invoke({ messages: [new HumanMessage({ content: [animated] })] });
  expect(messages.at(-1)?.text).toBe("spare");
  expect(bodyOf(down.requests[0])).toContain("The model does not accept animated GIFs.");
  expect(bodyOf(spare.requests[0])).toContain(base64(gif(3, 2, 2)));
});
