import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, rename, stat, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { systemClock, type Clock } from "../core/clock.ts";
import { ConfigurationError } from "../core/errors.ts";

const FILE = "state.key";
const PREVIOUS = `${FILE}.previous`;
const BYTES = 32;
const HOUR_MS = 3_600_000;
/** Age at which a key is replaced. */
const LIFETIME_MS = 30 * 24 * HOUR_MS;
/** How long a replaced key still verifies; longer than what it signed is valid. */
const OVERLAP_MS = 25 * HOUR_MS;
/** A rotation takes no longer; what is older was left by a process that died. */
const ROTATION_MS = 60_000;

/**
 * The secret that signs `requestState`, shared by all processes with this data directory; created by the
 * first that asks, and replaced by the first that asks after 30 days. Readable by its owner only.
 */
export async function loadStateKey(dataDir: string, clock: Clock = systemClock): Promise<Uint8Array> {
  const path = join(dataDir, FILE);
  const age = clock() - (await madeAt(path, clock));
  if (age >= LIFETIME_MS) await rotate(dataDir, clock);
  // Made while the clock was ahead, it would be as good as for ever: its time counts from now on.
  if (age < -HOUR_MS) await utimes(path, clock() / 1000, clock() / 1000).catch(() => undefined);
  const existing = await readKey(path);
  if (existing !== undefined) return existing;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await createKey(path);
  const created = await readKey(path);
  if (created !== undefined) return created;
  throw damaged();
}

/** The key before the current one, as long as something that it signed can still be valid. */
export async function loadPreviousStateKey(
  dataDir: string,
  clock: Clock = systemClock,
): Promise<Uint8Array | undefined> {
  const age = clock() - (await madeAt(join(dataDir, FILE), clock));
  return age < OVERLAP_MS ? readKey(join(dataDir, PREVIOUS)) : undefined;
}

/** Puts the key aside and a new one in its place. Of several processes one does it, the others go on. */
async function rotate(dataDir: string, clock: Clock): Promise<void> {
  const path = join(dataDir, FILE);
  const lock = `${path}.rotating`;
  try {
    await (await open(lock, "wx", 0o600)).close();
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
    if (Math.abs(clock() - (await madeAt(lock, clock))) >= ROTATION_MS) await removeFile(lock);
    return;
  }
  try {
    // Another process may have been faster.
    if (clock() - (await madeAt(path, clock)) < LIFETIME_MS) return;
    await rename(path, join(dataDir, PREVIOUS));
    await createKey(path);
  } finally {
    await removeFile(lock);
  }
}

/** When the file was written; now, when there is none. */
async function madeAt(path: string, clock: Clock): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (isCode(error, "ENOENT")) return clock();
    throw error;
  }
}

async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isCode(error, "ENOENT")) throw error;
  });
}

async function readKey(path: string): Promise<Uint8Array | undefined> {
  let key: Buffer;
  try {
    key = await readFile(path);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
  if (key.byteLength !== BYTES) throw damaged();
  await chmod(path, 0o600).catch((error: unknown) => {
    // It was put aside just now; what was read is a key all the same.
    if (!isCode(error, "ENOENT")) throw error;
  });
  return key;
}

/** Writes aside and links into place, so that the file is complete when it appears and the first one wins. */
async function createKey(path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(draft, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(BYTES));
    await file.sync();
    await file.close();
    await link(draft, path);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    await file.close();
    await unlink(draft);
  }
}

function damaged(): ConfigurationError {
  return new ConfigurationError(
    "state_key_damaged",
    `The file ${FILE} in the data directory is not a key of ${BYTES} bytes. Delete it; a new one is made.`,
  );
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
