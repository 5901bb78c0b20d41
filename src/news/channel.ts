/** Channels of the operator: each kind is a form of the message and a way to send it. */
import { basename } from "node:path";
import type { News, Send, SendResult } from "../runs/news.ts";
import { notifyDesktop } from "./desktop.ts";
import { type Message, messageOf, payloadOf } from "./message.ts";
import { isSecureUrl } from "../web/url.ts";
import { post } from "./post.ts";
import { type Program, sendToProgram } from "./program.ts";
import { secretProblem, signedHeaders } from "./webhook.ts";

/** An address, or the name of an environment variable that has it. */
interface Address {
  url?: string | undefined;
  urlVariable?: string | undefined;
}

/** The settings of a channel, without the types that it wants. */
export type ChannelOptions =
  | ({ kind: "webhook"; secretVariable: string } & Address)
  | ({ kind: "slack" } & Address)
  | ({ kind: "ntfy"; tokenVariable?: string | undefined } & Address)
  | { kind: "command"; command: readonly string[] }
  | { kind: "desktop" };

export interface ChannelContext {
  env: Readonly<Record<string, string | undefined>>;
  /** The page of a run, at an address without secrets; `undefined`: there is none. */
  pageOf: (runId: string) => string | undefined;
  /** A line that opens a run in a terminal. */
  openCommand: (runId: string) => string;
}

/** The operator's own addresses may be of an internal network. */
const NETWORK = { isNamed: (): boolean => true };

export function senderOf(options: ChannelOptions, context: ChannelContext): Send {
  return async (news, signal) => {
    const url = context.pageOf(news.runId);
    const problem = channelProblem(options, context.env);
    if (problem !== undefined) return { ok: false, problem };
    switch (options.kind) {
      case "command":
        return sendToProgram(programOf(options.command, payloadOf(news, url)), signal);
      case "desktop":
        return notifyDesktop(messageOf(news, url), { command: context.openCommand(news.runId), signal });
      default:
        return sendOver(options, { news, url, signal, env: context.env });
    }
  };
}

const programOf = ([file = "", ...args]: readonly string[], payload: object): Program => ({
  name: "the command",
  file,
  args,
  input: `${JSON.stringify(payload)}\n`,
});

/** The reason why a channel cannot send: a variable that is not set, or has an unusable value. */
export function channelProblem(options: ChannelOptions, env: ChannelContext["env"]): string | undefined {
  if (options.kind === "command" || options.kind === "desktop") return undefined;
  const { urlVariable } = options;
  const variables = [urlVariable, ...secretsOf(options)];
  const missing = variables.find((name) => name !== undefined && !env[name]);
  if (missing !== undefined) return `the environment variable ${missing} is not set`;
  if (urlVariable !== undefined && !isSecureUrl(env[urlVariable] ?? "")) {
    return `${urlVariable} must have an https address`;
  }
  if (options.kind !== "webhook") return undefined;
  const problem = secretProblem(env[options.secretVariable] ?? "");
  return problem === undefined ? undefined : `${options.secretVariable} ${problem}`;
}

const secretsOf = (options: ChannelOptions): (string | undefined)[] => [
  ...("secretVariable" in options ? [options.secretVariable] : []),
  ...("tokenVariable" in options ? [options.tokenVariable] : []),
];

interface Sending {
  news: News;
  url: string | undefined;
  signal: AbortSignal;
  env: ChannelContext["env"];
}

async function sendOver(
  options: Extract<ChannelOptions, Address>,
  { news, url, signal, env }: Sending,
): Promise<SendResult> {
  const address = new URL(options.url ?? env[options.urlVariable ?? ""] ?? "");
  const message = messageOf(news, url);
  switch (options.kind) {
    case "webhook": {
      const body = JSON.stringify(payloadOf(news, url));
      const secret = env[options.secretVariable] ?? "";
      const headers = await signedHeaders({ id: news.id, body, secret }, new Date());
      return post({ url: address, network: NETWORK, headers, body, signal });
    }
    case "slack":
      return post({ url: address, network: NETWORK, body: JSON.stringify(slackForm(message)), signal });
    case "ntfy": {
      const token = env[options.tokenVariable ?? ""];
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const body = JSON.stringify(ntfyForm(message, basename(address.pathname)));
      return post({ url: new URL(".", address), network: NETWORK, headers, body, signal });
    }
  }
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The form of Slack's incoming webhooks, which others take, too. */
function slackForm({ title, text, url }: Message): object {
  const link = url === undefined ? "" : `\n<${url}|Open the run>`;
  return { text: `*${escaped(title).replaceAll("*", "∗")}* ${escaped(text)}${link}` };
}

const ntfyForm = ({ title, text, url }: Message, topic: string): object => ({
  topic,
  title,
  message: text,
  ...(url === undefined ? {} : { click: url }),
});
