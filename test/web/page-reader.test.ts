import { brotliCompressSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { LOCAL, USER_AGENT, pages, startSite, testReader } from "./site.ts";

const at = (port: number, path = "/"): string => `http://site.test:${port}${path}`;
const codes = (read: Promise<unknown>): Promise<unknown> =>
  read.then(
    () => "read",
    (error: { code: string }) => error.code,
  );

test("a page is Markdown with its title, whole links, tables and code", async () => {
  const line = "High water comes about fifty minutes later each day, because the moon moves on. ".repeat(4);
  const html = `<!doctype html><html><head><title>Tides &amp; moon</title><script>bad()</script></head><body>
    <nav><a href="/menu">Menu</a></nav>
    <article><h1>Tides</h1><p>${line}<a href="../next?q=1#x">next</a></p><h2>Code</h2>
    <pre><code class="language-js">const a = 1;</code></pre>
    <table><tr><th>Day</th><th>High|water</th></tr><tr><td>Mon</td><td>3 m</td></tr></table>
    <p>${line}<img src="x.png" alt="a chart"></p></article><footer>Imprint</footer></body></html>`;
  const port = await startSite(pages({ "/a/page": html }));
  const page = await testReader()(at(port, "/a/page"));
  expect(page).toMatchObject({ title: "Tides & moon", url: at(port, "/a/page"), notes: [] });
  expect(page.text).toContain(`[next](${at(port, "/next?q=1#x")})`);
  expect(page.text).toContain("```js\nconst a = 1;\n```");
  expect(page.text).toContain("| Day | High\\|water |\n| - | - |\n| Mon | 3 m |");
  expect(page.text).toContain("[Image: a chart]");
  expect(page.text).not.toMatch(/bad\(\)|Menu|Imprint/);
});

const body = "<p>The moon pulls at the sea, and the sea follows it around the world. </p>".repeat(9);

test.each([
  [
    "beside its heading",
    `<div><h1>Tides</h1><section><article>${body}</article></section></div><nav>Menu</nav>`,
  ],
  ["below a heading of the body", `<h1>Tides</h1><article>${body}</article>`],
  ["with the heading in its own header", `<article><header><h1>Tides</h1></header>${body}</article>`],
  [
    "without a heading of its own",
    `<header><h1>Name of the site</h1></header><article><h2>Tides</h2>${body}</article>`,
  ],
])("an article %s is shown with it", async (_, html) => {
  const port = await startSite(
    pages({ "/": `<!doctype html><title>T</title><body>${html}<footer>Imprint</footer>` }),
  );
  const { text } = await testReader()(at(port));
  expect(text).toMatch(/^##? Tides\n/);
  expect(text).not.toMatch(/Menu|Imprint|Name of the site/);
});

test("a page of links is shown as a whole, also what scripts would show later", async () => {
  const links = Array.from(
    { length: 30 },
    (_, index) => `<li><a href="/p${index}">Page ${index}</a></li>`,
  ).join("");
  const html = `<html><body><p>Loading…</p><ul style="visibility:hidden">${links}</ul></body></html>`;
  const port = await startSite(pages({ "/": html }));
  const { text } = await testReader()(at(port));
  expect(text).toContain(`[Page 29](${at(port, "/p29")})`);
});

test("texts and JSON stay as they are, and media are refused by their type", async () => {
  const port = await startSite(
    pages({
      "/json": { type: "application/vnd.api+json", body: '{ "a": "<b>" }' },
      "/md": { type: "text/markdown; charset=utf-8", body: "# Title\n\n<b>x</b>" },
      "/none": { type: "application/octet-stream", body: "plain words" },
      "/zip": { type: "application/octet-stream", body: Buffer.from([80, 75, 3, 4, 0, 0]) },
      "/png": { type: "image/png", body: "x" },
    }),
  );
  const read = testReader();
  expect((await read(at(port, "/json"))).text).toBe('{ "a": "<b>" }');
  expect((await read(at(port, "/md"))).text).toBe("# Title\n\n<b>x</b>");
  expect((await read(at(port, "/none"))).text).toBe("plain words");
  await expect(read(at(port, "/png"))).rejects.toThrow(/is image\/png, which is not read as text/);
  await expect(read(at(port, "/zip"))).rejects.toThrow(/not read as text/);
});

const pdf = (text: string): string =>
  `%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 144]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n4 0 obj<</Length ${text.length + 30}>>stream\nBT /F1 24 Tf 20 100 Td (${text}) Tj ET  \nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n6 0 obj<</Title(Tide tables)>>endobj\ntrailer<</Root 1 0 R/Info 6 0 R>>\n%%EOF`;

test("a PDF is read as the text of its pages", async () => {
  const port = await startSite(
    pages({
      "/a.pdf": { type: "application/pdf", body: pdf("Hello tides") },
      "/b": { type: "application/octet-stream", body: pdf("") },
      "/c.pdf": { type: "application/pdf", body: "%PDF-1.4 broken" },
    }),
  );
  const read = testReader();
  expect(await read(at(port, "/a.pdf"))).toMatchObject({
    title: "Tide tables",
    text: "[page 1]\nHello tides",
  });
  expect((await read(at(port, "/b"))).notes).toEqual(["The PDF has no text. It may consist of pictures."]);
  await expect(read(at(port, "/c.pdf"))).rejects.toThrow("It is not a PDF that can be read.");
});

test.each([
  ["text/plain; charset=shift_jis", Buffer.from([0x92, 0xaa]), "潮"],
  ["text/plain; charset=EUC-KR", Buffer.from([0xc1, 0xb6, 0xbc, 0xf6]), "조수"],
  ["text/plain", Buffer.from([0x63, 0x61, 0x66, 0xe9]), "café"],
  ["text/plain", Buffer.from("café", "utf8"), "café"],
  ["text/plain; charset=nonsense", Buffer.from("café", "utf8"), "café"],
  ["text/plain; charset=latin1", Buffer.from("\uFEFFcafé", "utf8"), "café"],
  ["text/plain", Buffer.from("\uFEFFtide", "utf16le"), "tide"],
  [
    "text/html",
    Buffer.from('<meta charset="windows-1251"><p>\xef\xf0\xe8\xeb\xe8\xe2</p>', "latin1"),
    "прилив",
  ],
  [
    "text/html",
    Buffer.from(
      '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2"><p>\xb9</p>',
      "latin1",
    ),
    "š",
  ],
  ["text/html; charset=windows-1252", Buffer.from("<p>\x93tide\x94</p>", "latin1"), "“tide”"],
  ["text/html", Buffer.from('<meta charset="utf-16"><p>tide</p>'), "tide"],
  ["text/plain", Buffer.from("a\0b"), "ab"],
])("%s with %j is read in its charset", async (type, body, expected) => {
  const port = await startSite(pages({ "/": { type, body } }));
  expect((await testReader()(at(port))).text).toBe(expected);
});

test("a request names the program and carries nothing else", async () => {
  const seen: Record<string, unknown>[] = [];
  const port = await startSite(({ url, headers, method }, response) => {
    if (url !== "/robots.txt") seen.push({ method, ...headers });
    response.writeHead(200, { "set-cookie": "id=1", "content-type": "text/plain" }).end("ok");
  });
  const read = testReader();
  await read(at(port, "/a"));
  await read(at(port, "/b"));
  expect(seen[1]).toEqual({
    method: "GET",
    host: `site.test:${port}`,
    "user-agent": USER_AGENT,
    accept: expect.stringContaining("text/html"),
    "accept-encoding": "gzip, br",
    connection: "close",
  });
});

test("compressed pages are read, in two layers at most", async () => {
  const port = await startSite(({ url }, response) => {
    const send = (coding: string, body: Buffer): unknown =>
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": coding }).end(body);
    if (url === "/br") send("br", brotliCompressSync("tides"));
    else if (url === "/two") send("gzip, gzip", gzipSync(gzipSync("tides")));
    else if (url === "/three") send("gzip, gzip, gzip", gzipSync(gzipSync(gzipSync("tides"))));
    else if (url === "/odd") send("lzma", Buffer.from("tides"));
    else if (url === "/damaged") send("gzip", Buffer.from("no gzip at all"));
    else if (url === "/half") send("gzip", gzipSync("tides ".repeat(1000)).subarray(0, -8));
    else response.writeHead(404).end();
  });
  const read = testReader();
  expect((await read(at(port, "/br"))).text).toBe("tides");
  expect((await read(at(port, "/two"))).text).toBe("tides");
  expect((await read(at(port, "/half"))).text).toBe("tides ".repeat(1000));
  expect(await codes(read(at(port, "/three")))).toBe("damaged");
  expect(await codes(read(at(port, "/odd")))).toBe("damaged");
  await expect(read(at(port, "/damaged"))).rejects.toThrow(/compressed answer of site\.test:\d+ is damaged/);
});

test("bombs, endless bodies and giant pages are cut, and slow ones end", async () => {
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, "a"), { level: 1 });
  const port = await startSite(({ url }, response) => {
    if (url === "/robots.txt") return void response.writeHead(404).end();
    const headers = { "content-type": "text/plain" };
    if (url === "/bomb")
      return void response.writeHead(200, { ...headers, "content-encoding": "gzip" }).end(bomb);
    if (url === "/pdf")
      return void response.writeHead(200, { "content-type": "application/pdf" }).end(Buffer.alloc(2 ** 21));
    response.writeHead(200, headers);
    if (url === "/endless") {
      const more = (): void => {
        while (!response.destroyed && response.write("tides ".repeat(10_000)));
      };
      response.on("drain", more);
      more();
    } else if (url === "/slow") response.write("a");
  });
  const read = testReader({ limits: { bytes: 2 ** 20, timeMs: 60_000, characters: 1000 } });
  const bombed = await read(at(port, "/bomb"));
  expect(bombed.text).toHaveLength(1000);
  expect(bombed.notes).toEqual([
    "Only its first 1 MB were read.",
    "Only the first 1000 of its 1048576 characters are here.",
  ]);
  expect((await read(at(port, "/endless"))).notes).toHaveLength(2);
  await expect(read(at(port, "/pdf"))).rejects.toThrow("The PDF is larger than 1 MB.");
  const hasty = testReader({ limits: { timeMs: 300 } });
  await expect(hasty(at(port, "/slow"))).rejects.toThrow(/did not send the page within 0\.3 s/);
});

test("a page that cannot be turned into Markdown in bounds is plain text", async () => {
  const deep = `<html><body>${"<div>".repeat(3000)}deep words${"</div>".repeat(3000)}</body></html>`;
  const port = await startSite(pages({ "/deep": deep, "/empty": "", "/odd": "<<<>>></</><a <b" }));
  const read = testReader();
  expect(await read(at(port, "/deep"))).toMatchObject({
    text: "deep words",
    notes: [expect.stringContaining("plain text")],
  });
  expect((await read(at(port, "/empty"))).text).toBe("");
  expect((await read(at(port, "/odd"))).text).toBeTypeOf("string");
});

test("redirects are followed as far as the caller allows, and never in circles", async () => {
  const port = await startSite(({ url }, response) => {
    const to = (location: string): unknown => response.writeHead(302, { location }).end();
    if (url === "/hop") to("/there#part");
    else if (url === "/loop") to("/loop");
    else if (url === "/away") to(`http://other.test:${port}/there`);
    else if (url === "/file") to("file:///etc/passwd");
    else if (url === "/secret") to(`http://user:secret@site.test:${port}/there`);
    else if (url === "/there") response.writeHead(200, { "content-type": "text/plain" }).end("here");
    else response.writeHead(404).end();
  });
  const hosts = ["site.test", "other.test"];
  const read = testReader({ hosts });
  expect(await read(at(port, "/hop"))).toMatchObject({ url: at(port, "/there"), text: "here" });
  expect(await read(at(port, "/away"))).toMatchObject({ url: `http://other.test:${port}/there` });
  await expect(read(at(port, "/loop"))).rejects.toThrow(/redirects more than 5 times/);
  await expect(read(at(port, "/file"))).rejects.toThrow("Only http and https addresses are read.");
  await expect(read(at(port, "/secret"))).rejects.toThrow(/user name or password/);
  const staying = testReader({ hosts, follows: (to) => to.hostname === "site.test" });
  await expect(staying(at(port, "/away"))).rejects.toThrow(`call again with http://other.test:${port}/there`);
});

test("no redirect and no name leads to a private address", async () => {
  const asked: string[] = [];
  const port = await startSite(({ url, headers }, response) => {
    asked.push(`${headers.host} ${url}`);
    if (url === "/literal") response.writeHead(302, { location: `http://127.0.0.1:${port}/there` }).end();
    else if (url === "/name") response.writeHead(302, { location: `http://inside.test:${port}/there` }).end();
    else if (url === "/mapped")
      response.writeHead(302, { location: `http://[::ffff:127.0.0.1]:${port}/` }).end();
    else
      response.writeHead(url === "/robots.txt" ? 404 : 200, { "content-type": "text/plain" }).end("inside");
  });
  const read = testReader();
  await expect(read(at(port, "/literal"))).rejects.toThrow(/is not on the public internet/);
  await expect(read(at(port, "/mapped"))).rejects.toThrow(/is not on the public internet/);
  await expect(read(at(port, "/name"))).rejects.toThrow(/inside\.test:\d+ has a private address/);
  await expect(read(`http://inside.test:${port}/`)).rejects.toThrow(/has a private address/);
  expect(asked.filter((one) => one.includes("inside") || one.includes("127.0.0.1"))).toEqual([]);
});

test.each([
  ["only private ones", ["10.1.2.3"]],
  ["one private among public ones", ["93.184.216.34", "127.0.0.1"]],
  ["a mapped one", ["::ffff:127.0.0.1"]],
  ["none", []],
])("a name with %s is not connected to", async (_name, addresses) => {
  const resolve = async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const read = testReader({ hosts: [], resolve })("http://rebind.test/");
  expect(await codes(read)).toBe(addresses.length === 0 ? "not_found" : "private");
});

test("a name that is looked up again is judged again, and the socket uses what was judged", async () => {
  const port = await startSite(pages({ "/": { type: "text/plain", body: "inside" } }));
  let lookups = 0;
  // The first answer is a public name server's documentation address, which refuses; the second is this machine.
  const resolve = async () => {
    lookups += 1;
    return lookups === 1 ? [{ address: "::1", family: 6 }] : LOCAL("");
  };
  const read = testReader({ hosts: [], resolve });
  expect(await codes(read(`http://rebind.test:${port}/`))).toBe("private");
  // robots.txt and the page: each socket has a look-up of its own, and each was refused.
  expect(lookups).toBe(2);
});

test("robots.txt is asked once for each host, and one that cannot be read allows all", async () => {
  let asked = 0;
  const port = await startSite(({ url }, response) => {
    if (url === "/robots.txt") asked += 1;
    const body = url === "/robots.txt" ? "User-agent: deepagent-mcp\nDisallow: /private\n" : "words";
    response.writeHead(200, { "content-type": "text/plain" }).end(body);
  });
  const read = testReader();
  await expect(read(at(port, "/private/a"))).rejects.toThrow(
    /robots\.txt of site\.test:\d+ does not let programs/,
  );
  expect((await read(at(port, "/open"))).text).toBe("words");
  expect(asked).toBe(1);

  const broken = await startSite(({ url }, response) => {
    if (url === "/robots.txt") response.writeHead(503).end();
    else response.writeHead(200, { "content-type": "text/plain" }).end("words");
  });
  expect((await read(at(broken))).text).toBe("words");
  const silent = await startSite(({ url }, response) => {
    if (url !== "/robots.txt") response.writeHead(200, { "content-type": "text/plain" }).end("words");
  });
  expect((await testReader({ limits: { timeMs: 2000 } })(at(silent))).text).toBe("words");
});

test.each([
  [401, {}, "needs a login (HTTP 401)"],
  [403, {}, "refuses programs, or needs a login (HTTP 403)"],
  [404, {}, "has no such page (HTTP 404)"],
  [418, {}, "did not send the page (HTTP 418)"],
  [429, { "retry-after": "30" }, "has had too many requests (HTTP 429). Try again in 30 s"],
  [429, { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }, "has had too many requests (HTTP 429)."],
  [503, {}, "has a problem of its own (HTTP 503)"],
  [302, {}, "did not send the page (HTTP 302)"],
])("status %s is one sentence", async (status, headers, sentence) => {
  const port = await startSite(({ url }, response) => {
    response.writeHead(url === "/robots.txt" ? 404 : status, headers).end("<h1>details</h1>");
  });
  await expect(testReader()(at(port))).rejects.toThrow(`site.test:${port} ${sentence}`);
});

test("a failure comes with the page that explains it, and a page that forwards with the one it means", async () => {
  const forward = (to: string): string =>
    `<title>Moved</title><meta http-equiv="refresh" content="0; url=${to}">`;
  const port = await startSite(({ url }, response) => {
    const [status, body] = ((): [number, string] => {
      if (url === "/gone") return [410, "<h1>Gone</h1><p>It is in the archive.</p>"];
      if (url === "/json") return [422, '{"error":"no such field"}'];
      if (url === "/old") return [200, forward("./new")];
      if (url === "/loop") return [200, forward("/hoop")];
      if (url === "/hoop") return [200, forward("/loop")];
      if (url === "/away") return [200, forward(`http://inside.test:${port}/`)];
      if (url === "/app") return [200, '<div id="root"></div><script src="a.js"></script>'];
      return url === "/new" ? [200, "<p>new words</p>"] : [404, ""];
    })();
    response
      .writeHead(status, { "content-type": url === "/json" ? "application/json" : "text/html" })
      .end(body);
  });
  const read = testReader();
  await expect(read(at(port, "/gone"))).rejects.toThrow(
    expect.objectContaining({ code: "status", explanation: "# Gone\n\nIt is in the archive." }),
  );
  await expect(read(at(port, "/json"))).rejects.toThrow(
    expect.objectContaining({ explanation: '{"error":"no such field"}' }),
  );
  expect(await read(at(port, "/old"))).toMatchObject({ url: at(port, "/new"), text: "new words" });
  expect(await read(at(port, "/loop"))).toMatchObject({ text: "" });
  await expect(read(at(port, "/away"))).rejects.toThrow(/private address|redirects to/);
  expect((await read(at(port, "/app"))).notes).toEqual(["Its text is made by scripts, which are not run."]);
});

test("servers that break off, answer nonsense or are not there are one sentence", async () => {
  const port = await startSite(({ url }, { socket }) => {
    if (url === "/nonsense") socket?.end("220 smtp ready\r\n");
    else socket?.destroy();
  });
  const read = testReader();
  await expect(read(at(port, "/off"))).rejects.toThrow(/broke the connection/);
  await expect(read(at(port, "/nonsense"))).rejects.toThrow(/sent an answer that is not HTTP/);
  await expect(read("http://site.test:1/")).rejects.toThrow("site.test:1 refuses connections.");
  const resolve = () => Promise.reject(Object.assign(new Error("x"), { code: "ENOTFOUND" }));
  await expect(testReader({ resolve })("http://site.test/")).rejects.toThrow(
    "does not exist, or has no address",
  );
  await expect(read(`https://site.test:${port}/`)).rejects.toThrow(/site\.test:\d+ /);
});

test("a call that is cancelled ends at once", async () => {
  const port = await startSite(({ url }, response) => {
    if (url === "/robots.txt") response.writeHead(404).end();
  });
  const stop = new AbortController();
  const read = testReader()(at(port), stop.signal);
  setTimeout(() => stop.abort(), 50);
  await expect(read).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
});
