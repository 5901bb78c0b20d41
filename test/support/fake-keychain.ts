import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { onTestFinished } from "vitest";

/** `security` and `secret-tool`, which keep secrets in a file, and note how they are called. */
const PROGRAM = `#!${process.execPath}
const { appendFileSync, readFileSync, writeFileSync } = require("node:fs");
const folder = __dirname;
const args = process.argv.slice(2);
appendFileSync(folder + "/calls", JSON.stringify(args) + "\\n");
const secrets = () => JSON.parse(readFileSync(folder + "/secrets.json", "utf8"));
const keep = (name, secret) => writeFileSync(folder + "/secrets.json", JSON.stringify({ ...secrets(), [name]: secret }));
const show = (secret, absent) => {
  if (secret === undefined) process.exit(absent);
  process.stdout.write(secret);
};
if (process.env.KEYCHAIN_HANGS) setTimeout(() => {}, 1e6);
else if (process.env.KEYCHAIN_FAILS) {
  process.stderr.write("cannot use sk-secret\\n");
  process.exit(1);
} else if (args[0] === "clear" || args[0] === "delete-generic-password") {
  const { [args[4]]: gone, ...others } = secrets();
  if (gone === undefined) process.exit(args[0] === "clear" ? 1 : 44);
  writeFileSync(folder + "/secrets.json", JSON.stringify(others));
} else if (args[0] === "lookup") show(secrets()[args[4]], 1);
else if (args[0] === "store") keep(args[5], readFileSync(0, "utf8"));
else if (args[0] === "find-generic-password") show(secrets()[args[4]] && secrets()[args[4]] + "\\n", 44);
else if (args[0] === "-i") {
  const [, name, hex] = / -a (\\S+) -X (\\S+)$/m.exec(readFileSync(0, "utf8"));
  keep(name, Buffer.from(hex, "hex").toString());
} else process.exit(2);
`;

export interface FakeKeychain {
  /** The folder of the programs in front of those that are there. */
  path: string;
  secrets(): Record<string, string>;
  /** The arguments of each call. */
  calls(): string[][];
}

export function fakeKeychain(secrets: Record<string, string> = {}): FakeKeychain {
  const folder = mkdtempSync(join(tmpdir(), "keychain-"));
  onTestFinished(() => rmSync(folder, { recursive: true, maxRetries: 3 }));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"type":"commonjs"}');
  writeFileSync(join(folder, "secrets.json"), JSON.stringify(secrets));
  writeFileSync(join(folder, "calls"), "");
  for (const name of ["security", "secret-tool"]) {
    writeFileSync(join(folder, name), PROGRAM);
    chmodSync(join(folder, name), 0o755);
  }
  const lines = (): string[] => readFileSync(join(folder, "calls"), "utf8").trimEnd().split("\n");
  return {
    path: `${folder}${delimiter}${process.env["PATH"]}`,
    secrets: () => JSON.parse(readFileSync(join(folder, "secrets.json"), "utf8")) as Record<string, string>,
    calls: () => lines().flatMap((line) => (line === "" ? [] : [JSON.parse(line) as string[]])),
  };
}
