import { setTimeout as delay } from "node:timers/promises";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { cleanUpWith } from "../../runs/support.ts";
import { overHttp, overMemory, type Rpc } from "../../server/tasks/raw.ts";
import { connectClient, type ClientKind, type Connector } from "../../support/clients.ts";
import { memoryConnector } from "../../support/harness-memory.ts";
import type { MatrixPerson } from "./person.ts";
import { httpConnector } from "../../support/harness-http.ts";

export const TRANSPORTS = ["stdio", "http"] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** One kind of client: its era, and what it declares. */
export interface Row {
  kind: ClientKind;
  forms: boolean;
  urls: boolean;
  tasks: boolean;
}

const row = (kind: ClientKind, ...declared: ("forms" | "urls" | "tasks")[]): Row => ({
  kind,
  forms: declared.includes("forms"),
  urls: declared.includes("urls"),
  tasks: declared.includes("tasks"),
});

/** From clients that declare nothing to those that declare everything, in both eras. */
export const ROWS: Readonly<Record<string, Row>> = {
  "2025 nothing": row("v1"),
  "2025 forms": row("v1", "forms"),
  "2025 urls": row("v2-legacy", "urls"),
  "2025 everything": row("v2-legacy", "forms", "urls"),
  "2026 nothing": row("v2-modern"),
  "2026 forms": row("v2-modern", "forms"),
  "2026 urls": row("v2-modern", "urls"),
  "2026 forms and urls": row("v2-modern", "forms", "urls"),
  "2026 tasks": row("v2-modern", "tasks"),
  "2026 tasks and urls": row("v2-modern", "tasks", "urls"),
  "2026 everything": row("v2-modern", "tasks", "forms", "urls"),
};

/** Clients leave the server some time between two looks. */
const POLL_MS = 30;

/** What a client has seen of a run. */
export interface Seen {
  runId: string;
  status: string;
}

/** A client as the scenarios use it, whatever it declares. */
export interface MatrixClient {
  /** Calls `run_deep_agent`; with a `timeout`, in milliseconds, the call is given up then. */
  run(args: Record<string, unknown>, timeout?: number): Promise<Seen>;
  /** Looks how the run stands, and lets the person answer what is asked here. */
  look(runId: string): Promise<Seen>;
  cancel(runId: string): Promise<void>;
}

export async function openClient(
  transport: Transport,
  deps: ServerDeps,
  declared: Row,
  person: MatrixPerson,
): Promise<MatrixClient> {
  if (declared.tasks) {
    return taskClient(await (transport === "http" ? overHttp : overMemory)(deps), declared, person);
  }
  const { kind, forms, urls } = declared;
  const client = await connectClient(await connectorTo(transport, deps), {
    kind,
    ...(forms ? { person: person.form } : {}),
    ...(urls ? { browser: person.browser } : {}),
  });
  cleanUpWith(() => client.close());
  const seen = ({ structured }: { structured: Record<string, unknown> }): Seen => ({
    runId: String(structured["run_id"]),
    status: String(structured["status"]),
  });
  return {
    run: async (args, timeout) =>
      seen(await client.call("run_deep_agent", args, timeout === undefined ? {} : { timeout })),
    look: async (runId) => {
      await delay(POLL_MS);
      return seen(await client.call("check_deep_agent", { run_id: runId }));
    },
    cancel: async (runId) => void (await client.call("cancel_deep_agent", { run_id: runId })),
  };
}

async function connectorTo(transport: Transport, deps: ServerDeps): Promise<Connector> {
  if (transport === "stdio") return memoryConnector(deps);
  return httpConnector(deps, cleanUpWith);
}

type Report = { run_id: string; status: string };

/** A task, at its end with what the call came to; or what a start gets that is repeated after the end of its run. */
interface TaskReply {
  taskId?: string;
  status?: string;
  result?: { structuredContent: Report };
  structuredContent?: Report;
}

interface InputRequest {
  params: { message: string; url?: string; requestedSchema: { properties: Record<string, unknown> } };
}

/** The SDK's client knows no tasks of 2026-07-28: this one speaks them on the wire. */
export function taskClient(
  rpc: Rpc,
  { forms, urls }: Pick<Row, "forms" | "urls">,
  person: Pick<MatrixPerson, "form" | "browser">,
): MatrixClient {
  const capabilities = {
    ...(forms || urls
      ? { elicitation: { ...(forms ? { form: {} } : {}), ...(urls ? { url: {} } : {}) } }
      : {}),
    extensions: { "io.modelcontextprotocol/tasks": {} },
  };
  const ask = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const { result, error } = await rpc(method, params, capabilities);
    if (result === undefined) throw new Error(JSON.stringify(error));
    return result;
  };
  const seen = (reply: Record<string, unknown>): Seen => {
    const { taskId, status, result, structuredContent: report } = reply as TaskReply;
    // A task of a client that cannot be asked ends before its run does.
    const stands = result?.structuredContent.status ?? status ?? report?.status;
    return { runId: taskId ?? report?.run_id ?? "", status: stands ?? "" };
  };
  return {
    run: async (args) => seen(await ask("tools/call", { name: "run_deep_agent", arguments: args })),
    look: async (taskId) => {
      await delay(POLL_MS);
      const task = await ask("tasks/get", { taskId });
      const requests = (task["inputRequests"] ?? {}) as Record<string, InputRequest>;
      const inputResponses: Record<string, unknown> = {};
      for (const [key, { params }] of Object.entries(requests)) {
        const { message, url } = params;
        inputResponses[key] =
          url === undefined ? await person.form(params) : await person.browser({ message, url });
      }
      await ask("tasks/update", { taskId, inputResponses });
      return seen(task);
    },
    cancel: async (taskId) => void (await ask("tasks/cancel", { taskId })),
  };
}
