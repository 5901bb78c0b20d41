/** Channels of the operator: each kind is a form of the message and a way to send it. */
import { basename } from "node:path";
import { defined } from "../core/unknown.ts";
import type { Send, SendResult } from "../runs/news.ts";
import { newsMessage, newsPayload, type Message } from "./message.ts";
import { isSecureUrl } from "../web/url.ts";
import { post } from "./post.ts";
import { secretProblem, signedHeaders } from "./webhook.ts";
import { ProgramFailure, runProgram } from "../core/child-process.ts";
import { codeOf } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";

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

const TIMEOUT_MS = 20_000;

interface Program {
  name: string;
  file: string;
  args: readonly string[];
  /** Written to standard input. */
  input?: string;
}

/** Runs the program to its end. An exit code other than 0 is a failure. */
async function sendToProgram({ name, file, args, input }: Program, signal: AbortSignal): Promise<SendResult> {
  try {
    const limits = { timeout: TIMEOUT_MS, maxOutput: 100_000 };
    await runProgram(file, args, { ...limits, signal, windowsHide: true, ...defined({ input }) });
    return { ok: true };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, problem: `${name} ${programProblem(error)}` };
  }
}

function programProblem(error: unknown): string {
  if (!(error instanceof ProgramFailure))
    return codeOf(error) === "ENOENT" ? "is not installed" : "could not be started";
  if (error.isTimeout) return `did not end within ${TIMEOUT_MS / 1000} s, or wrote too much`;
  const said = oneLine(error.message, 200);
  return `failed (exit code ${error.code ?? "none"})${said === "" ? "" : `: ${said}`}`;
}

/** Reads the texts from standard input, so that they never become code. */
const TOAST = `
$news = [Console]::In.ReadToEnd() | ConvertFrom-Json
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime] > $null
$manager = [Windows.UI.Notifications.ToastNotificationManager]
$toast = $manager::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $toast.GetElementsByTagName('text')
$texts.Item(0).AppendChild($toast.CreateTextNode($news.title)) > $null
$texts.Item(1).AppendChild($toast.CreateTextNode($news.text)) > $null
$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
$manager::CreateToastNotifier($app).Show([Windows.UI.Notifications.ToastNotification]::new($toast))
`;

const NOTIFY = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/** `command`: the line that opens the run, shown if it has no address. `platform`: that of this process by default. */
export function notifyDesktop(
  { title, text: line, url }: Message,
  options: { command: string; signal: AbortSignal; platform?: NodeJS.Platform },
): Promise<SendResult> {
  const { command, signal, platform = process.platform } = options;
  const text = `${line}\n${url ?? command}`;
  switch (platform) {
    case "darwin": {
      // After `-`, no text is an option, such as a task that begins with `-e`.
      const args = ["-", title, text];
      return sendToProgram({ name: "osascript", file: "osascript", args, input: NOTIFY }, signal);
    }
    case "win32": {
      const script = Buffer.from(TOAST, "utf16le").toString("base64");
      const args = ["-NoProfile", "-NonInteractive", "-EncodedCommand", script];
      // Characters beyond ASCII are escaped, whatever encoding the console has.
      const input = JSON.stringify({ title, text }).replace(
        /[^\x20-\x7e]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );
      return sendToProgram({ name: "PowerShell", file: "powershell.exe", args, input }, signal);
    }
    default: {
      const args = ["--app-name=deepagent-mcp", "--", title, text];
      return sendToProgram({ name: "notify-send", file: "notify-send", args }, signal);
    }
  }
}
