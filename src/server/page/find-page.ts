/** How a command of the same person finds the page that a server of their data folder serves. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** Where the page is, unless another program has the port. */
const PAGE_PORT = 7373;

const FILE = "page.json";
const Place = z.object({ address: z.url() });
const Answer = z.object({ link: z.url(), proof: z.string() });
const PATIENCE_MS = 2000;
/** How long a request for a link is good, in milliseconds. */
const FRESH_MS = 60_000;

/** Notes where the page is: `PAGE_PORT` may be taken by another data folder. */
export async function notePage(dataDir: string, address: string): Promise<void> {
  await writeFile(join(dataDir, FILE), JSON.stringify({ address }), { mode: 0o600 });
}

/** Takes the note back, unless another server has made one since. */
export async function forgetPage(dataDir: string, address: string): Promise<void> {
  if ((await notedPage(dataDir)) === address) await rm(join(dataDir, FILE), { force: true });
}

/** Where to serve the page: where a server was that was killed, because browsers may still wait for it there. */
export async function pagePort(dataDir: string): Promise<number> {
  const noted = await notedPage(dataDir);
  return noted === undefined ? PAGE_PORT : Number(new URL(noted).port || PAGE_PORT);
}

async function notedPage(dataDir: string): Promise<string | undefined> {
  const text = await readFile(join(dataDir, FILE), "utf8").catch(() => "null");
  try {
    return Place.parse(JSON.parse(text)).address;
  } catch {
    return undefined;
  }
}

/**
 * Proves to the server at `host` that who asks for a link has the key of the data folder. Good there alone: whoever
 * else has a port that is asked cannot pass it on.
 */
export const linkProof = (key: Uint8Array, host: string, now: number): string =>
  `${now}.${sign(key, `ask ${host} ${now}`)}`;

/** Proves the same of who answers. `undefined`: what was asked with is no proof, or was made too long ago. */
export function answerProof(key: Uint8Array, host: string, proof: string, now: number): string | undefined {
  const [time = ""] = proof.split(".", 1);
  const isFresh = Math.abs(now - Number(time)) <= FRESH_MS;
  if (!isFresh || !isSame(proof, linkProof(key, host, Number(time)))) return undefined;
  return sign(key, `answer ${host} ${time}`);
}

const sign = (key: Uint8Array, text: string): string =>
  createHmac("sha256", key).update(`page link ${text}`).digest("base64url");

export function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/**
 * Asks the server of this data folder for a link to its page; `first` is the run to open. `undefined`: none serves
 * one. The key is not shown to whatever answers at these addresses, only a proof of it.
 */
export async function findPage(
  dataDir: string,
  key: Uint8Array,
  now: number,
  first?: string,
): Promise<string | undefined> {
  const noted = await notedPage(dataDir);
  for (const address of [`http://127.0.0.1:${PAGE_PORT}/`, ...(noted === undefined ? [] : [noted])]) {
    const link = await askFor(new URL("/link", address), key, now, first).catch(() => undefined);
    if (link !== undefined) return link;
  }
  return undefined;
}

async function askFor(
  url: URL,
  key: Uint8Array,
  now: number,
  first: string | undefined,
): Promise<string | undefined> {
  if (url.hostname !== "127.0.0.1") return undefined;
  const asked = linkProof(key, url.host, now);
  const response = await fetch(url, {
    method: "POST",
    headers: { origin: url.origin, authorization: `Proof ${asked}` },
    body: new URLSearchParams(first === undefined ? {} : { first }),
    redirect: "error",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!response.ok) return undefined;
  const { link, proof } = Answer.parse(await response.json());
  const isOurs = isSame(proof, answerProof(key, url.host, asked, now) ?? "");
  return isOurs && new URL(link).origin === url.origin ? link : undefined;
}
