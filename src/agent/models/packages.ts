/** Packages of model providers that the program does not have in it: they are added to a folder of the data directory. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { orElse } from "../../core/errors.ts";
import { fill } from "../../core/text.ts";
import { parsedJson, textMemberOf } from "../../core/unknown.ts";
import { providerFacts } from "./choose.ts";
import type { Provider } from "./profiles/schema.ts";
import texts from "./texts.json" with { type: "json" };

export const packagesFolder = (dataDir: string): string => join(dataDir, "packages");

/** A module in the folder: only its imports are resolved there. */
export const LOADER: { readonly file: string; readonly text: string } = {
  file: "load.mjs",
  text: "export const load = (name) => import(name);\n",
};

/** The version of a package that was added to the folder; `undefined`: it was not. */
export function addedVersion(folder: string, name: string): string | undefined {
  const manifest = join(folder, "node_modules", name, "package.json");
  if (!existsSync(manifest) || !existsSync(join(folder, LOADER.file))) return undefined;
  return textMemberOf(parsedJson(readFileSync(manifest, "utf8")), "version");
}

/** True if the program would find the package without the folder. */
export const isBesideProgram = (name: string): boolean =>
  orElse(() => createRequire(import.meta.url).resolve(name), undefined) !== undefined;

/** Loads a package from the folder, or where it was not added, from beside the program. */
export async function loadPackage(name: string, folder?: string): Promise<Record<string, unknown>> {
  if (folder === undefined || addedVersion(folder, name) === undefined)
    return (await import(name)) as Record<string, unknown>; // a module has names
  const loader = pathToFileURL(join(folder, LOADER.file)).href;
  const { load } = (await import(loader)) as { load: typeof loadPackage }; // it is `LOADER.text`
  return load(name);
}

/** True if a provider's own package is in the program, was added to the folder, or is beside the program. */
export const hasPackage = ({ package: own }: Provider, folder: string | undefined): boolean =>
  own !== undefined &&
  (own.versions === undefined ||
    (folder !== undefined && addedVersion(folder, own.name) !== undefined) ||
    isBesideProgram(own.name));

/** Why models of a provider cannot be made; `undefined`: they can. Loads nothing. */
export function packageProblem(provider: string, folder: string): string | undefined {
  const facts = providerFacts(provider);
  const isThere = facts.wire !== undefined || hasPackage(facts, folder);
  return isThere ? undefined : packageMissing(provider, facts.package?.name ?? "");
}

export const packageMissing = (provider: string, name: string): string =>
  fill(texts.packageToAdd, provider, name, provider);
