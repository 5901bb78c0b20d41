import type { IncomingMessage, ServerResponse } from "node:http";
import { text as readAll } from "node:stream/consumers";
import { expect, test } from "vitest";
import { judgedFetch } from "../../src/web/judged-fetch.ts";
import { namedHosts } from "../../src/web/url.ts";
import { LOCAL, startSite } from "./site.ts";

const isNamed = namedHosts(["site.test"]);
const ask = judgedFetch({ isNamed, resolve: LOCAL, timeoutMs: 400, maxBytes: 1000 });

test("a request is sent with its method, headers and body", async () => {
  const echo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method, headers } = request;
    const body = await readAll(request);
    response
      .writeHead(201, { "x-two": ["1", "2"] })
      .end(JSON.stringify({ method, body, key: headers["x-key"] }));
  };
  const port = await startSite((request, response) => void echo(request, response));
  const answer = await ask(`http://site.test:${port}/`, {
    method: "POST",
    headers: { "X-Key": "k" },
    body: new URLSearchParams({ grant: "a b" }),
  });
  expect(answer.status).toBe(201);
  expect(answer.headers.get("x-two")).toBe("1, 2");
  expect(await answer.json()).toEqual({ method: "POST", body: "grant=a+b", key: "k" });
});

test("addresses inside the network are refused, also behind a redirect and a name", async () => {
  const port = await startSite(({ url }, response) => {
    const location =
      url === "/meta" ? "http://169.254.169.254/latest" : url === "/name" ? "http://inside.test/" : "/again";
    response.writeHead(302, { location }).end();
  });
  const at = (path: string): Promise<Response> => ask(`http://site.test:${port}${path}`);
  await expect(ask("http://127.0.0.1/")).rejects.toThrow(/127\.0\.0\.1 is not on the public internet/);
  await expect(ask("file:///etc/passwd")).rejects.toThrow(/Only http and https/);
  await expect(at("/meta")).rejects.toThrow(/169\.254\.169\.254 is not on the public internet/);
  await expect(at("/name")).rejects.toThrow(/inside\.test has a private address/);
  await expect(at("/loop")).rejects.toThrow(/redirects more than 3 times/);
});

test("a redirect loses the authorization at another origin, and a POST is not redirected", async () => {
  const seen: Array<string | undefined> = [];
  const other = await startSite(({ headers }, response) => {
    seen.push(headers.authorization);
    response.end("there");
  });
  const port = await startSite((_request, response) => {
    response.writeHead(307, { location: `http://site.test:${other}/` }).end();
  });
  const url = `http://site.test:${port}/`;
  const headers = { Authorization: "Bearer secret" };
  expect(await (await ask(url, { headers })).text()).toBe("there");
  expect((await ask(url, { method: "POST", headers, body: "x" })).status).toBe(307);
  expect(seen).toEqual([undefined]);
});

test("an endless answer and a silent one end", async () => {
  const port = await startSite(({ url }, response) => {
    if (url === "/endless") {
      response.on("error", () => {});
      const more = (): boolean =>
        response.destroyed || (response.write("x".repeat(500)), setImmediate(more), true);
      more();
    } else if (url === "/slow") response.writeHead(200).write("a");
  });
  const at = (path: string): Promise<Response> => ask(`http://site.test:${port}${path}`);
  await expect(at("/endless")).rejects.toThrow(/more than 1000 bytes/);
  await expect(at("/silent")).rejects.toThrow(/did not answer in time/);
  await expect(at("/slow")).rejects.toThrow(/did not answer in time/);
  await expect(ask("http://site.test:1/")).rejects.toThrow(/refuses connections/);
});
