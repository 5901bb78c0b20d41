/** The SDK's clients log in by themselves: they find the server, register, and come back with a code. */
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, expect, test, vi } from "vitest";
import { Browser, LOOPBACK, type Site, form, openSite } from "./support.ts";

afterEach(() => void vi.useRealTimers());

interface Kept {
  client?: { client_id: string };
  tokens?: { access_token: string; refresh_token?: string; scope?: string };
  verifier?: string;
  discovery?: unknown;
  address?: URL;
}

const INFO = { name: "sdk", version: "1.0.0" };

/** What both clients ask their program for. */
const authFor = (kept: Kept): never =>
  ({
    redirectUrl: LOOPBACK,
    clientMetadata: { client_name: "An SDK client", redirect_uris: [LOOPBACK] },
    state: () => "state",
    clientInformation: () => kept.client,
    saveClientInformation: (client: Kept["client"]) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens: Kept["tokens"]) => void (kept.tokens = tokens),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
    saveDiscoveryState: (state: unknown) => void (kept.discovery = state),
    discoveryState: () => kept.discovery,
    redirectToAuthorization: (address: URL) => void (kept.address = address),
    invalidateCredentials: (what: string) => {
      if (what === "all" || what === "tokens") delete kept.tokens;
    },
  }) as never; // both SDKs have a type of their own for it

const WAYS = {
  "SDK v1": {
    open: (url: URL, kept: Kept) => new FirstHttp(url, { authProvider: authFor(kept) }),
    connect: async (transport: FirstHttp | ModernHttp) => {
      const client = new FirstClient(INFO);
      await client.connect(transport);
      return client;
    },
    finish: (transport: FirstHttp | ModernHttp, back: URL) =>
      (transport as FirstHttp).finishAuth(back.searchParams.get("code") ?? ""),
  },
  "SDK v2": {
    open: (url: URL, kept: Kept) => new ModernHttp(url, { authProvider: authFor(kept) }),
    connect: async (transport: FirstHttp | ModernHttp) => {
      const client = new ModernClient(INFO);
      await client.connect(transport);
      return client;
    },
    finish: (transport: FirstHttp | ModernHttp, back: URL) =>
      (transport as ModernHttp).finishAuth(back.searchParams),
  },
};

const echo = async (client: FirstClient | ModernClient): Promise<unknown> => {
  const result = await client.callTool({ name: "echo", arguments: { text: "hello" } });
  return result.content;
};
const HELLO = [{ type: "text", text: "hello" }];

test.each(Object.entries(WAYS))(
  "%s logs in, renews its token, and logs in again once it is revoked",
  async (_name, way) => {
    const site: Site = await openSite();
    const kept: Kept = {};
    const logIn = async (browser: Browser) => {
      const url = new URL(site.url);
      const first = way.open(url, kept);
      await expect(way.connect(first)).rejects.toThrow();
      await way.finish(first, await browser.open(kept.address?.href ?? ""));
      return way.connect(way.open(url, kept));
    };
    const owner = await site.person();
    const client = await logIn(new Browser(site, owner));
    expect(await echo(client)).toEqual(HELLO);
    expect(kept.tokens?.scope).toBe("run read");

    const before = kept.tokens;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 9 * 3_600_000 });
    expect(await echo(client)).toEqual(HELLO);
    expect(kept.tokens?.access_token).not.toBe(before?.access_token);
    expect(kept.tokens?.refresh_token).not.toBe(before?.refresh_token);

    await form(site, "/oauth/revoke", {
      token: kept.tokens?.refresh_token ?? "",
      client_id: kept.client?.client_id ?? "",
    });
    delete kept.address;
    await expect(echo(client)).rejects.toThrow();
    expect(kept.address).toBeDefined();
  },
);
