import { ConfigurationError } from "../core/errors.ts";

/** Loads a package by its name. Default: `import`. */
export type LoadPackage = (name: string) => Promise<unknown>;

/** A package that is installed only by those who use what needs it. */
export interface OptionalPackage {
  /** What needs it, as its user calls it. */
  user: string;
  name: string;
  /** The version this was written for. */
  version: string;
}

/** The package; throws a `ConfigurationError` that says how to get it. */
export async function loadOptional(
  { user, name, version }: OptionalPackage,
  load: LoadPackage = (name) => import(name),
): Promise<unknown> {
  try {
    return await load(name);
  } catch (cause) {
    throw new ConfigurationError(
      "PACKAGE_MISSING",
      `${user} needs the package ${name}, which is not installed: run npm install ${name}@${version}`,
      { cause },
    );
  }
}
