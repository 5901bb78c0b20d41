import { expect, test } from "vitest";
import { isPublicAddress, isWebPort } from "../../src/web/addresses.ts";
import { namedHosts, readHost, readUrl, approvedSite } from "../../src/web/url.ts";

const nothing = namedHosts([]);
const problemOf = (text: string, isNamed = nothing): string | undefined => {
  const read = readUrl(text, isNamed);
  return read.ok ? undefined : read.problem;
};
const hrefOf = (text: string, isNamed = nothing): string | undefined => {
  const read = readUrl(text, isNamed);
  return read.ok ? read.url.href : undefined;
};

test.each([
  ["8.8.8.8", true],
  ["1.1.1.1", true],
  ["172.15.255.255", true],
  ["172.32.0.0", true],
  ["100.63.255.255", true],
  ["169.253.255.255", true],
  ["223.255.255.255", true],
  ["2606:4700:4700::1111", true],
  ["2a00:1450:4001::1", true],
  ["64:ff9b::808:808", true],
  ["0.0.0.0", false],
  ["0.1.2.3", false],
  ["10.0.0.1", false],
  ["100.64.0.1", false],
  ["100.100.100.200", false],
  ["100.127.255.255", false],
  ["127.0.0.1", false],
  ["127.255.255.254", false],
  ["168.63.129.16", false],
  ["169.254.169.254", false],
  ["169.254.170.2", false],
  ["172.16.0.1", false],
  ["172.31.255.255", false],
  ["192.0.0.192", false],
  ["192.0.2.1", false],
  ["192.168.1.1", false],
  ["198.18.0.1", false],
  ["198.19.255.255", false],
  ["198.51.100.1", false],
  ["203.0.113.1", false],
  ["224.0.0.1", false],
  ["239.255.255.255", false],
  ["240.0.0.1", false],
  ["255.255.255.255", false],
  ["::", false],
  ["::1", false],
  ["::127.0.0.1", false],
  ["::ffff:127.0.0.1", false],
  ["::ffff:8.8.8.8", false],
  ["::ffff:0:8.8.8.8", false],
  ["64:ff9b::7f00:1", false],
  ["64:ff9b::a9fe:a9fe", false],
  ["64:ff9b::10.0.0.1", false],
  ["64:ff9b::", false],
  ["64:ff9b:1::1", false],
  ["100::1", false],
  ["2001::1", false],
  ["2001:db8::1", false],
  ["2002:7f00:1::", false],
  ["3fff::1", false],
  ["fc00::1", false],
  ["fd00:ec2::254", false],
  ["fe80::1", false],
  ["fe80::1%eth0", false],
  ["fec0::1", false],
  ["ff02::1", false],
  ["", false],
  ["localhost", false],
  ["127.1", false],
])("%s is public: %s", (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected);
});

/** Every spelling of an address that browsers and resolvers take. */
test.each([
  "http://127.0.0.1/",
  "http://127.1/",
  "http://0x7f.1/",
  "http://0x7f000001/",
  "http://2130706433/",
  "http://0177.0.0.1/",
  "http://017700000001/",
  "http://127.0.0.1./",
  "http://①②⑦.⓪.⓪.①/",
  "http://127。0。0。1/",
  "http://%31%32%37.0.0.1/",
  "http://[::1]/",
  "http://[::]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]/",
  "http://[::127.0.0.1]/",
  "http://[64:ff9b::127.0.0.1]/",
  "http://[fe80::1]/",
  "http://[fd00:ec2::254]/",
  "http://0/",
  "http://localhost/",
  "http://localhost./",
  "http://LOCALHOST/",
  "http://a.localhost/",
  "http://printer.local/",
  "http://metadata.google.internal/computeMetadata/v1/",
  "http://metadata/",
  "http://169.254.169.254/latest/meta-data/",
  "http://2852039166/",
  "http://10.0.0.1:8080/",
])("%s is not on the public internet", (address) => {
  expect(problemOf(address)).toContain("is not on the public internet");
});

test.each([
  ["file:///etc/passwd", "Only http and https"],
  ["ftp://example.com/", "Only http and https"],
  ["javascript:alert(1)", "Only http and https"],
  ["data:text/plain,hello", "Only http and https"],
  ["gopher://example.com/_x", "Only http and https"],
  ["example.com:8080/a", "Only http and https"],
  ["http://user:secret@example.com/", "user name or password"],
  ["https://token@example.com/", "user name or password"],
  ["http://example.com:22/", "Port 22"],
  ["http://example.com:25/", "Port 25"],
  ["http://example.com:6667/", "Port 6667"],
  ["http://", "Not an address"],
  ["", "Not an address"],
  ["the moon", "Not an address"],
  ["http://exa mple.com/", "Not an address"],
  [`https://example.com/${"x".repeat(2000)}`, "Longer than 2000"],
])("refuses %s", (address, problem) => {
  const said = problemOf(address);
  expect(said).toContain(problem);
  expect(said).not.toContain("secret");
});

test.each([
  ["https://example.com/a?b=c#d", "https://example.com/a?b=c"],
  ["example.com/a", "https://example.com/a"],
  ["  http://example.com:8080/ ", "http://example.com:8080/"],
  ["https://bücher.example/", "https://xn--bcher-kva.example/"],
  ["http://[2606:4700::1111]/", "http://[2606:4700::1111]/"],
])("reads %s", (address, href) => {
  expect(hrefOf(address)).toBe(href);
});

test("ports of other protocols are none of web servers", () => {
  expect([80, 443, 1024, 3000, 8080, 8443].map(isWebPort)).not.toContain(false);
  expect([0, 21, 22, 25, 53, 110, 445, 993, 5060, 6000, 6667, 10_080].map(isWebPort)).not.toContain(true);
});

test("hosts that the operator names may be private and have any port", () => {
  const named = namedHosts(["wiki.corp", "*.lab.example", "127.0.0.1:8080", "[::1]:9000", "10.0.0.5"]);
  const allowed = [
    "http://wiki.corp:22/",
    "http://WIKI.corp./",
    "https://a.lab.example/",
    "http://127.1:8080/",
  ];
  expect(allowed.map((address) => problemOf(address, named))).toEqual(allowed.map(() => undefined));
  expect(hrefOf("http://[::1]:9000/", named)).toBeDefined();
  expect(hrefOf("http://10.0.0.5/", named)).toBeDefined();
  const others = [
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://wiki.corp.evil.internal/",
    "http://10.0.0.6/",
  ];
  for (const address of others) expect(problemOf(address, named)).toContain("public internet");
  expect(problemOf("http://user@wiki.corp/", named)).toContain("user name");
});

test("an entry that names no host says so", () => {
  for (const entry of ["", "https://wiki", "a/b", "*", "*.10.0.0.1", "wiki:port", "a b", "user@wiki"]) {
    expect(readHost(entry)).toBeTypeOf("string");
  }
  expect(readHost("::1")).toEqual({ name: "::1", isEnd: false });
});

test("a host counts with its port, and without www.", () => {
  const site = (address: string): string => approvedSite(new URL(address));
  expect(site("https://www.example.com/a")).toBe("example.com");
  expect(site("http://example.com./b")).toBe("example.com");
  expect(site("https://example.com:8443/")).toBe("example.com:8443");
  expect(site("https://docs.example.com/")).toBe("docs.example.com");
  expect(site("https://www.com/")).toBe("www.com");
});
