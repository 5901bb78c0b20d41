import { describe, expect, test } from "vitest";
import { hostMatcher, originMatcher, readOrigin } from "../../src/config/origins.ts";
import { ConfigSchema } from "../../src/config/schema.ts";

const PAGES = [
  "https://app.example",
  "http://app.example",
  "https://app.example:8443",
  "http://app.example:80",
  "https://other.example",
  "https://app.example.evil.example",
  "http://[::1]:3000",
  "vscode-webview://abc",
  "https://xn--bcher-kva.example",
  "file://",
  "null",
  "",
];
const ANY_OF_APP = PAGES.slice(0, 4);

/** Where it was seen, or why; the entry; the pages above that it stands for. */
const READ: readonly (readonly [source: string, entry: string, pages: readonly string[]])[] = [
  ["as browsers write it", "https://app.example", ["https://app.example"]],
  ["metabase/metabase#75839", "https://app.example/", ["https://app.example"]],
  ["capitals", "HTTPS://App.Example", ["https://app.example"]],
  ["spaces of a list", " https://app.example ", ["https://app.example"]],
  ["the port of the scheme", "https://app.example:443", ["https://app.example"]],
  ["another scheme", "http://app.example", ["http://app.example", "http://app.example:80"]],
  ["another port", "https://app.example:8443/", ["https://app.example:8443"]],
  ["a host", "app.example", ANY_OF_APP],
  ["a host in capitals", "App.Example/", ANY_OF_APP],
  ["a host with a port", "app.example:8443", ["https://app.example:8443"]],
  ["a host with the port of a scheme", "app.example:80", ["http://app.example", "http://app.example:80"]],
  ["an IPv6 address", "::1", ["http://[::1]:3000"]],
  ["an IPv6 address in brackets", "[::1]:3000", ["http://[::1]:3000"]],
  ["a page of a program", "vscode-webview://abc", ["vscode-webview://abc"]],
  ["any page of a program", "vscode-webview://*", ["vscode-webview://abc"]],
  ["letters of other languages", "https://bücher.example", ["https://xn--bcher-kva.example"]],
];

test.each(READ)("%s: %j stands for %j", (_source, entry, pages) => {
  expect(PAGES.filter(originMatcher([entry]))).toEqual(pages);
});

/** Where it was seen; an entry of `allowedHosts`; the headers below that it stands for. */
const HOSTS: readonly (readonly [source: string, entry: string, headers: readonly string[]])[] = [
  ["a name", "agent.example", ["agent.example", "agent.example:8443", "AGENT.Example", "agent.example."]],
  ["rstierli/fortianalyzer-mcp#6: with a port", "10.0.0.5:8808", ["10.0.0.5", "10.0.0.5:8808"]],
  ["mcpproxy-go#898: with a scheme", "https://nas.local/", ["nas.local:8808"]],
  ["PrefectHQ/fastmcp#4468: capitals", "NAS.local", ["nas.local:8808"]],
  ["a final dot", "nas.local.", ["nas.local:8808"]],
  ["groktocrawl#524: IPv6", "fd00::5", ["[fd00::5]:8808"]],
  ["IPv6 in brackets", "[FD00::5]", ["[fd00::5]:8808"]],
];
const HEADERS = HOSTS.flatMap(([, , headers]) => headers).concat(
  ["", ".", "evil.example", "agent.example.evil.example", "evil.example/agent.example", "x@agent.example"],
  ["agent.example#", "agent.example\\x", "agent.example:port", "fd00::5", "agent.example, nas.local"],
);

test.each(HOSTS)("%s: the host %j is found under %j", (_source, entry, headers) => {
  const found = new Set(HEADERS.filter(hostMatcher([entry])));
  expect(found).toEqual(new Set(headers));
});

describe("an entry that cannot be meant", () => {
  test.each([
    ["*", "wildcard"],
    ["https://*", "wildcard"],
    ["*.example.com", "wildcard"],
    ["https://*.example.com", "wildcard"],
    ["https://app.example/app", "more than an origin"],
    ["https://app.example?x", "more than an origin"],
    ["https://user@app.example", "more than an origin"],
    ["null", "not an origin"],
    ["", "not an origin"],
    ["https://", "more than an origin"],
    ["https://app.example:port", "not an origin"],
    ["two words", "not an origin"],
  ])("%j is refused when the configuration is read", (entry, why) => {
    expect(readOrigin(entry)).toContain(why);
    const read = ConfigSchema.safeParse({ dataDir: "/data", http: { allowedOrigins: [entry] } });
    expect(read.error?.issues).toMatchObject([
      { path: ["http", "allowedOrigins", 0], message: readOrigin(entry) },
    ]);
    expect(PAGES.filter(originMatcher([entry]))).toEqual([]);
  });
});
