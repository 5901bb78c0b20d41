/** Secret keys in files that only their owner can read. */
import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { ConfigurationError, codeOf } from "./errors.ts";

const KEY_BYTES = 32;

/**
 * Reads the key in a file of a folder. The first process that asks creates it.
 *
 * @throws ConfigurationError if the file is damaged.
 */
export async function loadKey(folder: string, file: string): Promise<Uint8Array> {
  const path = join(folder, file);
  const existing = await readKey(path);
  if (existing !== undefined) return existing;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await createKey(path);
  const created = await readKey(path);
  if (created !== undefined) return created;
  throw damaged(path);
}

/** Reads a key; `undefined` without the file. @throws ConfigurationError if the file is damaged. */
export async function readKey(path: string): Promise<Uint8Array | undefined> {
  let key: Buffer;
  try {
    key = await readFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  if (key.byteLength !== KEY_BYTES) throw damaged(path);
  await chmod(path, 0o600);
  return key;
}

/** Writes a draft and links it into place, so that the file is complete when it appears and the first one wins. */
async function createKey(path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(draft, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(KEY_BYTES));
    await file.sync();
    await file.close();
    await link(draft, path);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    await file.close();
    await unlink(draft);
  }
}

function damaged(path: string): ConfigurationError {
  const name = basename(path);
  const message = `The file ${name} in the data directory is not a key of ${KEY_BYTES} bytes. Delete it; a new one is made.`;
  return new ConfigurationError(`${name.replace(".", "_")}_damaged`, message);
}
