/** An editor: the client side of the protocol's own SDK, and the program as its agent over stdio. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type ClientConnection,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type InitializeResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
  client,
  methods,
  ndJsonStream,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import { program } from "../../support/harness-stdio.ts";

export interface EditorOptions {
  env: Record<string, string>;
  args?: readonly string[];
  capabilities?: ClientCapabilities;
  /** Default: nobody answers. */
  permission?: (request: RequestPermissionRequest) => Promise<RequestPermissionResponse>;
  form?: (request: CreateElicitationRequest) => Promise<CreateElicitationResponse>;
}

export interface StartedEditor {
  agent: ClientConnection["agent"];
  initialized: InitializeResponse;
  process: ChildProcessWithoutNullStreams;
  updates: readonly SessionUpdate[];
  asked: readonly RequestPermissionRequest[];
  /** Number of questions that the agent took back. */
  takenBack(): number;
  errors(): string;
  /** Resolves once `isThere` is true, which is looked at after every message. */
  until(isThere: () => boolean): Promise<void>;
  kill(): Promise<void>;
}

export async function startEditor(options: EditorOptions): Promise<StartedEditor> {
  const child = spawn(process.execPath, [await program(), "acp", ...(options.args ?? [])], {
    env: options.env,
  });
  const gone = once(child, "exit");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  let errors = "";
  let takenBack = 0;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((check) => check());
  const nobody = (): Promise<never> => new Promise(() => undefined);
  const editor = client({ name: "test editor" })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
      // Editors attach the question to the entry of its call, which they have to know by then.
      const { toolCallId } = params.toolCall;
      const isShown = updates.some(
        (update) => update.sessionUpdate === "tool_call" && update.toolCallId === toolCallId,
      );
      if (!isShown) throw new Error(`The call ${toolCallId} was not shown before it was asked about.`);
      asked.push(params);
      signal.addEventListener("abort", () => {
        takenBack += 1;
        wake();
      });
      wake();
      return (options.permission ?? nobody)(params);
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => (options.form ?? nobody)(params))
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      wake();
    });
  const { agent } = editor.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  const initialized = await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: options.capabilities ?? {},
  });
  const until = (isThere: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (!isThere()) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  const read = { takenBack: () => takenBack, errors: () => errors };
  return { agent, initialized, process: child, updates, asked, ...read, until, kill };
}

/** The texts of messages of the agent. */
export const saidBy = (updates: readonly SessionUpdate[]): string =>
  updates
    .flatMap((update) =>
      update.sessionUpdate === "agent_message_chunk" && update.content.type === "text"
        ? [update.content.text]
        : [],
    )
    .join("");
