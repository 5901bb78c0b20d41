/** Secrets in the keychain of the system: of macOS by `security`, of Linux desktops by `secret-tool` of libsecret. */
import { existsSync } from "node:fs";
import { ProgramFailure, runProgram } from "./child-process.ts";
import { defined } from "./unknown.ts";
import { codeOf } from "./errors.ts";

/** The secret under a name, if any, or the reason why the keychain cannot be read. */
export type Kept = { ok: true; secret: string | undefined } | { ok: false; problem: string };

export interface KeychainOptions {
  platform: NodeJS.Platform;
  env: Readonly<Record<string, string | undefined>>;
  /** Time limit in ms: a person may have to unlock it. Default 30,000. */
  timeout?: number;
}

/** Access to a keychain: a program, its arguments, and its standard input. */
interface Program {
  command: string;
  /** Instruction for people who do not have it. */
  remedy: string;
  read(name: string): string[];
  write(name: string, secret: string): { args: string[]; input: string };
  remove(name: string): string[];
  /** Exit code for a name that nothing is kept under. */
  absent: number;
}

const SERVICE = "deepagent-mcp";

const PROGRAMS: Partial<Record<NodeJS.Platform, Program>> = {
  darwin: {
    command: "security",
    remedy: "It is a part of macOS.",
    read: (name) => ["find-generic-password", "-s", SERVICE, "-a", name, "-w"],
    // Passed as a line on standard input, and in hexadecimal: other users can see the arguments of programs.
    write: (name, secret) => ({
      args: ["-i"],
      input: `add-generic-password -U -s ${SERVICE} -a ${name} -X ${Buffer.from(secret).toString("hex")}\n`,
    }),
    remove: (name) => ["delete-generic-password", "-s", SERVICE, "-a", name],
    absent: 44,
  },
  linux: {
    command: "secret-tool",
    remedy: "Install libsecret-tools.",
    read: (name) => ["lookup", "service", SERVICE, "account", name],
    write: (name, secret) => ({
      args: ["store", `--label=${name} of ${SERVICE}`, "service", SERVICE, "account", name],
      input: secret,
    }),
    remove: (name) => ["clear", "service", SERVICE, "account", name],
    absent: 1,
  },
};

/** Keys that need no quoting anywhere. */
const SECRET = /^[\x21-\x7e]{1,4096}$/;

/** Why a text cannot be a key. */
export const secretProblem = (text: string): string | undefined =>
  SECRET.test(text) ? undefined : "A key consists of at most 4,096 ASCII characters without blanks.";

/** The keychain of the system for a name, if there is one. */
const programFor = (name: string, { platform }: KeychainOptions): Program | undefined =>
  // Such names need no quoting anywhere.
  /^[A-Z_][A-Z0-9_]{0,63}$/.test(name) ? PROGRAMS[platform] : undefined;

export async function readSecret(name: string, options: KeychainOptions): Promise<Kept> {
  const program = programFor(name, options);
  if (program === undefined) return { ok: false, problem: NO_KEYCHAIN };
  try {
    const secret = (await runKeychain(program, program.read(name), options)).trim();
    return { ok: true, secret: SECRET.test(secret) ? secret : undefined };
  } catch (error) {
    return isAbsence(program, error)
      ? { ok: true, secret: undefined }
      : { ok: false, problem: describeFailure(error, program) };
  }
}

/** Keeps a secret, in place of an earlier one. Returns why that failed. */
export async function keepSecret(
  name: string,
  secret: string,
  options: KeychainOptions,
): Promise<string | undefined> {
  const program = programFor(name, options);
  if (program === undefined) return NO_KEYCHAIN;
  const unusable = secretProblem(secret);
  if (unusable !== undefined) return unusable;
  const { args, input } = program.write(name, secret);
  try {
    await runKeychain(program, args, options, input);
  } catch (error) {
    return describeFailure(error, program);
  }
  const kept = await readSecret(name, options);
  return kept.ok && kept.secret === secret ? undefined : "The keychain did not store it.";
}

/** Deletes the secret under a name, if any. Returns why that failed. */
export async function forgetSecret(name: string, options: KeychainOptions): Promise<string | undefined> {
  const program = programFor(name, options);
  if (program === undefined) return NO_KEYCHAIN;
  try {
    await runKeychain(program, program.remove(name), options);
  } catch (error) {
    if (!isAbsence(program, error)) return describeFailure(error, program);
  }
  const kept = await readSecret(name, options);
  if (!kept.ok) return kept.problem;
  return kept.secret === undefined ? undefined : "The keychain did not delete it.";
}

/** `secret-tool` has one exit code for a missing secret and for a failure, but explains only the failure. */
const isAbsence = ({ absent }: Program, error: unknown): boolean =>
  error instanceof ProgramFailure && error.code === absent && (absent !== 1 || error.message.trim() === "");

function runKeychain(
  { command }: Program,
  args: readonly string[],
  { env: own, timeout = 30_000 }: KeychainOptions,
  input?: string,
): Promise<string> {
  // Clients pass few variables; without this one, the keychain of a Linux desktop is not found.
  const bus = `/run/user/${process.getuid?.()}/bus`;
  const isNeeded = own["DBUS_SESSION_BUS_ADDRESS"] === undefined && existsSync(bus);
  const env = isNeeded ? { ...own, DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` } : own;
  return runProgram(command, args, { timeout, env, ...defined({ input }) });
}

const NO_KEYCHAIN = "This system has no keychain that deepagent-mcp can use.";

/** Passes on no output of a program: it may have the secret in it. */
function describeFailure(error: unknown, { command, remedy }: Program): string {
  if (codeOf(error) === "ENOENT") return `The keychain needs ${command}, which is not installed. ${remedy}`;
  if (error instanceof ProgramFailure && error.isTimeout)
    return "The keychain did not answer in time: it may be locked.";
  return `The keychain could not be used: ${command} failed. It may be locked, or need a desktop session.`;
}
