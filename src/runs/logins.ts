/** People who log in at this server with password and one-time code, and the tokens that they granted to clients. */
import { createHash, createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Clock } from "../core/clock.ts";
import { textMemberOf } from "../core/unknown.ts";
import { type Principal, SCOPES } from "./run.ts";
import type { RunRepository } from "./sql/repository.ts";

/** A model of the authorization server, such as `AccessToken`. Only clients and grants are found by their ids in clear. */
export const storedId = (model: string, id: string): string =>
  model === "Client" || model === "Grant" ? id : createHash("sha256").update(id).digest("base64url");

/** Number of attempts in five minutes, after which a name is locked. */
const MOST_TRIES = 5;
const TRY_MS = 5 * 60_000;
/** Lifetime of a browser's log-in to the page. */
const PAGE_MS = 12 * 3_600_000;
/** Replaces the hash of an unknown person: a salt of 16 bytes and 32 bytes. */
const NOBODY = `${"A".repeat(22)}.${"A".repeat(43)}`;
const COST = { N: 32_768, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };

export class Logins {
  readonly rows: RunRepository["logins"];
  readonly clock: Clock;
  /** The server's own key, and the one before it: at least 32 bytes each. */
  readonly #keys: () => Promise<readonly Uint8Array[]>;

  constructor(rows: Logins["rows"], clock: Clock, keys: () => Promise<readonly Uint8Array[]>) {
    this.rows = rows;
    this.clock = clock;
    this.#keys = keys;
  }

  /** Keys for one purpose, the newest first. */
  async keysFor(purpose: string): Promise<Buffer[]> {
    const keys = await this.#keys();
    return keys.map((key) => createHmac("sha256", key).update(`log-in ${purpose}`).digest());
  }

  /** Returns the address that authenticator apps take; `undefined`: there is a person of this name. */
  async add(name: Principal, password: string): Promise<string | undefined> {
    const stored = await hashed(password, randomBytes(16));
    const added = await this.rows.change("add owner", { name, password: stored, now: this.clock() });
    const [totp] = await this.#codesFor(name, stored);
    return added > 0 ? totp?.toString() : undefined;
  }

  /** Ends everything that a person granted to clients and browsers. */
  logOut = (name: Principal): Promise<number> => this.rows.change("log out", { name });

  /** Does the same work for a name that nobody has. A code is accepted once, by any server on this storage. */
  async check(name: string, password: string, code: string): Promise<boolean> {
    const now = this.clock();
    const counted = { name, now, since: now - TRY_MS, most: MOST_TRIES };
    const mayTry = (await this.rows.change("count try", counted)) > 0;
    const [owner] = await this.rows.read<{ password: string }>("owner", { name });
    const stored = owner?.password ?? NOBODY;
    const given = await hashed(password, saltFrom(stored));
    if (!timingSafeEqual(Buffer.from(given), Buffer.from(stored)) || !mayTry || !owner) return false;
    for (const totp of await this.#codesFor(name, stored)) {
      const delta = totp.validate({ token: code.replaceAll(" ", ""), timestamp: now, window: 1 });
      const number = totp.counter({ timestamp: now }) + (delta ?? 0);
      if (delta !== null) return (await this.rows.change("accept code", { name, code: number })) > 0;
    }
    return false;
  }

  /** One-time codes of a person, by each key of the server. Their secret is not stored. */
  async #codesFor(label: Principal, stored: string) {
    const { Secret, TOTP } = await import("otpauth");
    return (await this.keysFor("one-time codes")).map((key) => {
      const { buffer } = Uint8Array.from(createHmac("sha1", key).update(saltFrom(stored)).digest());
      return new TOTP({ issuer: "deepagent-mcp", label, secret: new Secret({ buffer }) });
    });
  }

  /** Finds the person and the rights of an access token. Returns undefined if it is unknown, revoked or expired. */
  async token(token: string) {
    const [row] = await this.rows.read<{ body: string; principal: Principal; expires_at: number }>("token", {
      id: storedId("AccessToken", token),
      now: this.clock(),
    });
    if (row === undefined) return undefined;
    const body: unknown = JSON.parse(row.body);
    const [scope = "", audience] = [textMemberOf(body, "scope"), textMemberOf(body, "aud")];
    return { principal: row.principal, scopes: scope.split(" "), audience, expiresAt: row.expires_at };
  }

  /** Makes a token for a browser at the page, which is listed and revoked as those of clients are. */
  async openPage(principal: Principal, audience: string): Promise<string> {
    const token = randomBytes(32).toString("base64url");
    const [scopes, now] = [SCOPES.join(" "), this.clock()];
    const ids = { uid: storedId("AccessToken", token), id: crypto.randomUUID() };
    const body = JSON.stringify({ scope: scopes, aud: audience });
    await this.rows.change("open page", { ...ids, principal, scopes, body, now, expires_at: now + PAGE_MS });
    return token;
  }
}

const saltFrom = (stored: string): Buffer => Buffer.from(stored.split(".")[0] ?? "", "base64url");

const scryptHash = promisify<string, Buffer, number, typeof COST, Buffer>(scrypt);

async function hashed(password: string, salt: Buffer): Promise<string> {
  const hash = await scryptHash(password.normalize("NFC"), salt, 32, COST);
  return `${salt.toString("base64url")}.${hash.toString("base64url")}`;
}
