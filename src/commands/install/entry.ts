import type { Launch } from "../../config/program.ts";
import { addElement, type EditedJson, elements, removeAt, setMember, valueAt } from "./edit-json.ts";
import type { FileClient } from "./clients.ts";

/** The name under which clients list this server. */
export const NAME = "deepagent";

/** The entry of this server, as a client needs it. */
export interface Settings {
  launch: Launch;
  /** Flags of the configuration. */
  flags: readonly string[];
  /** Variables for the server's environment; `undefined`: the value is in the environment or asked for. */
  env: ReadonlyMap<string, string | undefined>;
}

/** A question that the client asks its user once. */
interface Input {
  type: "promptString";
  id: string;
  description: string;
  password: true;
}

/** The member of a client's file, and the questions it refers to. */
export interface Entry {
  entry: { type?: "stdio"; command: string; args: string[]; env?: Record<string, string> };
  inputs: Input[];
}

/** How variables get into the entry, or why one cannot. `shell`: where their values are copied from. */
export type EntryOutcome = ({ ok: true } & Entry) | { ok: false; problem: string };

export function entryFor(
  client: FileClient,
  { launch, flags, env }: Settings,
  shell: Readonly<Record<string, string | undefined>>,
): EntryOutcome {
  const values: Record<string, string> = {};
  const inputs: Input[] = [];
  for (const [name, given] of env) {
    const id = `${NAME}-${name.toLowerCase().replaceAll("_", "-")}`;
    if (given !== undefined) {
      if (client.isShared && isSecret(name)) return { ok: false, problem: keyInProject(name, client) };
      values[name] = given;
    } else if (client.asksForKeys) {
      inputs.push({ type: "promptString", id, description: `${name} of deepagent-mcp`, password: true });
      values[name] = `\${input:${id}}`;
    } else if (client.reference) {
      values[name] = client.reference(name);
    } else {
      const value = shell[name];
      if (!value)
        return { ok: false, problem: `${name} is not set here. Set it, or use --env ${name}=VALUE.` };
      values[name] = value;
    }
  }
  const entry = {
    ...(client.isTyped ? { type: "stdio" as const } : {}),
    command: launch.command,
    args: [...launch.args, ...flags],
    ...(env.size === 0 ? {} : { env: values }),
  };
  return { ok: true, entry, inputs };
}

const isSecret = (name: string): boolean => /KEY|TOKEN|SECRET|PASS|CREDENTIAL/i.test(name);

/** For `JSON.stringify`: leaves out the values of keys, and keeps references to them. */
export const withoutSecrets = (name: string, value: unknown): unknown =>
  typeof value === "string" && isSecret(name) && !value.startsWith("${") ? "…" : value;

const keyInProject = (name: string, { file }: FileClient): string =>
  `The value of ${name} does not belong into ${file}, which is shared with the project. Use --env ${name}: the file then only refers to it.`;

/** A file's text with the server in it. */
export function withEntry(text: string, { key }: FileClient, { entry, inputs }: Entry): EditedJson {
  const same = JSON.stringify(valueAt(text, [key, NAME])) === JSON.stringify(entry);
  let result: EditedJson = same
    ? { ok: true, text }
    : setMember(text.trim() === "" ? "{}\n" : text, [key, NAME], entry);
  for (const input of inputs) {
    if (result.ok && indexOfInput(result.text, input.id) === -1)
      result = addElement(result.text, "inputs", input);
  }
  return result;
}

/** A file's text without the server, and without the questions that only it refers to. */
export function withoutEntry(text: string, { key }: FileClient): EditedJson {
  let result = removeAt(text, [key, NAME]);
  for (const { id } of ownInputs(text)) {
    if (result.ok) result = removeAt(result.text, ["inputs", indexOfInput(result.text, id)]);
  }
  return result;
}

/** The server as a file has it; `undefined`: it is not there. */
export function entryIn(text: string, { key }: FileClient): Entry | undefined {
  const entry = valueAt(text, [key, NAME]);
  // The entry is compared and written back as it was read, whatever its shape.
  return entry === undefined ? undefined : { entry: entry as Entry["entry"], inputs: ownInputs(text) };
}

const ownInputs = (text: string): Input[] =>
  // Only its id is looked at; the rest is compared and written back as it was read.
  (elements(text, "inputs") ?? []).filter((input): input is Input => idOf(input).startsWith(`${NAME}-`));

const indexOfInput = (text: string, id: string): number =>
  (elements(text, "inputs") ?? []).findIndex((input) => idOf(input) === id);

const idOf = (input: unknown): string =>
  typeof input === "object" && input !== null && "id" in input ? String(input.id) : "";

/** The environment that the client will give the server, as far as it can be known here. */
export function environmentOf(
  { entry }: Pick<Entry, "entry">,
  base: Readonly<Record<string, string | undefined>>,
  shell: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const known: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(entry.env ?? {})]) {
    const [, referred] = /^\$\{(?:env:)?(\w+)\}$/.exec(value ?? "") ?? [];
    const found = value?.startsWith("${input:")
      ? "asked for by the client"
      : referred
        ? shell[referred]
        : value;
    if (found !== undefined) known[name] = found;
  }
  return known;
}
