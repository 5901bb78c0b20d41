import type { FileRoot } from "../../backends/backend.ts";
import type { SandboxBackend } from "../../backends/executor.ts";
import { withSlash, withoutSlash } from "../../backends/paths.ts";
import { rootAt } from "../../backends/runtime.ts";
import { displayName, fill, quotedIn } from "../../core/text.ts";
import prompts from "./prompts.json" with { type: "json" };

/** The texts of the system prompt: every byte is paid for on each call, and none depends on time, thread or files. */

export { prompts as PROMPTS };
export { GENERAL_PURPOSE } from "../../tools/tool.ts";

export const BASE_PROMPT = fill(prompts.base, prompts.shared);

/** Text from outside for the system prompt: it can neither end the block it stands in nor begin the guidelines. */
export const asMaterial = (text: string): string => quotedIn(["agent_memory", "memory_guidelines"], text);

/** Describes the roots of the agent's file tree and their purposes. */
export function filesPrompt(roots: readonly FileRoot[]): string {
  const lines = roots.map(
    ({ path, holds, readOnly }) =>
      `- \`${displayName(withSlash(path))}\`: ${readOnly ? "read-only" : prompts.holds[holds]}`,
  );
  const only = roots.some(({ path }) => path === "/") ? [] : ["There are no files elsewhere."];
  return fill(prompts.files, [...lines, ...only].join("\n"));
}

/** Describes the agent's memories, and where it saves new ones, if it can. */
export function memoryGuidelines(roots: readonly FileRoot[], sources: readonly string[]): string {
  const kept = roots.filter(({ holds, readOnly }) => holds === "kept" && !readOnly);
  const folder = kept.find(({ path }) => path === "/memories") ?? kept[0];
  const file = sources.findLast((source) => rootAt(roots, source)?.readOnly !== true);
  const edit = "`edit_file` on the file it belongs to";
  const create = folder && `\`write_file\` below \`${withSlash(folder.path)}\` for a new subject`;
  const recreate = file && `\`write_file\` to \`${displayName(file)}\` when it is missing`;
  const ways = [file && edit, create ?? recreate].filter((way) => way !== undefined).join(" or ");
  return fill(prompts.memory, ways === "" ? "You cannot change them." : fill(prompts.remember, ways));
}

/** Describes where commands run and their limits: the same bytes for the same backend. */
export function commandsPrompt({ commands = {}, capabilities = {} }: SandboxBackend): string {
  const { folder = "/", directory, readable = [], network, timeout, outputBytes } = commands;
  const others = readable.filter((top) => top !== withoutSlash(folder)).map((top) => `\`${withSlash(top)}\``);
  const nothing =
    others.length === 0 ? "Nothing else" : `They can read ${others.join(" and ")}, but nothing else`;
  const { isolation, paths } = capabilities;
  const texts = prompts.commands;
  const facts = [
    isolation && (isolation === "none" ? "on this machine, outside any sandbox" : "in a sandbox"),
    network === undefined ? undefined : network ? "with network" : "without network",
  ].filter((fact) => fact !== undefined);
  const place = directory === undefined ? "" : `in \`${displayName(directory)}\`, `;
  const there = directory === undefined ? "the folder" : `\`${directory}\`, which is the folder`;
  const isSame = directory === withoutSlash(folder);
  const start = isSame ? fill(texts.same, directory) : fill(texts.elsewhere, there, withSlash(folder));
  const sentences = [
    `\`execute\` runs commands${facts.length > 0 ? ` ${facts.join(", ")}` : ""}.`,
    paths === "real" ? fill(texts.real, place) : start,
    ...(folder === "/" ? [] : [fill(texts.outside, nothing, withSlash(folder))]),
    ...(timeout === undefined ? [] : [fill(texts.timeout, timeout)]),
    ...(outputBytes === undefined ? [] : [fill(texts.output, outputBytes)]),
  ];
  return `## Commands\n${sentences.join(" ")}`;
}
