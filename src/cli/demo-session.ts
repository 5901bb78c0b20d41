/** A client of the built server, as the demo needs one. */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { z } from "zod";
import { tailOf } from "../core/text.ts";
import { type ApprovalAnswer, ApprovalForm } from "./terminal/ask.ts";
import { RunPicture } from "./terminal/tree.ts";

export interface SessionOptions {
  /** Program and arguments of the server. */
  command: string;
  args: string[];
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  /** Decides on an approval; `undefined` leaves it open. */
  approve(form: ApprovalForm): Promise<ApprovalAnswer | undefined>;
  /** The newest state of the run, while it is worked on. */
  show(picture: RunPicture): void;
}

export interface RunEnd {
  picture: RunPicture;
  toolCalls: number;
}

/** A server as a child process and a client connected to it, as any MCP client would be. */
export interface Session {
  /** Revision that client and server agreed on. */
  protocolVersion: string;
  serverName: string;
  /** Follows the run to its end. Rejects with what the server said when none could be started. */
  run(task: string, signal: AbortSignal): Promise<RunEnd>;
  readText(uri: string): Promise<string>;
  /** The run that was started last, as soon as it is known. */
  runId: string | undefined;
  cancel(runId: string): Promise<void>;
  close(): Promise<void>;
}

const CALL_TIMEOUT_MS = 10 * 60_000;
const MAX_ROUNDS = 1000;
const MAX_STDERR = 4000;
const CHECK_SECONDS = 60;

const Report = z.object({ run_id: z.string(), status: RunPicture.shape.status, last_event: z.int() });
const Content = z.array(z.object({ text: z.string().optional() }));

export async function openSession(options: SessionOptions): Promise<Session> {
  const client = new Client(
    { name: "deepagent-demo", version: options.version },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: "auto" },
      inputRequired: { maxRounds: MAX_ROUNDS },
    },
  );
  // One question at a time, however many the server asks at once.
  let questions: Promise<unknown> = Promise.resolve();
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    const form = ApprovalForm.parse(params);
    const turn = questions.then(() => options.approve(form));
    questions = turn.catch(() => undefined);
    const answer = await turn;
    return answer === undefined ? { action: "cancel" } : { action: "accept", content: { ...answer } };
  });
  const transport = new OneProcess({
    command: options.command,
    args: options.args,
    env: definedOnly(options.env),
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => (stderr = tailOf(stderr + chunk.toString(), MAX_STDERR)));
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`The server did not start. ${stderr}`.trim(), { cause: error });
  }
  return new DemoSession(client, (picture) => options.show(picture));
}

/** Keeps the client from starting a second process to ask for the protocol version, which it does for the base class. */
class OneProcess extends StdioClientTransport {}

class DemoSession implements Session {
  readonly #client: Client;
  readonly #show: (picture: RunPicture) => void;
  runId: string | undefined;
  #reading = false;

  constructor(client: Client, show: (picture: RunPicture) => void) {
    this.#client = client;
    this.#show = show;
  }

  get protocolVersion(): string {
    return this.#client.getNegotiatedProtocolVersion() ?? "unknown";
  }

  get serverName(): string {
    const { name = "server", version = "" } = this.#client.getServerVersion() ?? {};
    return `${name} ${version}`.trim();
  }

  async run(task: string, signal: AbortSignal): Promise<RunEnd> {
    let report = await this.#call("run_deep_agent", { task }, signal);
    while (report.status === "working" || report.status === "input_required") {
      signal.throwIfAborted();
      const args = { run_id: report.run_id, after: report.last_event, wait_seconds: CHECK_SECONDS };
      report = await this.#call("check_deep_agent", args, signal);
    }
    this.runId = report.run_id;
    const picture = await this.#picture(report.run_id);
    const events = await this.readText(`deepagent://runs/${report.run_id}/events`);
    return {
      picture,
      toolCalls: events.split("\n").filter((line) => line.includes('"tool_started"')).length,
    };
  }

  async readText(uri: string): Promise<string> {
    const { contents } = await this.#client.readResource({ uri });
    return contents.map((content) => ("text" in content ? content.text : "")).join("");
  }

  async cancel(runId: string): Promise<void> {
    await this.#client.callTool({ name: "cancel_deep_agent", arguments: { run_id: runId } });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<z.output<typeof Report>> {
    const result = await this.#client.callTool(
      { name, arguments: args },
      {
        signal,
        timeout: CALL_TIMEOUT_MS,
        resetTimeoutOnProgress: true,
        onprogress: () => void this.#refresh(),
      },
    );
    const report = Report.safeParse(result.structuredContent);
    if (report.success) return report.data;
    const text = Content.safeParse(result.content);
    throw new Error(text.success ? text.data.map((block) => block.text ?? "").join("\n") : `${name} failed`);
  }

  /** Shows the run as it is now. Only one reading is open at a time; the next progress message catches up. */
  async #refresh(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      this.runId ??= await this.#newestRun();
      if (this.runId !== undefined) this.#show(await this.#picture(this.runId));
    } catch {
      // The view is a convenience: the call itself reports what went wrong.
    } finally {
      this.#reading = false;
    }
  }

  async #newestRun(): Promise<string | undefined> {
    const { resources } = await this.#client.listResources();
    const prefix = "deepagent://runs/";
    return resources.find(({ uri }) => uri.startsWith(prefix))?.uri.slice(prefix.length);
  }

  async #picture(runId: string): Promise<RunPicture> {
    return RunPicture.parse(JSON.parse(await this.readText(`deepagent://runs/${runId}`)));
  }
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
