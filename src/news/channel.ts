/** Channels of the operator: each kind is a form of the message and a way to send it. */
import { basename } from "node:path";
import { defined } from "../core/defined.ts";
import type { News, Send } from "../runs/news.ts";
import { notifyDesktop } from "./desktop.ts";
import { newsMessage, newsPayload } from "./message.ts";
import { isSecureUrl } from "../web/url.ts";
import { type Post, post } from "./post.ts";
import { sendToProgram } from "./program.ts";
import { secretProblem, signedHeaders } from "./webhook.ts";

/** An address, or the name of an environment variable that has it. */
interface ChannelAddress {
  url?: string | undefined;
  urlVariable?: string | undefined;
}

/** The settings of a channel, without the types that it wants. */
export type ChannelOptions =
  | ({ kind: "webhook"; secretVariable: string } & ChannelAddress)
  | ({ kind: "slack" } & ChannelAddress)
  | ({ kind: "ntfy"; tokenVariable?: string | undefined } & ChannelAddress)
  | { kind: "command"; command: readonly string[] }
  | { kind: "desktop" };

export interface ChannelContext {
  env: Readonly<Record<string, string | undefined>>;
  /** The page of a run, at an address without secrets; `undefined`: there is none. */
  pageOf: (runId: string) => string | undefined;
  /** A line that opens a run in a terminal. */
  openCommand: (runId: string) => string;
}

export const makeSender =
  (options: ChannelOptions, { env, pageOf, openCommand }: ChannelContext): Send =>
  async (news, signal) => {
    const problem = channelProblem(options, env);
    if (problem !== undefined) return { ok: false, problem };
    const page = pageOf(news.runId);
    switch (options.kind) {
      case "command": {
        const [file = "", ...args] = options.command;
        const input = `${JSON.stringify(newsPayload(news, page))}\n`;
        return sendToProgram({ name: "the command", file, args, input }, signal);
      }
      case "desktop":
        return notifyDesktop(newsMessage(news, page), { command: openCommand(news.runId), signal });
      default:
        // The operator's own addresses may be of an internal network.
        return post({
          network: { isNamed: () => true },
          signal,
          ...(await channelRequest(options, { news, page, env })),
        });
    }
  };

/** The reason why a channel cannot send: a variable that is not set, or has an unusable value. */
export function channelProblem(options: ChannelOptions, env: ChannelContext["env"]): string | undefined {
  if (options.kind === "command" || options.kind === "desktop") return undefined;
  const { urlVariable } = options;
  const secretVariable = "secretVariable" in options ? options.secretVariable : undefined;
  const tokenVariable = "tokenVariable" in options ? options.tokenVariable : undefined;
  const variables = [urlVariable, secretVariable, tokenVariable];
  const missing = variables.find((name) => name !== undefined && !env[name]);
  if (missing !== undefined) return `the environment variable ${missing} is not set`;
  if (urlVariable !== undefined && !isSecureUrl(env[urlVariable] ?? ""))
    return `${urlVariable} must have an https address`;
  if (options.kind !== "webhook") return undefined;
  const problem = secretProblem(env[options.secretVariable] ?? "");
  return problem === undefined ? undefined : `${options.secretVariable} ${problem}`;
}

async function channelRequest(
  options: Extract<ChannelOptions, ChannelAddress>,
  { news, page, env }: { news: News; page: string | undefined; env: ChannelContext["env"] },
): Promise<Pick<Post, "url" | "headers" | "body">> {
  const url = new URL(options.url ?? env[options.urlVariable ?? ""] ?? "");
  const message = newsMessage(news, page);
  switch (options.kind) {
    case "webhook": {
      const body = JSON.stringify(newsPayload(news, page));
      const secret = env[options.secretVariable] ?? "";
      return { url, body, headers: await signedHeaders({ id: news.id, body, secret }, new Date()) };
    }
    case "slack": {
      // The form of Slack's incoming webhooks, which others take, too.
      const title = escapeSlack(message.title).replaceAll("*", "∗");
      const link = message.url === undefined ? "" : `\n<${message.url}|Open the run>`;
      return { url, body: JSON.stringify({ text: `*${title}* ${escapeSlack(message.text)}${link}` }) };
    }
    case "ntfy": {
      const token = env[options.tokenVariable ?? ""];
      const { title, text, url: click } = message;
      const form = { topic: basename(url.pathname), title, message: text, ...defined({ click }) };
      const own = token && { headers: { authorization: `Bearer ${token}` } };
      return { url: new URL(".", url), body: JSON.stringify(form), ...own };
    }
  }
}

const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
