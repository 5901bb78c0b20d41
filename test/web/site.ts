/** Web servers of this machine, and readers that reach them under names of the web. */
import { type RequestListener, createServer } from "node:http";
import { type WebLimits, type WebPage, PageReader } from "../../src/web/page-reader.ts";
import type { Resolve } from "../../src/web/request.ts";
import { namedHosts, readUrl } from "../../src/web/url.ts";
import { addressOf } from "../support/http-address.ts";

/** Starts a server; gives its port. */
export async function startSite(answer: RequestListener): Promise<number> {
  return Number(new URL(await addressOf(createServer(answer))).port);
}

/** Pages by path; everything else is not found. */
export function pages(
  byPath: Readonly<Record<string, string | { type?: string; body: string | Buffer }>>,
): RequestListener {
  return ({ url = "" }, response) => {
    const page = byPath[url];
    if (page === undefined) return void response.writeHead(404).end();
    const { type = "text/html", body } = typeof page === "string" ? { body: page } : page;
    response.writeHead(200, { "content-type": type }).end(body);
  };
}

export const LOCAL: Resolve = async () => [{ address: "127.0.0.1", family: 4 }];

export const USER_AGENT = "deepagent-mcp/1.2.3";

export interface ReaderLook {
  hosts?: readonly string[];
  resolve?: Resolve;
  limits?: Partial<WebLimits>;
  /** Default: every redirect is followed. */
  follows?: (to: URL) => boolean;
}

/** Reads pages of `site.test`, which is this machine. */
export function testReader({
  hosts = ["site.test"],
  resolve = LOCAL,
  limits,
  follows = () => true,
}: ReaderLook = {}) {
  const isNamed = namedHosts(hosts);
  const reader = new PageReader({
    network: { isNamed, resolve },
    userAgent: USER_AGENT,
    ...(limits ? { limits } : {}),
    clock: () => Date.parse("2026-01-31T12:00:00Z"),
  });
  return (address: string, signal = new AbortController().signal): Promise<WebPage> => {
    const read = readUrl(address, isNamed);
    if (!read.ok) throw new Error(read.problem);
    return reader.read(read.url, { signal, follows });
  };
}
