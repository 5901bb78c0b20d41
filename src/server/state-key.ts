import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ConfigurationError } from "../core/errors.ts";

const FILE = "state.key";
const BYTES = 32;

/**
 * The secret that signs `requestState`, shared by all processes with this data directory; created by the
 * first that asks. Readable by its owner only.
 */
export async function loadStateKey(dataDir: string): Promise<Uint8Array> {
  const path = join(dataDir, FILE);
  const existing = await readKey(path);
  if (existing !== undefined) return existing;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await createKey(path);
  const created = await readKey(path);
  if (created !== undefined) return created;
  throw damaged();
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
  await chmod(path, 0o600);
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
