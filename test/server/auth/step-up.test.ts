import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SCOPES, type Scope } from "../../../src/runs/run.ts";
import { neededScopes, scopeChallenge } from "../../../src/server/http/challenge.ts";
import { authInfoOf } from "../../../src/server/auth/auth.ts";
import { SERVER_TOOLS } from "../../../src/server/tools/tools.ts";
import { INITIALIZE, send, sessionHeaders } from "../../support/clients-raw.ts";
import { connect, depsFor, plainRuns } from "../support.ts";
import { openWithIssuer } from "./issuer.ts";

type Params = Record<string, unknown>;
const request = (method: string, params: Params = {}, id = 2) =>
  ({ jsonrpc: "2.0", id, method, params }) as const;
const tool = (name: string, args: Params = {}, more: Params = {}) =>
  request("tools/call", { name, arguments: args, ...more });
const holder = (...scopes: Scope[]) => authInfoOf({ principal: "p", scopes });

const DECISION = { action: "accept", content: { decision: "approve" } };
const REPLY = { role: "assistant", model: "m", content: { type: "text", text: "x" } };

const REQUESTS: readonly (readonly [ReturnType<typeof request>, readonly Scope[]])[] = [
  [tool("run_deep_agent", { task: "x" }), ["run"]],
  [tool("run_deep_agent", { task: "x" }, { inputResponses: { a: DECISION } }), ["run", "approve"]],
  [tool("run_deep_agent", { task: "x" }, { inputResponses: { a: REPLY } }), ["run"]],
  [tool("run_deep_agent", { task: "x" }, { inputResponses: [] }), ["run"]],
  [tool("check_deep_agent", { run_id: "r" }), []],
  [
    tool("check_deep_agent", { run_id: "r" }, { inputResponses: { a: DECISION, b: REPLY } }),
    ["approve", "run"],
  ],
  [tool("check_deep_agent", { run_id: "r" }, { inputResponses: { a: REPLY } }), ["run"]],
  [tool("answer_deep_agent", { run_id: "r", approval_id: "a", decision: "approve" }), ["approve"]],
  [tool("cancel_deep_agent", { run_id: "r" }), ["run"]],
  [tool("read_agent_file", { path: "/a" }), ["read"]],
  [tool("search_memories", { query: "x" }), ["read"]],
  [tool("no_such_tool"), []],
  [request("resources/list"), ["read"]],
  [request("resources/read", { uri: "deepagent://runs/r" }), ["read"]],
  [request("resources/read", { uri: "ui://deepagent/run" }), []],
  [request("resources/read", { uri: ["ui://deepagent/run"] }), ["read"]],
  [request("resources/subscribe", { uri: "deepagent://runs/r" }), ["read"]],
  [request("resources/directory/read", { uri: "skill://review" }), ["read"]],
  [request("skills/list"), ["read"]],
  [request("skills/get", { uri: "skill://review" }), ["read"]],
  [request("resources/unsubscribe", { uri: "deepagent://runs/r" }), []],
  [request("resources/templates/list"), []],
  [request("completion/complete", { ref: { type: "ref/resource", uri: "x" } }), ["read"]],
  [request("completion/complete", { ref: { type: "ref/prompt", name: "delegate" } }), []],
  [request("subscriptions/listen", { notifications: { resourceSubscriptions: ["x"] } }), ["read"]],
  [request("subscriptions/listen", { notifications: { toolsListChanged: true } }), []],
  [request("tasks/get", { taskId: "r" }), []],
  [request("tasks/update", { taskId: "r", inputResponses: { a: DECISION, b: DECISION } }), ["approve"]],
  [request("tasks/update", { taskId: "r", inputResponses: { a: REPLY } }), ["run"]],
  [request("tasks/update", { taskId: "r" }), []],
  [request("tasks/cancel", { taskId: "r" }), ["run"]],
  [request("prompts/get", { name: "delegate" }), []],
  [request("tools/list"), []],
  [request("ping"), []],
  [request("__proto__"), []],
  [request("constructor"), []],
  [tool("__proto__"), []],
];

test.each(REQUESTS)("%j needs the scopes %j", (message, scopes) => {
  expect(neededScopes(message)).toEqual(scopes);
});

test("every tool is in the list of what a request needs", () => {
  const asked = new Set(REQUESTS.map(([{ params }]) => params["name"]));
  for (const { name } of SERVER_TOOLS) expect(asked).toContain(name);
});

test("a body is refused when one of its requests needs what the token lacks, with all that they need", () => {
  fc.assert(
    fc.property(
      fc.subarray([...SCOPES], { minLength: 1 }),
      fc.array(fc.constantFrom(...REQUESTS), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      (scopes, requests, batch) => {
        const asked = batch ? requests : requests.slice(0, 1);
        const messages = asked.map(([message]) => message);
        const needed = new Set(asked.flatMap(([, wanted]) => wanted));
        const refused = scopeChallenge(batch ? messages : messages[0], holder(...scopes))?.response;
        expect(refused === undefined).toBe([...needed].every((scope) => scopes.includes(scope)));
        if (refused === undefined) return;
        const listed = SCOPES.filter((scope) => needed.has(scope)).join(" ");
        expect(refused.status).toBe(403);
        expect(refused.headers.get("www-authenticate")).toContain(`scope="${listed}"`);
      },
    ),
  );
});

test("who needs no token needs no scope, and what is no request needs none", () => {
  const [[starting]] = REQUESTS as [(typeof REQUESTS)[0]];
  expect(scopeChallenge(starting, undefined)).toBeUndefined();
  for (const body of [null, 1, "x", [], [null], {}, { ...starting, id: null }, { jsonrpc: "2.0" }]) {
    expect(scopeChallenge(body, holder())).toBeUndefined();
  }
});

test.each(SCOPES)("what passes with the scope %s is not refused further in", async (scope) => {
  const service = plainRuns();
  const config = { approvals: { allowModelAnswers: true } };
  const deps = depsFor({ as: ({ principal }) => service.as({ principal, scopes: [scope] }) }, { config });
  const client = await connect(deps, { kind: "v1" });
  for (const [message, needed] of REQUESTS) {
    const { name, arguments: args } = message.params as { name: string; arguments: Params };
    if (message.method !== "tools/call" || message.params["inputResponses"] !== undefined) continue;
    if (!SERVER_TOOLS.some((known) => known.name === name)) continue;
    const { text } = await client.call(name, args);
    expect([name, text.includes("does not have the scope")]).toEqual([
      name,
      !needed.includes(scope) && needed.length > 0,
    ]);
  }
});

describe.each(["2025-11-25", "2026-07-28"] as const)("over HTTP in %s", (revision) => {
  test("a missing scope is 403 with the way to a token that has it", async () => {
    const { server, token } = await openWithIssuer("keys");
    const bearer = { authorization: `Bearer ${await token({ scope: "read" })}` };
    const starting = tool("run_deep_agent", { task: "Say hello" });
    const opened = await send(server.url, { body: INITIALIZE, headers: bearer });
    const legacy = { ...sessionHeaders(opened), "mcp-protocol-version": revision };
    const modern = {
      "mcp-protocol-version": revision,
      "mcp-method": "tools/call",
      "mcp-name": "run_deep_agent",
    };
    const envelope = {
      "io.modelcontextprotocol/protocolVersion": revision,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const isModern = revision === "2026-07-28";
    const body = isModern ? { ...starting, params: { ...starting.params, _meta: envelope } } : starting;
    const headers = isModern ? modern : legacy;
    const refused = await send(server.url, {
      body: JSON.stringify(body),
      headers: { ...bearer, ...headers },
    });
    expect(refused.status).toBe(403);
    expect(refused.headers["www-authenticate"]).toBe(
      'Bearer error="insufficient_scope", error_description="This needs a token with the scope run", scope="run", ' +
        'resource_metadata="https://agent.example/.well-known/oauth-protected-resource/mcp"',
    );

    // The same request with the token that the client went for, in the same session.
    const better = { authorization: `Bearer ${await token({ scope: "read run" })}` };
    const answer = await send(server.url, {
      body: JSON.stringify(body),
      headers: { ...better, ...headers },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toContain("run_id");
    // From now on the session is for tokens that can do as much.
    const listing = JSON.stringify(request("ping"));
    const again = await send(server.url, { body: listing, headers: { ...bearer, ...legacy } });
    expect(again.status).toBe(isModern ? 400 : 404);
    const metrics = await send(server.url.replace("/mcp", "/metrics"), { method: "GET", headers: bearer });
    expect(metrics.body).toContain('deepagent_http_auth_refusals_total{reason="missing_scope"} 1');
  });
});

test("nothing of a batch is carried out when one of its requests is refused", async () => {
  const { server, token } = await openWithIssuer("keys");
  const bearer = { authorization: `Bearer ${await token({ scope: "run" })}` };
  const initialize = INITIALIZE.replace("2025-11-25", "2025-03-26");
  const opened = await send(server.url, { body: initialize, headers: bearer });
  const session = { "mcp-session-id": String(opened.headers["mcp-session-id"]) };
  const batch = [tool("run_deep_agent", { task: "Say hello" }), request("resources/list", {}, 3)];
  const refused = await send(server.url, { body: JSON.stringify(batch), headers: { ...bearer, ...session } });
  expect(refused.status).toBe(403);
  expect(refused.headers["www-authenticate"]).toContain('scope="run read"');
  const reads = { authorization: `Bearer ${await token({ scope: "read" })}` };
  const { body } = await send(server.url.replace("/mcp", "/metrics"), { method: "GET", headers: reads });
  expect(body).toContain('deepagent_runs{status="completed"} 0');
  expect(body).toContain('deepagent_runs{status="working"} 0');
});
