import { expect, test } from "vitest";
import { guardedFetch } from "../../../src/agent/models/stream-guard.ts";

const answering = (body: string, status: number) =>
  guardedFetch(1000, () => Promise.resolve(new Response(body, { status, headers: { "retry-after": "7" } })));

test.each([0, 65_536, 5_000_000])("an error of %i bytes is read to its beginning", async (bytes) => {
  const response = await answering("x".repeat(bytes), 529)("http://provider.test");
  expect([response.status, response.headers.get("retry-after")]).toEqual([529, "7"]);
  expect(await response.text()).toBe("x".repeat(Math.min(bytes, 65_536)));
});

test("an answer is read to its end", async () => {
  const response = await answering("x".repeat(200_000), 200)("http://provider.test");
  expect((await response.text()).length).toBe(200_000);
});
