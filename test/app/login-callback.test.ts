import { once } from "node:events";
import { request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { openLoginCallback } from "../../src/app/login-callback.ts";

/** The status of a request whose path is sent as it is. */
async function statusOf(address: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(address);
  const asked = request({ hostname, port, path }).end();
  const [response] = await once(asked, "response");
  response.resume();
  return response.statusCode;
}

test("a client that is registered with `localhost` comes back there", async () => {
  const callback = await openLoginCallback(0, "localhost");
  onTestFinished(() => callback.close());
  expect(callback.address).toMatch(/^http:\/\/localhost:\d+\/callback$/);
  const answer = callback.answerTo("mine");
  const onLoopback = callback.address.replace("localhost", "127.0.0.1");
  expect(await statusOf(onLoopback, "/callback?state=mine&code=c")).toBe(200);
  expect((await answer).get("code")).toBe("c");
});

test("odd addresses find nothing, and the log-in still ends", async () => {
  const callback = await openLoginCallback();
  onTestFinished(() => callback.close());
  const answer = callback.answerTo("mine");
  for (const path of ["//", "//[", "/\\", "/callback", "/callback?state=other", "http://["])
    expect(await statusOf(callback.address, path)).toBe(404);
  expect(await statusOf(callback.address, "/callback?state=mine&code=c")).toBe(200);
  expect((await answer).get("code")).toBe("c");
});
