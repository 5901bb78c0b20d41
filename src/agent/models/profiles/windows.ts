/** Context windows of models, as their servers report them or as the table has them. */
import { memberOf, parsedJson, textMemberOf } from "../../../core/unknown.ts";
import { asArray } from "../tool-schema.ts";
import { type Profile, PROVIDERS } from "./profile.ts";
import type { Provider } from "./schema.ts";

/** A window for a server on one's own machine or network, where nothing else is known. */
const OWN_SERVER = 32_000;
const ASK_MS = 4000;
const LONGEST_ANSWER = 4 * 1024 ** 2;

/** The window by the table: that of the vendor, which a server of one's own may not have memory for. */
export const knownWindow = ({ family, window, isLocal }: Profile): number | undefined =>
  isLocal && family?.open !== false ? Math.min(window ?? OWN_SERVER, OWN_SERVER) : window;

/** A question to a server, and how its answer is read. */
interface WindowQuestion {
  /** Path beside the address of the API, or, with a slash, from the root of the server. */
  path: string;
  post?: (model: string) => Record<string, unknown>;
  read: (answer: unknown, model: string) => unknown;
}

/** Members that hold a window: the first that is there counts. */
const WINDOW_MEMBERS =
  "loaded_context_length max_model_len context_length context_window max_context_length max_input_tokens max_prompt_tokens n_ctx contextLength maxContextLength inputTokenLimit".split(
    " ",
  );

const isWindow = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1024;

const MODELS: WindowQuestion = {
  path: "models",
  read: (answer, model) => {
    const list = Array.isArray(answer)
      ? answer
      : asArray(memberOf(answer, "data") ?? memberOf(answer, "models"));
    const item = list.find((one) =>
      ["id", "key", "name", "model", "model_name"].some((name) =>
        // Ollama completes a name without a tag.
        [model, `${model}:latest`].includes(String(memberOf(one, name))),
      ),
    );
    const names = ["meta", "limits", "model_info", "capabilities", "top_provider"];
    const parts = [item, ...names.map((name) => memberOf(item, name))];
    const inner = [...parts, ...parts.map((part) => memberOf(part, "limits"))];
    const found = WINDOW_MEMBERS.map((name) => inner.map((part) => memberOf(part, name)).filter(isWindow));
    // Parts of an item may have different windows.
    return Math.min(...(found.find((windows) => windows.length > 0) ?? []));
  },
};

/** Requests that reveal a window, in order, by kind of server. */
const QUESTIONS: Readonly<Record<NonNullable<Provider["asks"]>, readonly WindowQuestion[]>> = {
  models: [MODELS],
  copilot: [MODELS],
  litellm: [{ ...MODELS, path: "/v1/model/info" }, MODELS],
  lmstudio: [{ ...MODELS, path: "/api/v0/models" }, MODELS],
  llamacpp: [
    { path: "/props", read: (answer) => memberOf(memberOf(answer, "default_generation_settings"), "n_ctx") },
    MODELS,
  ],
  ollama: [
    // The window of the loaded model, which may be smaller than that of its family.
    { ...MODELS, path: "/api/ps" },
    {
      path: "/api/show",
      post: (model) => ({ model }),
      read: (answer) => {
        const set = /^num_ctx\s+(\d+)/m.exec(textMemberOf(answer, "parameters") ?? "")?.[1];
        return set === undefined ? undefined : Number(set);
      },
    },
  ],
};

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
  const questions = asks === undefined ? [...QUESTIONS.llamacpp].toReversed() : QUESTIONS[asks];
  for (const { path, post, read } of questions) {
    const body = post === undefined ? {} : { method: "POST", body: JSON.stringify(post(model)) };
    try {
      const address = path.startsWith("/") ? new URL(path, url) : new URL(`${url}/${path}`);
      const answer = await fetch(address, {
        ...body,
        headers: { ...headers, ...(post && { "content-type": "application/json" }) },
        signal: AbortSignal.timeout(ASK_MS),
        redirect: "error",
      });
      if (!answer.ok) {
        await answer.body?.cancel();
        continue;
      }
      const parts: Uint8Array[] = [];
      let size = 0;
      for await (const part of answer.body ?? []) {
        parts.push(part);
        size += part.length;
        if (size > LONGEST_ANSWER) break;
      }
      const told: unknown = parsedJson(Buffer.concat(parts).toString("utf8"));
      const window = read(told, model);
      if (isWindow(window)) return window;
    } catch {
      return undefined; // a server that cannot be asked now may answer requests all the same
    }
  }
  return undefined;
}
