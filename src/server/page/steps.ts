/** The whole arguments and result of one call, as a screen of its own that is also shown in its place in others. */
import { canonicalJson } from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";
import { type Approval, isApproval } from "../../runs/run.ts";
import type { CallTexts } from "../../runs/service.ts";
import { agentLabel } from "../views/request-words.ts";
import { type Html, html } from "../views/html.ts";
import { dayAndTime } from "../views/room/figures.ts";
import { keyOf } from "../views/room/timeline.ts";
import { type ScreenContext, partScreen } from "./screen-context.ts";
import { type TextLook, renderedText } from "./whole-text.ts";

/** The call that began with event `seq`. `undefined`: no such run, or no call began there. */
export async function stepScreen({ runs, session }: ScreenContext, runId: string, seq: number) {
  const call = await runs.read.callTexts(runId, seq);
  if (call === undefined) return undefined;
  const { agent, time, tool, summary } = call;
  const edit = findEdit(call, (await runs.read.view(runId))?.requests.filter(isApproval) ?? []);
  const body = html`<p class="note">
      ${agentLabel(agent)}, ${dayAndTime(time)} <span class="tag">${oneLine(tool, 64)}</span>
    </p>
    <div class="panel top-gap">${await renderedCall(call, edit)}</div>`;
  const title = oneLine(summary, 80);
  return partScreen({ runs, session }, runId, { title, heading: oneLine(summary, 300), body });
}

/** The arguments with which a person let the call run instead. */
function findEdit(call: CallTexts, approvals: readonly Approval[]): Record<string, unknown> | undefined {
  const asked = Object.entries(call.args ?? {});
  const ran = approvals.findLast(
    ({ tool, agent, args, decidedAt = Infinity }) =>
      tool === call.tool &&
      decidedAt <= call.time &&
      keyOf(agent) === keyOf(call.agent) &&
      // The approval has the defaults too.
      asked.every(([name, value]) => canonicalJson(value) === canonicalJson(args[name])),
  )?.answer;
  return ran?.type === "edit" ? ran.editedAction.args : undefined;
}

/** An open part is one whose result may still come: the script asks for it again when the call has ended. */
async function renderedCall(
  { tool, args, result, missing }: CallTexts,
  edit: Record<string, unknown> | undefined,
): Promise<Html> {
  const parts: Html[] = [];
  if (args !== undefined) {
    const name = edit === undefined ? "Arguments" : "Arguments as the agent wrote them";
    parts.push(html`<h3>${name}</h3>`, ...(await renderedArguments(args)));
  }
  if (edit !== undefined)
    parts.push(html`<h3>Arguments that ran, changed by a person</h3>`, ...(await renderedArguments(edit)));
  if (result !== undefined) {
    const look = { ...textLook(tool, args ?? {}, result.text), label: "Result" };
    const title = html`<h3>${result.isError ? "Result: failed" : "Result"}</h3>`;
    parts.push(title, await renderedText(result.text, look));
  }
  if (missing !== undefined) parts.push(html`<p class="note pad">${missing}</p>`);
  const isOpen = args !== undefined && result === undefined;
  return html`<div class="whole" data-part="${isOpen && "open"}">${parts}</div>`;
}

/** Arguments that are shown by themselves, and how long a text of one line is that is. */
const APART = { most: 12, from: 200 };

async function renderedArguments(args: Record<string, unknown>): Promise<Html[]> {
  const apart = Object.entries(args)
    .filter(
      (entry): entry is [string, string] =>
        typeof entry[1] === "string" && (entry[1].includes("\n") || entry[1].length > APART.from),
    )
    .slice(0, APART.most);
  const names = new Set(apart.map(([name]) => name));
  const others = Object.fromEntries(Object.entries(args).filter(([name]) => !names.has(name)));
  const parts: Html[] = [];
  if (Object.keys(others).length > 0 || apart.length === 0) {
    const json = JSON.stringify(others, null, 2);
    parts.push(await renderedText(json, { kind: "code", label: "Arguments as JSON", path: ".json" }));
  }
  for (const [name, text] of apart) {
    const path = name === "command" ? ".sh" : filePath(args);
    const label = `Argument ${oneLine(name, 80)}`;
    parts.push(html`<p class="label pad">${oneLine(name, 80)}</p>`);
    parts.push(await renderedText(text, { kind: "code", label, path }));
  }
  return parts;
}

const filePath = (args: Record<string, unknown>): string => {
  const path = args["file_path"] ?? args["path"];
  return typeof path === "string" ? path : "";
};

function textLook(
  tool: string,
  args: Record<string, unknown>,
  text: string,
): Pick<TextLook, "kind" | "path"> {
  const path = filePath(args);
  if (/^(diff --git |--- \S|@@ -)/.test(text)) return { kind: "diff", path };
  if (tool === "task") return { kind: "markdown", path };
  if (/^\s*[[{]/.test(text)) return { kind: "code", path: ".json" };
  return tool.startsWith("read_") ? { kind: "code", path } : { kind: "plain", path };
}
