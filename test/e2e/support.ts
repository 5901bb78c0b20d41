import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Form, FormAnswer, TestClient } from "../support/clients.ts";
import type { Home } from "../support/harness.ts";
import { answersOf, type Line } from "../support/harness-brain.ts";

export const writeFile = (file_path: string, content: string) => ({
  name: "write_file",
  args: { file_path, content },
});

export const delegate = (description: string) => ({
  name: "task",
  args: { description, subagent_type: "general-purpose" },
});

/** Repeats what the tools answered, so that a test sees what the model was told. */
export const repeat: Line = (thought) => ({
  text: answersOf(thought)
    .map(({ text }) => text)
    .join(" | "),
});

export const APPROVE: FormAnswer = { action: "accept", content: { decision: "approve" } };

/** A person who decides by the file that a form is about, and remembers the forms. */
export function person(decisions: Record<string, FormAnswer>) {
  const forms: Form[] = [];
  const answer = (form: Form): FormAnswer => {
    forms.push(form);
    const file = Object.keys(decisions).find((name) => form.message.includes(name));
    return (file === undefined ? undefined : decisions[file]) ?? { action: "cancel" };
  };
  return { forms, answer };
}

/** Content of a file of the workspace; `undefined` when there is none. */
export function inWorkspace({ workspace }: Home, file: string): string | undefined {
  const path = join(workspace, file);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

export const runIdOf = ({ structured }: { structured: Record<string, unknown> }): string =>
  String(structured["run_id"]);

/** Checks a run as often as it takes, and gives its last report. */
export async function untilStatus(client: TestClient, runId: string, ...wanted: string[]) {
  for (let after = 0; ;) {
    const { structured } = await client.call("check_deep_agent", { run_id: runId, after });
    after = Number(structured["last_event"]);
    const status = String(structured["status"]);
    if (wanted.includes(status)) return structured;
    if (FINAL.includes(status)) throw new Error(`the run is ${status}: ${String(structured["message"])}`);
  }
}

const FINAL = ["completed", "failed", "cancelled"];
