import fc from "fast-check";
import { expect, test } from "vitest";
import { ME } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";
import { attempts } from "../../support/effort.ts";

const segment = fc.oneof(
  fc.constantFrom("runs", "open", "updates", "decide", "..", "%2e%2e", "%zz", "page.js", "//x", "__proto__"),
  fc.webSegment(),
);
const path = fc.array(segment, { maxLength: 5 }).map((parts) => `/${parts.join("/")}`);
const junk = fc.oneof(
  fc.string(),
  fc.json(),
  fc.constant("token=.&token=..&csrf=&approval=&decision=approve"),
);

test("no request without a session does anything but be refused", async () => {
  const { service, runId } = await waitingRun("a");
  const pages = await openPages(service);
  const { origin } = new URL(linkTo(pages, runId, "decide"));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"),
      fc.oneof(
        path,
        fc.constantFrom(`/runs/${runId}/decide`, "/open", "//", "//attacker.example/open", "/%"),
      ),
      junk,
      fc.constantFrom(origin, "null", "https://attacker.example"),
      fc.constantFrom("application/x-www-form-urlencoded", "application/json", "text/html"),
      async (method, to, body, from, type) => {
        const headers = { origin: from, "content-type": type, cookie: "deepagent_page_000000000000=x; ;=" };
        const { status } = await send(origin + to, { method, headers, body: method === "GET" ? "" : body });
        const isAsset =
          method === "GET" && /^\/(page\.js|page\.css|open\.js)$/.test(new URL(origin + to).pathname);
        expect(isAsset ? [200, 403] : [400, 403, 404, 405]).toContain(status);
      },
    ),
    attempts(300),
  );
  expect((await service.view(ME, runId))?.run.status).toBe("input_required");
});

test("no form of a session that may decide does so unless it is one of the page's own", async () => {
  const { service, runId, notes } = await waitingRun("a");
  const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
  const own = await visitor.form();
  const word = fc.oneof(
    fc.constantFrom("", "approve ", "APPROVE", "cancel", "__proto__", "edit"),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.record({ csrf: word, approval: fc.oneof(word, fc.constant(own["approval"] ?? "")), decision: word }),
      fc.boolean(),
      async (fields, isOwn) => {
        const sent = isOwn ? { ...fields, csrf: own["csrf"] ?? "" } : fields;
        const { status } = await visitor.post(`${visitor.path}/decide`, sent);
        expect(status).toBe(isOwn ? 422 : 403);
      },
    ),
    attempts(200),
  );
  expect((await service.view(ME, runId))?.run.status).toBe("input_required");
  expect(notes).toEqual([]);
});
