/** Passes a message to a program. */
import { ProgramFailure, runProgram } from "../core/child-process.ts";
import { defined } from "../core/defined.ts";
import { codeOf } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import type { SendResult } from "../runs/news.ts";
import type { Message } from "./message.ts";

const TIMEOUT_MS = 20_000;

export interface Program {
  name: string;
  file: string;
  args: readonly string[];
  /** Written to standard input. */
  input?: string;
}

/** Runs the program to its end. An exit code other than 0 is a failure. */
export async function sendToProgram(
  { name, file, args, input }: Program,
  signal: AbortSignal,
): Promise<SendResult> {
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
