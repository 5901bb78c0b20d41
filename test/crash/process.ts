import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { bundled } from "../support/bundled.ts";
import type { Request } from "./server.ts";

/** The server of this folder as a program. */
export const serverProgram = (): Promise<string> => bundled("test/crash/server.ts");

/** The other MCP server of this folder as a program. */
export const linesProgram = (): Promise<string> => bundled("test/crash/lines-server.ts");

interface Answer {
  id: number;
  result?: unknown;
  error?: string;
}

/** A server process. Requests to one that was killed are never answered. */
export class ServerProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly #gone: Promise<unknown>;
  readonly ready: Promise<void>;
  /** All it wrote to its standard error. */
  log = "";
  #requests = 0;

  /** Loads its code, then waits for `open`. `under`: a program that starts it, with its arguments. */
  constructor(script: string, under: readonly string[] = []) {
    const [command, ...args] = [...under, process.execPath, script];
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
      process.stderr.write(text);
    });
    this.#gone = once(child, "close");
    child.stdin.on("error", () => undefined);
    let isReady = (): void => undefined;
    this.ready = new Promise((resolve) => (isReady = resolve));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line) as { ready: true } | Answer;
      if ("ready" in message) return isReady();
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
  }

  /** What the server answered; `undefined` also when it is gone. @throws what it could not do. */
  async ask(request: Request): Promise<unknown> {
    const id = (this.#requests += 1);
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    const answer = await Promise.race([answered, this.#gone.then(() => undefined)]);
    if (answer?.error !== undefined) throw new Error(answer.error);
    return answer?.result;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  /** Ends it as when its user is gone: without closing anything. */
  async leave(): Promise<void> {
    this.#child.stdin.end();
    await this.#gone;
  }

  /** Asks it to end, and gives its exit code. */
  async terminate(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    await this.#gone;
    return this.#child.exitCode;
  }

  /** As a laptop that is closed: nothing in it goes on, until `wake`. */
  sleep(): void {
    this.#child.kill("SIGSTOP");
  }

  wake(): void {
    this.#child.kill("SIGCONT");
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it has ended, by itself or not. */
  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
