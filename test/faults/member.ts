import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import type { TcpLink } from "../support/tcp-link.ts";

export interface MemberOptions {
  name: string;
  /** The program with its arguments, behind Node. */
  command: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Its network to Postgres. */
  link: TcpLink;
  /** Where it serves; `undefined`: nowhere. */
  url: string | undefined;
}

const RESTART_MS = 500;
/** Lines of its log that say that something went wrong in the program itself. */
const ALARMING =
  /unhandled_rejection|tool\.failed|run\.unexpected_error|run\.not_settled|http\.request_failed/;
/** A process that has no other work writes fewer lines than this in a second. */
const LINES_A_SECOND = 60;

/** One process of the program, as on a machine of its own: it can be killed, stopped and started again. */
export class Member {
  readonly name: string;
  readonly link: TcpLink;
  readonly url: string | undefined;
  /** What must not happen, as far as its log and its end tell. */
  readonly complaints: string[] = [];
  readonly #options: MemberOptions;
  #process: ChildProcess | undefined;
  #gone: Promise<unknown> = Promise.resolve();
  #newest: string[] = [];
  #lines = { second: 0, count: 0 };

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.link = options.link;
    this.url = options.url;
  }

  start(): void {
    const { command, env } = this.#options;
    const [program = "", ...args] = [...ownMachine(), process.execPath, ...command];
    const child = spawn(program, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    this.#newest = [];
    createInterface({ input: child.stderr }).on("line", (line) => this.#read(line));
    this.#gone = once(child, "close");
    child.once("close", (code, signal) => {
      if (this.#process !== child) return;
      this.complaints.push(`${this.name} ended by itself (${code ?? signal}): ${this.#newest.join("\n")}`);
      this.#process = undefined;
      // As whoever runs it would do.
      setTimeout(() => this.start(), RESTART_MS);
    });
    const endWithUs = (): void => void child.kill("SIGKILL");
    process.once("exit", endWithUs);
    child.once("exit", () => process.removeListener("exit", endWithUs));
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** How the names of leases end that it holds. `undefined`: this system does not tell. */
  get mark(): string | undefined {
    const pid = this.#pid();
    if (pid === undefined) return undefined;
    try {
      const namespace = readlinkSync(`/proc/${pid}/ns/pid`);
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
      const machine = createHash("sha256").update(boot).update(namespace).digest("hex").slice(0, 16);
      return `.${machine}.${pid === this.#process?.pid ? pid : 1}`;
    } catch {
      return undefined;
    }
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    child?.kill("SIGKILL");
    await this.#gone;
  }

  /** Asks it to end; gives its exit code. */
  async terminate(): Promise<number | null> {
    const child = this.#process;
    const pid = this.#pid();
    this.#process = undefined;
    if (pid !== undefined) process.kill(pid, "SIGTERM");
    await this.#gone;
    return child?.exitCode ?? null;
  }

  /** As a machine that is suspended: nothing in it goes on, until `wake`. */
  sleep(): void {
    const pid = this.#pid();
    if (pid !== undefined) process.kill(pid, "SIGSTOP");
  }

  wake(): void {
    const pid = this.#pid();
    if (pid !== undefined) process.kill(pid, "SIGCONT");
  }

  /** The program's own process, below the one that gives it a machine of its own. */
  #pid(): number | undefined {
    const pid = this.#process?.pid;
    if (pid === undefined || ownMachine().length === 0) return pid;
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    return child ? Number(child) : undefined;
  }

  #read(line: string): void {
    this.#newest = [...this.#newest, line].slice(-5);
    if (ALARMING.test(line)) this.complaints.push(`${this.name}: ${line}`);
    const second = Math.floor(performance.now() / 1000);
    this.#lines = { second, count: this.#lines.second === second ? this.#lines.count + 1 : 1 };
    if (this.#lines.count === LINES_A_SECOND) {
      this.complaints.push(`${this.name} writes ${LINES_A_SECOND} lines in a second: ${line}`);
    }
  }
}

let machine: readonly string[] | undefined;

/**
 * What starts a program in process ids of its own, so that no other one can tell that it is gone; nothing where that
 * is not allowed. It ends when what it starts ends, and the other way round.
 */
function ownMachine(): readonly string[] {
  if (machine !== undefined) return machine;
  const command = ["unshare", "--pid", "--fork", "--kill-child"];
  try {
    execFileSync(command[0] ?? "", [...command.slice(1), "true"], { stdio: "pipe" });
    machine = command;
  } catch {
    machine = [];
  }
  return machine;
}
