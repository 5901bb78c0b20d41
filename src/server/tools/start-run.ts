/** Runs of calls: starts one, or continues the run of a call that comes again. */
import { GOAL_NOT_USED } from "../views/goal-report.ts";
import { CLIENT_MODEL } from "../../config/schema.ts";
import { fileURLToPath } from "node:url";
import { ownTurn } from "../../core/concurrency.ts";
import { orElse } from "../../core/errors.ts";
import { shownName } from "../../core/text.ts";
import { isFinal } from "../../runs/run.ts";
import type { StartRequest } from "../../runs/ports.ts";
import type { Started } from "../../runs/service.ts";
import type { ToolCall } from "../calls/call.ts";
import { type Outcome, refused, unknownRun } from "../calls/outcome.ts";
import { deliver } from "../delivery/deliver.ts";
import { carriedAnswers } from "../delivery/signed-answers.ts";
import words from "./words.json" with { type: "json" };

/** Starts a run, or joins the one that an earlier call began, and waits for it. */
export async function startRun(
  order: Omit<StartRequest, "askedAt">,
  waitSeconds: number | undefined,
  call: ToolCall,
): Promise<Outcome> {
  const { runs, principal, deps, client } = call;
  if (deps.config.model === CLIENT_MODEL && !client.models)
    return refused(
      'No run was started: this server works with the model of its client, and this client does not lend it (it does not declare MCP sampling with tools). Configure a model of the server: --model provider:model, DEEPAGENT_MODEL or "model" in its config file.',
    );
  const clientFolders: string[] = [];
  if (order.folder === undefined && hasFolderChoice(deps.config)) {
    const { mcpReq } = call.context;
    const asked = client.roots ? mcpReq.send({ method: "roots/list" }, { timeout: ROOTS_MS }) : undefined;
    const { roots = [] } = (await asked?.catch(() => undefined)) ?? {};
    const named = roots.flatMap(({ uri }) => orElse(() => [fileURLToPath(uri)], []));
    clientFolders.push(...[deps.projectFolder ?? []].flat(), ...named);
  }
  const by = client.name ? shownName(client.name.name) : "mcp";
  const started = await runs.control.start({ ...order, clientFolders, askedAt: call.begunAt, by });
  if (!started.ok) return refused(started.message);
  if (started.how === "started") deps.changes.runStarted(principal, started.run.id);
  // Storing a long task takes a turn of the event loop, and so does reading it.
  await ownTurn();
  const view = await runs.read.view(started.run.id);
  if (view === undefined) return unknownRun(started.run.id);
  // A run that was not started by this call may have ended long ago; then a task would be pointless.
  const asTask = started.how === "started" || !isFinal(view.run.status);
  let note = NOTES[started.how];
  if (started.how === "started" && order.changes === "direct" && view.run.changes === "propose")
    note =
      "`direct` was not used: on this server a person reviews changes before they are applied, and only its operator can change that.";
  // A message to a run at work changes nothing of its goal.
  if (started.how === "told" && order.goal !== undefined) note = `${note} ${GOAL_NOT_USED}`;
  return deliver(call, view, { waitSeconds, untilChange: false, asTask, note });
}

/** True if runs can have other folders than that of the server. */
export const hasFolderChoice = ({
  folders = [],
  principalFolders = {},
}: ToolCall["deps"]["config"]): boolean => folders.length + Object.keys(principalFolders).length > 0;

/** Time for a client to name its folders. */
const ROOTS_MS = 5000;

const NOTES: Partial<Readonly<Record<Started, string>>> = words.notes;

/** Continues the run of an earlier call that arrives again with answers; any other call runs `start`. */
export async function continueRunOr(
  start: () => Outcome | Promise<Outcome>,
  call: ToolCall,
  waitSeconds?: number,
): Promise<Outcome> {
  const carried = await carriedAnswers(call);
  if (!carried.ok) return carried.outcome;
  const { answers } = carried;
  if (answers === undefined) return start();
  const { run } = answers.state;
  const view = await call.runs.read.view(run);
  if (view === undefined) return unknownRun(run);
  return deliver(call, view, { waitSeconds, untilChange: false, answers });
}
