/** The entry of this server in the file of a client, made without changing anything else in it. */
import { parseJson } from "../../config/load.ts";
import type { Launch } from "../../config/program.ts";
import { isObject, textMemberOf } from "../../core/unknown.ts";
import { type FileClient, NAME } from "./catalogue.ts";
import type { EditedText } from "./json-text.ts";
import { addElement, elements, removeAt, setMember, valueAt, withObject } from "./json-text.ts";
import { setTomlTable, tomlValueAt } from "./toml-text.ts";
import { setYamlMember, yamlValueAt } from "./yaml-text.ts";

/** Content for the entry of this server. */
export interface Settings {
  launch: Launch;
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

/** Start command for the client, and the questions that the file refers to. */
export interface Entry {
  command: string;
  args: string[];
  env: Record<string, string>;
  inputs: Input[];
}

/** The entry, or the reason why a variable cannot be in it. */
export function entryFor(
  client: FileClient,
  { launch, flags, env }: Settings,
  shell: Readonly<Record<string, string | undefined>>,
): { ok: true; entry: Entry } | { ok: false; problem: string } {
  const values: Record<string, string> = {};
  const inputs: Input[] = [];
  for (const [name, given] of env) {
    const id = `${NAME}-${name.toLowerCase().replaceAll("_", "-")}`;
    if (given !== undefined) values[name] = given;
    else if (client.asksForKeys) {
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
  const { command, args } = launch;
  return { ok: true, entry: { command, args: [...args, ...flags], env: values, inputs } };
}

/** True if a variable holds a secret: by its name, or because its value is an address with a password. */
export const isSecret = (name: string, value: string): boolean =>
  /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH/i.test(name) || /^[a-z][\w+.-]*:\/\/[^/\s:]*:[^/\s]+@/i.test(value);

/** The variables of an entry whose secret values are in it, instead of references to them. */
export const secretsIn = ({ env }: Pick<Entry, "env">): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    isSecret(name, value) && !/^\$?\{/.test(value) ? [name] : [],
  );

/** A file of this client with nothing else in it, without the values of keys but with references to them. */
export function snippetOf(client: FileClient, entry: Entry): string {
  const hidden = Object.fromEntries(secretsIn(entry).map((name) => [name, "…"]));
  const result = withEntry("", client, { ...entry, env: { ...entry.env, ...hidden } });
  return result.ok ? result.text.trimEnd() : "";
}

export function withEntry(text: string, client: FileClient, { inputs, ...start }: Entry): EditedText {
  const { env, command, args } = start;
  const servers = client.servers(parseText(text, client));
  const [key = "", ...inner] = servers;
  const value = client.entry({ command, args, ...(Object.keys(env).length === 0 ? {} : { env }) }, servers);
  if (JSON.stringify(entryValue(text, client)) === JSON.stringify(value)) return { ok: true, text };
  if (client.format === "yaml") return setYamlMember(text, key, NAME, value);
  if (client.format === "toml") return setTomlTable(text, key, NAME, value);
  let result = setMember(withObject(text), [key, ...inner, NAME], value);
  for (const input of inputs) {
    if (result.ok && indexOfInput(result.text, input.id) === -1)
      result = addElement(result.text, "inputs", input);
  }
  return result;
}

/**
 * A file's text without the server, and without the questions that only it refers to. Blocks that are empty then go
 * too, unless they were in the file `before`; if that is not known, they stay.
 */
export function withoutEntry(text: string, client: FileClient, before?: string): EditedText {
  const path = client.servers(parseText(text, client));
  const [key = "", ...inner] = path;
  if (client.format === "yaml") {
    const isOurs = before !== undefined && yamlValueAt(before, key) === undefined;
    return setYamlMember(text, key, NAME, undefined, isOurs);
  }
  if (client.format === "toml") return setTomlTable(text, key, NAME);
  let result = removeAt(text, [key, ...inner, NAME]);
  // Only its id is looked at; the rest is compared and written back as it was read.
  for (const { id } of (elements(text, "inputs") ?? []).filter((input): input is Input =>
    inputId(input).startsWith(`${NAME}-`),
  )) {
    if (result.ok) result = removeAt(result.text, ["inputs", indexOfInput(result.text, id)]);
  }
  const blocks = path.map((_, left): [string, ...string[]] => [key, ...inner.slice(0, inner.length - left)]);
  for (const block of before === undefined ? [] : [...blocks, ["inputs"] as const]) {
    const isOurs = valueAt(before ?? "", block) === undefined;
    const left = result.ok && isOurs ? valueAt(result.text, block) : undefined;
    if (result.ok && isObject(left) && Object.keys(left).length === 0)
      result = removeAt(result.text, [...block]);
  }
  return result;
}

/** True if two texts differ only in white space between their parts, and in the form of an empty block. */
export const differOnlyInForm = (one: string, other: string): boolean => bare(one) === bare(other);

const bare = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\\n]|\\.)*"?)|\s+/g, (run, word) => word ?? (run.includes("\n") ? "\n" : " "))
    .replaceAll(/("(?:[^"\\\n]|\\.)*"?)|\s?\{\s?\}|\s?([{}[\],\n])\s?/g, "$1$2")
    .trim();

export const hasEntry = (text: string, client: FileClient): boolean => entryValue(text, client) !== undefined;

function entryValue(text: string, client: FileClient): unknown {
  const path = client.servers(parseText(text, client));
  if (client.format === "json") return valueAt(text, [...path, NAME]);
  return (client.format === "yaml" ? yamlValueAt : tomlValueAt)(text, ...path, NAME);
}

function parseText(text: string, { format }: FileClient): unknown {
  if (format !== "json") return undefined;
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : undefined;
}

const indexOfInput = (text: string, id: string): number =>
  (elements(text, "inputs") ?? []).findIndex((input) => inputId(input) === id);

const inputId = (input: unknown): string => textMemberOf(input, "id") ?? "";

/** Environment that the client will pass to the server, as far as it is known here. */
export function environmentOf(
  { env }: Pick<Entry, "env">,
  base: Readonly<Record<string, string | undefined>>,
  shell: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const known: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(env)]) {
    const [, inDollar, inBraces] = /^(?:\$\{(?:env:)?(\w+)\}|\{env:(\w+)\})$/.exec(value ?? "") ?? [];
    const referred = inDollar ?? inBraces;
    const plain = value?.startsWith("${input:") ? "asked for by the client" : value;
    const found = referred ? shell[referred] : plain;
    if (found !== undefined) known[name] = found;
  }
  return known;
}
