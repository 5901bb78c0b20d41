import { ConfigurationError } from "../core/errors.ts";

/** Loads a package by its name. Default: `import`. */
export type LoadPackage = (name: string) => Promise<unknown>;

export interface OptionalPackage {
  /** The part of this library that needs it, such as `S3Backend`. */
  user: string;
  name: string;
  /** The version this was written for. */
  version: string;
}

/** Loads the package. If it is missing, throws a `ConfigurationError` with the command that installs it. */
export async function loadOptional(
  { user, name, version }: OptionalPackage,
  load: LoadPackage = (name) => import(name),
): Promise<unknown> {
  try {
    return await load(name);
  } catch (cause) {
    const message = `${user} needs the package ${name}, which is not installed: run npm install ${name}@${version}`;
    throw new ConfigurationError("PACKAGE_MISSING", message, { cause });
  }
}
