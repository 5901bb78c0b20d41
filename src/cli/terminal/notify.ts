/** Calls a person who may look elsewhere. */
import type { Config } from "../../config/schema.ts";

const BELL = "\u0007";
const TEXT = "deepagent-mcp waits for you";

/** Rings the bell of a terminal, and shows a message on the desktop where the terminal is known to do so. */
export function callPerson(
  output: NodeJS.WriteStream,
  how: Config["notify"],
  env: Readonly<Record<string, string | undefined>> = process.env,
): void {
  if (!output.isTTY || how === "off") return;
  output.write((how === "desktop" ? desktopMessage(env) : "") + BELL);
}

/** Elsewhere the sequence could be shown as text, or mean something else; inside tmux it does not get through. */
function desktopMessage({
  TERM = "",
  TERM_PROGRAM = "",
  TMUX,
}: Readonly<Record<string, string | undefined>>): string {
  if (TMUX !== undefined) return "";
  if (["iTerm.app", "WezTerm", "ghostty"].includes(TERM_PROGRAM)) return `\u001b]9;${TEXT}\u0007`;
  if (TERM === "xterm-kitty") return `\u001b]99;;${TEXT}\u001b\\`;
  return /^(foot|rxvt)/.test(TERM) ? `\u001b]777;notify;deepagent-mcp;${TEXT}\u001b\\` : "";
}
