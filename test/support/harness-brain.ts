import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "./scripted-model.ts";

/** What a test sees of one model call; plain data, so that it crosses a process border. */
export interface Thought {
  /** Text of the first human message: the task of the run, or what the subagent was told. */
  task: string;
  /** How many replies this agent has had from the model since that message. */
  step: number;
  /** Names of the tools offered. */
  tools: string[];
  messages: ThoughtMessage[];
}

export interface ThoughtMessage {
  type: "system" | "human" | "ai" | "tool" | "other";
  text: string;
  /** Ids of the calls an `ai` message made. */
  calls: string[];
  /** The call a `tool` message answers. */
  answers?: string;
}

/** The model of a test. It may wait as long as the test wants. */
export type Think = (thought: Thought) => ScriptedReply | Promise<ScriptedReply>;

/** The test's model for agents in this process. */
export function modelOf(think: Think): ScriptedModel {
  return scriptedModel(({ messages, tools }) => think(thoughtOf(messages, tools)));
}

/** The test's model for agents in a child process, which asks over HTTP. */
export function remoteModel(url: string): ScriptedModel {
  return scriptedModel(async ({ messages, tools, signal }) => {
    const response = await fetch(url, {
      method: "POST",
      body: JSON.stringify(thoughtOf(messages, tools)),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as ScriptedReply;
  });
}

/** Answers child processes; close it after them. */
export async function serveBrain(think: Think): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const reply = await think((await json(request)) as Thought);
      response.end(JSON.stringify(reply));
    };
    answer().catch((error: unknown) => {
      response.writeHead(500);
      response.end(error instanceof Error ? error.message : String(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function thoughtOf(messages: readonly BaseMessage[], tools: string[]): Thought {
  const first = messages.findIndex((message) => message instanceof HumanMessage);
  return {
    task: messages[first]?.text ?? "",
    step: messages.slice(first).filter((message) => message instanceof AIMessage).length,
    tools,
    messages: messages.map(describe),
  };
}

function describe(message: BaseMessage): ThoughtMessage {
  const { text } = message;
  if (message instanceof AIMessage) {
    return { type: "ai", text, calls: (message.tool_calls ?? []).map((call) => call.id ?? "") };
  }
  if (message instanceof ToolMessage) {
    return { type: "tool", text, calls: [], answers: message.tool_call_id };
  }
  if (message instanceof HumanMessage) return { type: "human", text, calls: [] };
  return { type: message.type === "system" ? "system" : "other", text, calls: [] };
}
