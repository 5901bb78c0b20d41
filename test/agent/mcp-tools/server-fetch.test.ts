import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { expect, test } from "vitest";
import { type Login, ServerLogin } from "../../../src/agent/mcp-tools/login.ts";
import { serverFetch, withLogin } from "../../../src/agent/mcp-tools/server-fetch.ts";
import { addressOf } from "../../support/http-address.ts";

const loginWith = (url: string, token: string): Login => ({
  url,
  authorizationServer: url,
  client: { client_id: "ours" },
  tokens: { access_token: token, token_type: "Bearer" },
});

/** A server, and the `fetch` of a client whose token another process renews when it is refused. */
async function served(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  const url = `${await addressOf(server)}/`;
  let kept = loginWith(url, "old");
  const login = new ServerLogin("notes", url, {
    store: { read: async () => kept, change: async () => (kept = loginWith(url, "new")) },
    fetchFor: () => fetch,
    command: (name) => `login ${name}`,
    clock: Date.now,
  });
  const plain = serverFetch(() => ({
    maxBytes: 1e6,
    tooLong: "too long",
    problemOf: () => undefined,
    refuse: () => undefined,
  }));
  return { url, ask: withLogin(plain, login, new URL(url)) };
}

test.each([
  [401, {}, 200],
  [403, { "www-authenticate": 'Bearer error="insufficient_scope", scope="more"' }, undefined],
] as const)("a refusal %i without an end keeps no connection", async (status, headers, after) => {
  let isOpen = true;
  const { url, ask } = await served((request, response) => {
    if (request.headers.authorization !== "Bearer old") return void response.end("fine");
    response.on("close", () => (isOpen = false));
    response.writeHead(status, headers).write("never ends");
  });
  const answer = await ask(url).catch((error: unknown) => error);
  if (after === undefined) expect(String(answer)).toContain("needs further permissions (more)");
  else expect(answer).toMatchObject({ status: after });
  await expect.poll(() => isOpen).toBe(false);
});
