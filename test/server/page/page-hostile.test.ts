import fc from "fast-check";
import { expect, test } from "vitest";
import { mine } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { LINKED_SHELL } from "../../../src/server/views/room/shell.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";
import { attempts } from "../../support/effort.ts";

const segment = fc.oneof(
  fc.constantFrom("runs", "open", "updates", "decide", "..", "%2e%2e", "%zz", "page.js", "//x", "__proto__"),
  fc.webSegment(),
);
const path = fc.array(segment, { maxLength: 5 }).map((parts) => `/${parts.join("/")}`);
const junk = fc.oneof(fc.string(), fc.json(), fc.constant("code=.&code=..&approval=&decision=approve"));

test("no request without a session does anything but be refused", async () => {
  const { service, runId } = await waitingRun("a");
  const pages = await openPages(service);
  const { origin } = new URL(linkTo(pages, runId, "decide"));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"),
      fc.oneof(path, fc.constantFrom(`/runs/${runId}/reply`, "/open", "//", "//attacker.example/open", "/%")),
      junk,
      fc.constantFrom(origin, "null", "https://attacker.example"),
      fc.constantFrom("application/x-www-form-urlencoded", "application/json", "text/html"),
      fc.oneof(
        fc.constant({}),
        fc.stringMatching(/^[\w.-]*$/).map((text): Record<string, string> => ({ [SECRET_HEADER]: text })),
      ),
      async (method, to, body, from, type, secret) => {
        const cookie = "deepagent_page_000000000000=x; __Host-deepagent=x; ;=";
        const headers = { origin: from, "content-type": type, cookie, ...secret };
        const answer = await send(origin + to, { method, headers, body: method === "GET" ? "" : body });
        const { status, body: answered } = answer;
        // Whoever has no secret gets the empty document, whatever the address.
        if (status === 200 && method === "GET" && answered === LINKED_SHELL.text) return;
        if (status === 200 && method === "HEAD") return;
        const isAsset = method === "GET" && new URL(origin + to).pathname.startsWith("/assets/");
        expect(isAsset ? [200, 403] : [400, 401, 403]).toContain(status);
      },
    ),
    attempts(300),
  );
  expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
});

test("no form of a session that may decide does so unless it names an open approval and a decision", async () => {
  const { service, runId, notes } = await waitingRun("a");
  const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
  const own = await visitor.form();
  const word = fc.oneof(
    fc.constantFrom("", "approve ", "APPROVE", "cancel", "__proto__", "edit"),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.record({ request: fc.oneof(word, fc.constant(own["request"] ?? "")), decision: word }),
      fc.boolean(),
      async (fields, hasSecret) => {
        const headers: Record<string, string> = hasSecret ? {} : { [SECRET_HEADER]: "" };
        const { status } = await visitor.post(`${visitor.path}/reply`, fields, headers);
        expect(status).toBe(hasSecret ? 422 : 401);
      },
    ),
    attempts(200),
  );
  expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  expect(notes).toEqual([]);
});
