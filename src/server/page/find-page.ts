/** Finds the page that a server of the data folder serves, for a command of the same person. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { parsedJson, defined } from "../../core/unknown.ts";

const FILE = "page.json";

/** Notes where a page is: each server has a port of its own. Returns a function that takes the note back. */
export async function notePage(dataDir: string, address: string): Promise<() => Promise<void>> {
  const others = async (): Promise<string[]> =>
    (await notedPages(dataDir)).filter((other) => other !== address);
  await writeNote(dataDir, [address, ...(await others())]);
  return async () => writeNote(dataDir, await others());
}

async function writeNote(dataDir: string, [address, ...earlier]: readonly string[]): Promise<void> {
  const file = join(dataDir, FILE);
  if (address === undefined) return rm(file, { force: true });
  const note = { address, earlier: earlier.slice(0, 9) };
  return writeFile(file, JSON.stringify(note), { mode: 0o600 });
}

async function notedPages(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, FILE), "utf8").catch(() => "");
  // The newest server, then earlier ones that may still run.
  const schema = z.object({ address: z.url(), earlier: z.array(z.url()).default([]) });
  const { data } = schema.safeParse(parsedJson(text));
  return data === undefined ? [] : [data.address, ...data.earlier];
}

/**
 * Proves to the server at `host` that the requester of a link has the key of the data folder. The proof is valid for
 * this port only, so the owner of another port cannot forward it.
 */
export const linkProof = (key: Uint8Array, host: string, now: number): string =>
  `${now}.${sign(key, `ask ${host} ${now}`)}`;

const answerTo = (key: Uint8Array, host: string, asked: string): string =>
  sign(key, `answer ${host} ${asked}`);

/**
 * Judges proofs for one server, each good once. A proof from before the server had its port is refused: whatever
 * listened there earlier may have kept it.
 */
export class LinkProofs {
  readonly #key: Uint8Array;
  readonly #clock: Clock;
  /** Proofs that were used, and when they were made. */
  readonly #used = new Map<string, number>();
  #host = "";
  #began = Infinity;

  constructor(key: Uint8Array, clock: Clock) {
    this.#key = key;
    this.#clock = clock;
  }

  /** Sets the server's host and port from now on. */
  beginAt(host: string): void {
    this.#host = host;
    this.#began = this.#clock();
  }

  /** Proves in return that the server has the key too. `undefined`: the proof is not good here and now. */
  answer(proof: string): string | undefined {
    const now = this.#clock();
    for (const [used, made] of this.#used) if (!isFresh(made, now)) this.#used.delete(used);
    const made = Number(proof.split(".", 1)[0]);
    const isOurs = made >= this.#began && isFresh(made, now) && !this.#used.has(proof);
    if (!isOurs || !isSame(proof, linkProof(this.#key, this.#host, made))) return undefined;
    this.#used.set(proof, made);
    return answerTo(this.#key, this.#host, proof);
  }
}

const isFresh = (made: number, now: number): boolean => Math.abs(now - made) <= 60_000;

const sign = (key: Uint8Array, text: string): string =>
  createHmac("sha256", key).update(`page link ${text}`).digest("base64url");

export function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/**
 * Asks the server of this data folder for a link to its page; `first` is the run to open. `undefined`: none serves
 * one. Whatever answers at these addresses gets a proof of the key and not the key.
 */
export async function findPage(
  dataDir: string,
  key: Uint8Array,
  now: number,
  first?: string,
): Promise<string | undefined> {
  for (const address of await notedPages(dataDir)) {
    const link = await askFor(new URL("/link", address), key, now, first).catch(() => undefined);
    if (link !== undefined) return link;
  }
  return undefined;
}

async function askFor(url: URL, key: Uint8Array, now: number, first?: string): Promise<string | undefined> {
  if (url.hostname !== "127.0.0.1") return undefined;
  const asked = linkProof(key, url.host, now);
  const response = await fetch(url, {
    method: "POST",
    headers: { origin: url.origin, authorization: `Proof ${asked}` },
    body: new URLSearchParams(defined({ first })),
    redirect: "error",
    signal: AbortSignal.timeout(2000),
  });
  if (!response.ok) return undefined;
  const { link, proof } = z.object({ link: z.url(), proof: z.string() }).parse(await response.json());
  const isOurs = isSame(proof, answerTo(key, url.host, asked));
  return isOurs && new URL(link).origin === url.origin ? link : undefined;
}
