/** Context windows of models, as their servers report them. */
import { memberOf, parsedJson, textMemberOf } from "../../../core/unknown.ts";
import { beginningOfBody } from "../stream-guard.ts";
import { type Profile, PROVIDERS } from "./profile.ts";

const ASK_MS = 4000;
const LONGEST_ANSWER = 4 * 1024 ** 2;

/** Members that hold a window: the first that is there counts. */
const WINDOW_MEMBERS =
  "loaded_context_length max_model_len context_length context_window max_context_length max_input_tokens max_prompt_tokens n_ctx contextLength maxContextLength inputTokenLimit".split(
    " ",
  );

const isWindow = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1024;

/** Members of an item, and of parts of it, that hold others. */
const PARTS = "meta limits model_info capabilities top_provider default_generation_settings".split(" ");

/** The window of a model in an answer: that of its item in a list of models, or of the whole answer. */
function readWindow(answer: unknown, model: string): number | undefined {
  const lists = [answer, memberOf(answer, "data"), memberOf(answer, "models")];
  const list = lists.find((one) => Array.isArray(one));
  // Ollama completes a name without a tag.
  const isName = (name: unknown): boolean => name === model || name === `${model}:latest`;
  const isNamed = (one: unknown): boolean =>
    ["id", "key", "name", "model", "model_name"].some((name) => isName(memberOf(one, name)));
  const item: unknown = list === undefined ? answer : list.find(isNamed);
  // Ollama reports a window that a Modelfile sets as text.
  const set = Number(/^num_ctx\s+(\d+)/m.exec(textMemberOf(item, "parameters") ?? "")?.[1]);
  const parts = [item, ...PARTS.map((name) => memberOf(item, name))];
  const inner = [...parts, ...parts.map((part) => memberOf(part, "limits"))];
  const found = WINDOW_MEMBERS.map((name) => inner.map((part) => memberOf(part, name)).filter(isWindow));
  // Parts of an item may have different windows.
  const windows = found.find(({ length }) => length > 0) ?? [set].filter(isWindow);
  return windows.length > 0 ? Math.min(...windows) : undefined;
}

/**
 * Requests a model's window from its server; `undefined` if the server does not report one. Skips services whose models
 * all have the windows of the table.
 */
export async function askWindow(
  { provider, family, model, isLocal }: Profile,
  { url, headers }: { url: string; headers: Record<string, string> },
  fetch: typeof globalThis.fetch = globalThis.fetch,
): Promise<number | undefined> {
  const asks = provider === undefined ? undefined : PROVIDERS[provider]?.asks;
  // Behind an address that is not known, models of vendors have the vendors' windows.
  if (asks === undefined && family?.open === false) return undefined;
  if (asks === undefined && provider !== undefined && !isLocal) return undefined;
  for (const question of asks ?? ["models", "/props"]) {
    const [path = "", isPost] = question.split(" ").toReversed();
    const body = isPost ? { method: "POST", body: JSON.stringify({ model }) } : {};
    try {
      const address = path.startsWith("/") ? new URL(path, url) : new URL(`${url}/${path}`);
      const answer = await fetch(address, {
        ...body,
        headers: { ...headers, ...(isPost && { "content-type": "application/json" }) },
        signal: AbortSignal.timeout(ASK_MS),
        redirect: "error",
      });
      if (!answer.ok) {
        await answer.body?.cancel();
        continue;
      }
      const text = answer.body === null ? "" : await beginningOfBody(answer.body, LONGEST_ANSWER);
      const window = readWindow(parsedJson(text), model);
      if (window !== undefined) return window;
    } catch {
      return undefined; // a server that cannot be asked now may answer requests all the same
    }
  }
  return undefined;
}
