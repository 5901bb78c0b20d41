/** The two tools of Codex's own MCP server under their names, for clients that were written for it. */
import { basename } from "node:path";
import { z } from "zod";
import { wellFormed } from "../../core/text.ts";
import { defined } from "../../core/unknown.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { MAX_TASK } from "../../runs/run.ts";
import type { ToolCall } from "../calls/call.ts";
import { refused } from "../calls/outcome.ts";
import { type ServerTool, defineTool, taskText } from "../calls/tool.ts";
import { RunReport, reportText } from "../views/run-report.ts";
import { continueRunOr, hasFolderChoice, startRun } from "./start-run.ts";
import words from "./words.json" with { type: "json" };

/** Both names for the same: programs read `threadId` and `content`, models the whole report. */
const output = RunReport.extend({ threadId: z.string().optional(), content: z.string().optional() });
const asCodex: ServerTool["extend"] = (report) => ({
  threadId: report.thread_id,
  content: report.more === undefined && report.answer !== undefined ? report.answer : reportText(report),
});

export const CODEX_TOOLS: readonly ServerTool[] = [
  defineTool({
    name: "codex",
    ...words.tools.codex,
    kind: "delegate",
    scopes: ["run"],
    // Codex has more arguments; they configure settings of this whole server.
    input: z.object({
      prompt: taskText.describe("The task"),
      cwd: z.string().max(4096).optional().describe("Folder to work in, inside the server's workspace"),
      model: z.string().max(200).optional().describe("One of the models that the server allows"),
      "developer-instructions": z.string().max(MAX_TASK).optional().describe("Come before the prompt"),
      sandbox: z.enum(["read-only", "workspace-write", "danger-full-access"]).optional(),
    }),
    output,
    extend: asCodex,
    handle: (args, call) =>
      continueRunOr(() => {
        if (args.sandbox === "read-only")
          return refused(
            'No run was started: this server cannot keep one run from writing, because approvals are set for the whole server. Leave sandbox out, or start a server with readOnly: ["/workspace"].',
          );
        const place = folderNote(args.cwd, call);
        if (place.problem !== undefined) return refused(place.problem);
        const parts = [args["developer-instructions"], place.note, args.prompt];
        const task = wellFormed(parts.filter((part) => part !== undefined && part !== "").join("\n\n"));
        if (task.length > MAX_TASK)
          return refused(
            `No run was started: the prompt and its instructions have more than ${MAX_TASK} characters together. Put long texts into a file and name it.`,
          );
        return startRun({ task, ...defined({ model: args.model, folder: place.folder }) }, undefined, call);
      }, call),
  }),
  defineTool({
    name: "codex-reply",
    ...words.tools["codex-reply"],
    kind: "delegate",
    scopes: ["run"],
    input: z.object({
      prompt: taskText,
      threadId: z.string().min(1).max(200).optional(),
      conversationId: z.string().min(1).max(200).optional().describe("Older name of threadId"),
    }),
    output,
    extend: asCodex,
    handle: ({ prompt: task, threadId, conversationId }, call) =>
      continueRunOr(() => {
        const thread = threadId ?? conversationId;
        if (thread !== undefined) return startRun({ task, threadId: thread }, undefined, call);
        return refused("Name the session to continue: threadId, as codex returned it.");
      }, call),
  }),
];

/** The folder of a call as the agent sees it. */
function folderNote(
  cwd: string | undefined,
  { deps }: ToolCall,
): { note?: string; problem?: string; folder?: string } {
  const { workspace } = deps.config;
  if (cwd === undefined) return {};
  const isOutside = workspace === undefined || !isInside(realPath(workspace), realPath(cwd));
  if (isOutside && hasFolderChoice(deps.config)) return { folder: cwd };
  if (isOutside)
    return {
      problem: `No run was started: this server works in ${workspace === undefined ? "no folder of this machine" : `the folder ${basename(workspace)}`} only. Leave cwd out, or name a folder in it.`,
    };
  const inside = realPath(cwd).slice(realPath(workspace).length).replaceAll("\\", "/");
  return inside === "" ? {} : { note: `Work in the folder /workspace${inside}.` };
}
