/** Channels of the operator: each kind is a form of the message and a way to send it. */
import { basename } from "node:path";
import { defined } from "../core/defined.ts";
import type { Send } from "../runs/news.ts";
import { notifyDesktop, sendToProgram } from "./program.ts";
import { newsMessage, newsPayload } from "./message.ts";
import { isSecureUrl } from "../web/url.ts";
import { post } from "./post.ts";
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
  openCommand: (runId: string) => string;
}

export const makeSender =
  (options: ChannelOptions, { env, pageOf, openCommand }: ChannelContext): Send =>
  async (news, signal) => {
    const problem = channelProblem(options, env);
    if (problem !== undefined) return { ok: false, problem };
    const page = pageOf(news.runId);
    const message = newsMessage(news, page);
    const payload = JSON.stringify(newsPayload(news, page));
    if (options.kind === "desktop")
      return notifyDesktop(message, { command: openCommand(news.runId), signal });
    if (options.kind === "command") {
      const [file = "", ...args] = options.command;
      return sendToProgram({ name: "the command", file, args, input: `${payload}\n` }, signal);
    }
    const url = new URL(options.url ?? env[options.urlVariable ?? ""] ?? "");
    // The operator's own addresses may be of an internal network.
    const to = { url, network: { isNamed: () => true }, signal };
    switch (options.kind) {
      case "webhook": {
        const signed = { id: news.id, body: payload, secret: env[options.secretVariable] ?? "" };
        return post({ ...to, body: payload, headers: await signedHeaders(signed, new Date()) });
      }
      case "slack": {
        // The form of Slack's incoming webhooks, which others take, too.
        const title = escapeSlack(message.title).replaceAll("*", "∗");
        const link = message.url === undefined ? "" : `\n<${message.url}|Open the run>`;
        return post({
          ...to,
          body: JSON.stringify({ text: `*${title}* ${escapeSlack(message.text)}${link}` }),
        });
      }
      case "ntfy": {
        const token = env[options.tokenVariable ?? ""];
        const { title, text, url: click } = message;
        const form = { topic: basename(url.pathname), title, message: text, ...defined({ click }) };
        const own = token && { headers: { authorization: `Bearer ${token}` } };
        return post({ ...to, url: new URL(".", url), body: JSON.stringify(form), ...own });
      }
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

const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
