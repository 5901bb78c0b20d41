/** A service that no code names: what a row of the table gives it. */
import { createServer } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import table from "../../../src/agent/models/profiles/profiles.json" with { type: "json" };
import { profileTable } from "../../../src/agent/models/profiles/schema.ts";
import { addressOf } from "../../support/http-address.ts";
import { type Json, record } from "../../support/wire-server-protocol.ts";

const ROW = {
  source: ["made up for this test"],
  wire: "chat",
  base: "https://{LARKSPUR_REGION}.larkspur.example/compat/v3",
  baseVariables: ["LARKSPUR_URL"],
  keys: ["LARKSPUR_KEY"],
  modelVariables: ["LARKSPUR_MODEL"],
  headers: { "x-larkspur-team": "{LARKSPUR_TEAM}" },
  hosts: ["larkspur.example"],
  asks: ["/capabilities"],
  reasoning: { high: { depth: 3 } },
  request: { drop: ["stream_options"], rename: { max_completion_tokens: "limit" }, systemRole: "user" },
};
const FAMILY = {
  id: "delphinium",
  match: "delphinium",
  window: 48_000,
  output: 3000,
  open: false,
  request: { put: { safe_prompt: false } },
  source: ["made up for this test"],
};

/** A server of the service: what it was asked, and its report of windows. */
async function larkspur() {
  const asked: { path: string; headers: IncomingHttpHeaders; body: Json }[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString("utf8");
      const body = text === "" ? {} : record(JSON.parse(text));
      asked.push({ path: request.url ?? "", headers: request.headers, body });
      if (request.method === "GET")
        return void response.end(JSON.stringify({ data: [{ id: "delphinium-2", max_model_len: 40_960 }] }));
      const choice = { index: 0, delta: { content: "Yes." }, finish_reason: "stop" };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`);
    });
  });
  return { url: await addressOf(server), asked };
}

test("a service and a family of models that are rows alone", async () => {
  // The program reads its table when it is loaded: the row is there before.
  Object.assign(table.providers, { larkspur: ROW });
  table.families.push(FAMILY as never); // of the form that the schema checks below
  expect(profileTable.safeParse(table).error).toBeUndefined();
  const { KEY_NAMES, modelChoice } = await import("../../../src/agent/models/choose.ts");
  const { resolveModel } = await import("../../../src/agent/models/resolve.ts");
  const { contextWindow } = await import("../../../src/agent/models/exchange.ts");
  const { keyOf } = await import("../../../src/cli/init-questions.ts");

  const spec = "larkspur:delphinium-2";
  expect(modelChoice({ model: spec, env: {} })).toMatchObject({
    code: "model_endpoint_invalid",
    message: expect.stringMatching(/LARKSPUR_REGION.*LARKSPUR_URL/) as string,
  });
  const region = { LARKSPUR_REGION: "eu" };
  expect(modelChoice({ model: spec, env: region })).toMatchObject({
    code: "model_key_missing",
    keys: ["LARKSPUR_KEY"],
  });
  expect(modelChoice({ model: spec, env: { ...region, LARKSPUR_KEY: "k" } })).toMatchObject({
    ok: true,
    endpoint: "eu.larkspur.example",
  });
  expect(keyOf(spec, region)).toBe("LARKSPUR_KEY");
  expect(KEY_NAMES).toContain("LARKSPUR_KEY");
  expect(modelChoice({ env: { LARKSPUR_KEY: "k" } })).toMatchObject({
    code: "model_not_configured",
    message: expect.stringContaining("larkspur:") as string,
  });

  const { url, asked } = await larkspur();
  const env = { LARKSPUR_URL: `${url}/compat/v3`, LARKSPUR_KEY: "key-of-larkspur", LARKSPUR_TEAM: "blue" };
  const parameters = { larkspur: { maxTokens: 3000, modelKwargs: { max_completion_tokens: 900 } } };
  const models = { mine: { provider: "larkspur", model: "delphinium-2", reasoning: "high" as const } };
  const { model } = await resolveModel({ model: "mine", models, env, parameters });
  expect(contextWindow(model)).toBe(48_000);
  expect((await model.invoke([new HumanMessage("Well?")])).text).toBe("Yes.");
  const [{ path, headers, body } = { path: "", headers: {}, body: {} }] = asked;
  expect(path).toBe("/compat/v3/chat/completions");
  expect(headers).toMatchObject({ authorization: "Bearer key-of-larkspur", "x-larkspur-team": "blue" });
  expect(body).toMatchObject({ model: "delphinium-2", depth: 3, safe_prompt: false });
  expect(body).not.toHaveProperty("stream_options");
  await expect.poll(() => contextWindow(model)).toBe(40_960);
  expect(asked.at(-1)).toMatchObject({ path: "/capabilities" });
});
