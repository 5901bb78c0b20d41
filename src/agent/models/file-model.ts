/** Chooses the model of a subagent that a file of the workspace describes, among models that the operator named. */
import { displayName, fill, oneLine } from "../../core/text.ts";
import { type ModelOptions, modelChoice } from "./choose.ts";
import texts from "./texts.json" with { type: "json" };

export interface NamedModels extends Omit<ModelOptions, "model"> {
  /** The main model as `provider:model`; `undefined`: there is none. */
  main: string | undefined;
  /** The others as the operator wrote them. */
  others: readonly string[];
}

/**
 * The model of a subagent file, in the operator's own text, or undefined for the main model. Names such as `sonnet`, in
 * `modelAlias`, stand for a named model of that family, the main one before the others; the first allowed one of a list counts. A file that asks for a model
 * that nobody named gets the main model, and a notice.
 */
export function fileModel(
  { name, model, modelAlias = "" }: { name: string; model?: string; modelAlias?: string | readonly string[] },
  named: NamedModels,
): { model?: string; notice?: string } {
  const wishes = [model ?? modelAlias].flat();
  const { main, others, ...options } = named;
  const known = others.flatMap((text) => {
    const choice = modelChoice({ ...options, model: text });
    return choice.ok ? [{ text, spec: choice.spec }] : [];
  });
  const specs = main === undefined ? known : [{ text: undefined, spec: main }, ...known];
  for (const wish of wishes) {
    // Other programs write `provider/model`, or the vendor in parentheses.
    const text = wish.trim().replace(/\([^()]*\)$/, "");
    const [, provider = "", plain = ""] = /^(?:([\w.-]+)\/)?(.*)$/s.exec(text.trim()) ?? [];
    if (["", "inherit", "default"].includes(plain.toLowerCase())) return {};
    // Model names contain the words of their family, such as `gpt-5`, in this order.
    const isOfFamily = (spec: string): boolean =>
      hyphenated(withoutProvider(spec)).includes(hyphenated(plain));
    const offered = specs.filter(({ spec }) => provider === "" || spec.startsWith(`${provider}:`));
    const found =
      specs.find(({ spec }) => spec === wish || withoutProvider(spec) === wish) ??
      offered.find(({ spec }) => withoutProvider(spec) === plain) ??
      (model === undefined && !wish.includes(":") ? offered.find(({ spec }) => isOfFamily(spec)) : undefined);
    if (found !== undefined) return found.text === undefined ? {} : { model: found.text };
  }
  return { notice: fill(texts.modelNotAllowed, name, displayName(oneLine(wishes.join(", "), 100))) };
}

const withoutProvider = (spec: string): string => spec.slice(spec.indexOf(":") + 1);

const hyphenated = (name: string): string => `-${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}-`;
