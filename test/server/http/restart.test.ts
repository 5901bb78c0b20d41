import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openStreams } from "../../../src/storage/sqlite/streams.ts";
import { INITIALIZE, send, sessionHeaders } from "../../support/clients-raw.ts";
import { filesIn } from "../../support/files-in.ts";
import { entry, withTokens } from "../auth/support.ts";
import { serve } from "./support.ts";

const call = { name: "echo", arguments: { text: "hi" } };
const ECHO = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call });

describe("a client whose server was restarted", () => {
  const resume = (url: string, headers: Record<string, string>, after: string) =>
    send(url, {
      method: "GET",
      headers: { ...headers, accept: "text/event-stream", "last-event-id": after },
    });

  async function restarted(token?: string) {
    const folder = filesIn();
    const options = {
      openStreams: () => openStreams(join(folder, "streams.db")),
      ...(token === undefined ? {} : { authenticator: withTokens(entry("a", "alice"), entry("b", "bob")) }),
    };
    const authorization: Record<string, string> =
      token === undefined ? {} : { authorization: `Bearer ${token}` };
    const first = await serve(options);
    const opened = await send(first.url, { headers: authorization, body: INITIALIZE });
    const headers = { ...sessionHeaders(opened), ...authorization };
    const { body } = await send(first.url, { headers, body: ECHO });
    const [opening = "", answer = ""] = [...body.matchAll(/^id: (\S+)/gm)].map(([, id]) => id);
    await first.close();
    return { url: (await serve(options)).url, headers, opening, answer };
  }

  test("gets what it has not seen, and then learns that its session is over", async () => {
    const { url, headers, opening, answer } = await restarted();
    const rest = await resume(url, headers, opening);
    expect(rest.status).toBe(200);
    expect(rest.headers["content-type"]).toBe("text/event-stream");
    expect(rest.body).toContain(`id: ${answer}`);
    expect(rest.body).toContain('"text":"hi"');
    expect((await resume(url, headers, answer)).status).toBe(404);
    expect((await send(url, { headers, body: ECHO })).status).toBe(404);
  });

  test("gets nothing of a session that is not its own", async () => {
    const { url, headers, opening } = await restarted("a");
    const stranger = { ...headers, authorization: "Bearer b" };
    expect((await resume(url, stranger, opening)).status).toBe(404);
    expect((await resume(url, { ...headers, "mcp-session-id": "other" }, opening)).status).toBe(404);
    expect((await resume(url, headers, opening)).body).toContain('"text":"hi"');
  });

  test("gets nothing of a session that it had ended", async () => {
    const { url } = await serve();
    const live = sessionHeaders(await send(url, { body: INITIALIZE }));
    const { body } = await send(url, { headers: live, body: ECHO });
    const first = /^id: (\S+)/m.exec(body)?.[1] ?? "";
    expect((await send(url, { method: "DELETE", headers: live })).status).toBe(200);
    expect((await resume(url, live, first)).status).toBe(404);
  });
});
