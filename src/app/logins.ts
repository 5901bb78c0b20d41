/** Log-ins at other MCP servers: encrypted files of the data directory, one for each server. */
import { memoized } from "../core/concurrency.ts";
import type { Environment } from "../agent/models/choose.ts";
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdir, open, readFile, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { McpUnavailableError } from "../agent/mcp-tools/failure-reasons.ts";
import type { Login, LoginOptions, LoginStore } from "../agent/mcp-tools/login.ts";
import type { McpServerConfig, RemoteMcpServer } from "../agent/mcp-tools/server-config.ts";
import { expandServer, takesLogin } from "../agent/mcp-tools/server-config.ts";
import { inProcessLock } from "../backends/filesystem/process-lock.ts";
import { PROGRAM } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import { ConfigurationError, codeOf } from "../core/errors.ts";
import { type FileLock, breakLock, isOlder, takeLock } from "../core/file-lock.ts";
import { loadKey, readKey } from "../core/key-file.ts";
import { keepSecret, readSecret } from "../core/keychain.ts";
import { judgedFetch } from "../web/judged-fetch.ts";
import { namedHosts } from "../web/url.ts";
import { parsedUrl } from "../core/unknown.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

/** The log-ins of this data directory, and the way to authorization servers. */
export function loginsOf({ dataDir, web }: Pick<Config, "dataDir" | "web">, env: Environment): LoginOptions {
  const isNamed = namedHosts(web.hosts);
  return {
    store: new LoginFiles(join(dataDir, "logins"), env),
    // A server inside the network may have its authorization server beside it.
    fetchFor: (server) => {
      const { hostname } = new URL(server);
      return judgedFetch({ isNamed: (url) => url.hostname === hostname || isNamed(url) });
    },
    command: (server, scope = "") =>
      `${PROGRAM} login ${server}${PASTED.test(scope) ? ` --scope "${scope}"` : ""}`,
    clock: systemClock,
  };
}

/**
 * Finds out whether a person can log in at a server; otherwise why not, in words that follow its name. `server`: with
 * its variables filled in. `secrets`: those of its configuration.
 */
export function loginPlace(
  given: McpServerConfig,
  env: Environment,
): { ok: true; server: RemoteMcpServer; secrets: readonly string[] } | { ok: false; problem: string } {
  const cannot = (problem: string) => ({ ok: false, problem }) as const;
  if (!("url" in given)) return cannot("is started by a command, so nobody logs in there.");
  if (given.noLogin) return cannot("has oauth switched off in its entry, so nobody logs in there.");
  if (!takesLogin(given)) return cannot(texts.hasOwnToken);
  try {
    const { server, secrets } = expandServer(given, env);
    if (!("url" in server) || parsedUrl(server.url) === undefined)
      return cannot("has a url that is not a valid address.");
    return { ok: true, server, secrets };
  } catch (error) {
    if (error instanceof McpUnavailableError) return cannot(`cannot be logged in at: ${error.message}.`);
    throw error;
  }
}

/** Permissions that mean themselves in every shell: a person pastes the line, and another server wrote them. */
const PASTED = /^[\w.:/@+-][\w.:/@+ -]*$/;

const KEY = "logins.key";
/** Name of the key in the keychain of the system. */
const KEY_NAME = "MCP_LOGIN_KEY";
const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts with a key of the system's keychain; where there is none, with one in a file beside them. */
class LoginFiles implements LoginStore {
  readonly #folder: string;
  readonly #env: Environment;
  readonly #loadKey = memoized(() => this.#findKey());

  constructor(folder: string, env: Environment) {
    this.#folder = folder;
    this.#env = env;
  }

  async read(server: string): Promise<Login | undefined> {
    const sealed = await this.#sealed(server);
    return sealed && this.#opened(server, sealed);
  }

  #sealed(server: string): Promise<Buffer | undefined> {
    return readFile(this.#file(server)).catch((error: unknown) =>
      codeOf(error) === "ENOENT" ? undefined : throwUnusable(error),
    );
  }

  async #opened(server: string, sealed: Buffer): Promise<Login> {
    const key = await this.#loadKey();
    try {
      const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES));
      decipher.setAAD(Buffer.from(server));
      decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const text = decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES), undefined, "utf8");
      return JSON.parse(text + decipher.final("utf8")) as Login; // only this class has the key
    } catch {
      throw new McpUnavailableError(fill(texts.loginKeyChanged, PROGRAM, server));
    }
  }

  async change(server: string, change: (kept: Login | undefined) => Promise<Login | undefined>) {
    const lock = await this.#lock(server).catch(throwUnusable);
    try {
      const sealed = await this.#sealed(server);
      // A log-in that cannot be decrypted is replaced.
      const kept = sealed && (await this.#opened(server, sealed).catch(() => undefined));
      const next = await change(kept);
      if (next === undefined) await rm(this.#file(server), { force: true }).catch(throwUnusable);
      else if (next !== kept) await this.#write(server, next).catch(throwUnusable);
      return next;
    } finally {
      lock.release();
    }
  }

  #file(server: string): string {
    return join(this.#folder, server);
  }

  async #write(server: string, login: Login): Promise<void> {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, await this.#loadKey(), iv);
    cipher.setAAD(Buffer.from(server));
    const body = Buffer.concat([cipher.update(JSON.stringify(login), "utf8"), cipher.final()]);
    const draft = `${this.#file(server)}.draft`;
    const file = await open(draft, "w", 0o600);
    try {
      await file.writeFile(Buffer.concat([iv, cipher.getAuthTag(), body]));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#file(server));
  }

  /** Waits until no other process changes the log-in. */
  async #lock(server: string): Promise<FileLock> {
    const path = `${this.#file(server)}.lock`;
    // Time after which a lock is left over from a process that ended, in ms. A renewal takes at most 20 s.
    const isStale = (file: string): boolean => isOlder(file, 45_000);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (;;) {
      const lock = takeLock(path);
      if (lock !== undefined) return lock;
      // One process at a time, so that none breaks the lock that another has taken since.
      if (isStale(path)) await inProcessLock(path, () => breakLock(path, isStale));
      else await wait(50);
    }
  }

  async #findKey(): Promise<Uint8Array> {
    const inFile = await readKey(join(this.#folder, KEY));
    if (inFile !== undefined) return inFile;
    const keychain = { platform: process.platform, env: this.#env };
    const kept = await readSecret(KEY_NAME, keychain);
    if (kept.ok) {
      const key = kept.secret ?? (await this.#firstKey(keychain));
      if (key !== undefined) return Buffer.from(key, "base64");
    } else if ((await readdir(this.#folder).catch(() => [])).some((file) => !file.includes(".")))
      throw new McpUnavailableError(`its log-in cannot be read: ${kept.problem}`);
    return loadKey(this.#folder, KEY);
  }

  /** Makes the key in the keychain, unless another process has just made it; `undefined`: the keychain refuses. */
  async #firstKey(keychain: Parameters<typeof readSecret>[1]): Promise<string | undefined> {
    const lock = await this.#lock("logins.key");
    try {
      const kept = await readSecret(KEY_NAME, keychain);
      if (kept.ok && kept.secret !== undefined) return kept.secret;
      const key = randomBytes(32).toString("base64");
      return (await keepSecret(KEY_NAME, key, keychain)) === undefined ? key : undefined;
    } finally {
      lock.release();
    }
  }
}

/** An error of the file system names a path of this machine, and models read why a server is missing. */
function throwUnusable(error: unknown): never {
  if (error instanceof McpUnavailableError || error instanceof ConfigurationError) throw error;
  const code = codeOf(error) ?? "unknown error";
  throw new McpUnavailableError(fill(texts.loginNotKept, code), { cause: error });
}
