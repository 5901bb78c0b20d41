/** The Skills extension: the catalog of skills, and the resources that show them. */
import { type McpServer, type Resource, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { Skill } from "@modelcontextprotocol/server/ext/skills";
import { z } from "zod";
import type { Backend } from "../../backends/backend.ts";
import { isTextType, mimeTypeOf } from "../../backends/mime.ts";
import { defined } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import { decodeUtf8 } from "../../core/utf8.ts";
import { cacheFor } from "../contracts/revisions.ts";
import { DIRECTORY_TYPE } from "./files.ts";
import type { Contents, ResourceScope, ResourceSpec } from "./resource.ts";
import { guarded, invalidCursor, invalidParams } from "./resource.ts";
import { decodeOnce, encodePath } from "../contracts/uris.ts";
import facts from "./resources.json" with { type: "json" };

/** Skills in one answer of `skills/list`, and skills named in `resources/list`. */
const PAGE = 50;
/** Time that a client may cache a description, in ms. A file that has changed since does not match its digest. */
const TTL_MS = 60_000;

const UriParams = z.looseObject({ uri: z.string() });

/** Files below `/skills/` at `skill://…`: instructions for the client's own model, and for the agent. */
export const SKILLS: ResourceSpec = {
  ...facts.skills,
  uri: "skill://{+path}",
  list: async (scope) => {
    const skills = await openCatalog(scope);
    const uris = (await skills.uris()).slice(0, PAGE);
    const summaries = await Promise.all(uris.map((uri) => skills.summarize(uri)));
    return summaries.flatMap((summary) => summary ?? []);
  },
  complete: {
    path: async (scope, typed) => {
      const paths = (await (await openCatalog(scope)).uris()).map((uri) => uri.slice("skill://".length));
      return paths.filter((path) => path.startsWith(typed));
    },
  },
  read: async ({ uri }, scope) => ({ ...(await (await openCatalog(scope)).read(uri)), ttlMs: TTL_MS }),
};

const openCatalog = async ({ runs, logger }: ResourceScope): Promise<SkillCatalog> =>
  new SkillCatalog(await (await runs()).files.mounts(), logger);

/** Answers the methods of the extension, which describe skills. */
export function serveSkills(mcp: McpServer, scope: ResourceScope): void {
  const catalog = (): Promise<SkillCatalog> => openCatalog(scope);
  const cache = cacheFor(scope.revision, TTL_MS);
  const params = z.looseObject({ cursor: z.string().optional() });
  mcp.server.setRequestHandler("skills/list", { params }, ({ cursor }) =>
    guarded("skills/list", scope, async () => ({ ...(await page(await catalog(), cursor)), ...cache })),
  );
  mcp.server.setRequestHandler("skills/get", { params: UriParams }, ({ uri }) =>
    guarded("skills/get", scope, async () => {
      const skill = await (await catalog()).describe(uri);
      if (skill === undefined)
        throw invalidParams(`No skill is served at ${uri}. List them with skills/list.`, { uri });
      return { skill, ...cache };
    }),
  );
  mcp.server.setRequestHandler("resources/directory/read", { params: UriParams }, ({ uri }) =>
    guarded("resources/directory/read", scope, async () => {
      const resources = await (await catalog()).children(uri);
      if (resources === undefined)
        throw invalidParams(`${uri} is not a folder of a skill that is served.`, { uri });
      return { resources, ...cache };
    }),
  );
}

/** One page of descriptions; the cursor is the URI before it, so that pages fit together when skills change. */
async function page(
  catalog: SkillCatalog,
  cursor?: string,
): Promise<{ skills: object[]; nextCursor?: string }> {
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString();
  if (cursor !== undefined && !after.startsWith("skill://")) throw invalidCursor();
  const rest = (await catalog.uris()).filter((uri) => uri > after);
  const shown = rest.slice(0, PAGE);
  const skills: object[] = [];
  for (const uri of shown) {
    const skill = await catalog.describe(uri);
    if (skill !== undefined) skills.push(skill);
  }
  const last = rest.length > PAGE ? shown.at(-1) : undefined;
  return { skills, ...defined({ nextCursor: last && Buffer.from(last).toString("base64url") }) };
}

const ROOT = "/skills";
const MANIFEST = "SKILL.md";
/** Size of one skill that every client has to accept (SEP-2640). */
const MAX = { files: 512, bytes: 16 * 1024 * 1024 };

/**
 * The skills below `/skills/` as the Skills extension (SEP-2640) describes them. Nothing is cached: files are read on
 * request, so that a description always fits the files read after it.
 */
class SkillCatalog {
  readonly #files: Backend;
  readonly #logger: Logger;

  constructor(files: Backend, logger: Logger) {
    this.#files = files;
    this.#logger = logger;
  }

  /** URIs of all `SKILL.md`, sorted. Whether a skill is well-formed shows when it is described. */
  async uris(): Promise<string[]> {
    const found: string[] = [];
    for (const folder of await this.#foldersIn(ROOT)) {
      if (await this.#hasManifest(folder)) found.push(folder);
      else
        for (const nested of await this.#foldersIn(folder))
          if (await this.#hasManifest(nested)) found.push(nested);
    }
    return found.map((folder) => skillUri(`${folder}/${MANIFEST}`)).sort();
  }

  /** A skill with all its files; `undefined` when there is none at `uri` or it is not well-formed. */
  async describe(uri: string): Promise<Skill | undefined> {
    const folder = skillFolder(uri);
    if (folder === undefined) return undefined;
    const paths = await this.#filesBelow(folder);
    return paths === undefined ? undefined : this.#entry(folder, paths);
  }

  async summarize(uri: string): Promise<Resource | undefined> {
    const folder = skillFolder(uri);
    const skill = folder === undefined ? undefined : await this.#entry(folder, [`${folder}/${MANIFEST}`]);
    if (skill === undefined) return undefined;
    const { name, description } = skill.frontmatter;
    return { uri: skill.uri, name, description, mimeType: "text/markdown" };
  }

  /** @throws ResourceNotFoundError if the URI is not that of a file in a well-formed skill. */
  async read(uri: string): Promise<Contents> {
    const path = skillPath(uri);
    const inSkill = path !== undefined && (await this.#skillFolderOf(path)) !== undefined;
    const bytes = inSkill ? (await this.#download([path]))?.[0] : undefined;
    if (path === undefined || bytes === undefined) throw new ResourceNotFoundError(uri);
    const mimeType = mimeTypeOf(path);
    const text = isTextType(mimeType) ? decodeUtf8(bytes) : undefined;
    if (text !== undefined) return { mimeType, text };
    return { mimeType, blob: Buffer.from(bytes).toString("base64") };
  }

  /** Returns the children of a skill's folder, or undefined if `uri` is not one. */
  async children(uri: string): Promise<Resource[] | undefined> {
    const path = skillPath(uri);
    if (path === undefined || (await this.#skillFolderOf(path)) === undefined) return undefined;
    const { files } = await this.#files.ls(path);
    // Some backends list a file as itself.
    if (files?.some((file) => !file.is_dir && file.path === path)) return undefined;
    return files?.filter(isShown).map(({ path: child, is_dir, size }) => {
      const plain = withoutSlash(child);
      const kind = is_dir
        ? { mimeType: DIRECTORY_TYPE }
        : { mimeType: mimeTypeOf(plain), ...defined({ size }) };
      return { uri: skillUri(plain), name: baseName(plain), ...kind };
    });
  }

  /** The well-formed skill that `path` is or belongs to. */
  async #skillFolderOf(path: string): Promise<string | undefined> {
    const segments = path.slice(ROOT.length + 1).split("/");
    // A skill is `name`, or `folder/name` for a configured folder of skills.
    for (const depth of [1, 2]) {
      if (segments.length < depth) break;
      const folder = `${ROOT}/${segments.slice(0, depth).join("/")}`;
      if (await this.#hasManifest(folder)) {
        const skill = await this.#entry(folder, [`${folder}/${MANIFEST}`]);
        return skill && folder;
      }
    }
    return undefined;
  }

  async #entry(folder: string, paths: readonly string[]): Promise<Skill | undefined> {
    const contents = await this.#download(paths);
    if (contents === undefined) return this.#skip(folder, "one of its files is a link or cannot be read");
    const { skillEntry, SkillCatalogError } = await import("@modelcontextprotocol/server/ext/skills");
    const files: Record<string, Uint8Array> = {};
    for (const [index, path] of paths.entries())
      files[path.slice(folder.length + 1)] = contents[index] ?? new Uint8Array();
    try {
      return await skillEntry(folder.slice(ROOT.length + 1), files);
    } catch (error) {
      if (!(error instanceof SkillCatalogError)) throw error;
      return this.#skip(folder, error.problems.map(({ message }) => message).join("; "));
    }
  }

  /** Every file of a skill; `undefined` when that is more than clients have to take. */
  async #filesBelow(folder: string): Promise<string[] | undefined> {
    const found: string[] = [];
    const open = [folder];
    let bytes = 0;
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { files, error } = await this.#files.ls(next);
      if (files === undefined) return this.#skip(folder, error ?? "it cannot be listed");
      for (const { path, is_dir, size = 0 } of files.filter(isShown)) {
        if (is_dir) open.push(withoutSlash(path));
        else found.push(path);
        bytes += size;
      }
      if (found.length + open.length > MAX.files || bytes > MAX.bytes)
        return this.#skip(folder, `it has more than ${MAX.files} files and folders, or more than 16 MiB`);
    }
    return found;
  }

  async #foldersIn(folder: string): Promise<string[]> {
    const { files = [] } = await this.#files.ls(folder);
    return files.filter((file) => file.is_dir && isShown(file)).map(({ path }) => withoutSlash(path));
  }

  async #hasManifest(folder: string): Promise<boolean> {
    const { files = [] } = await this.#files.ls(folder);
    return files.some(({ path, is_dir }) => is_dir !== true && path === `${folder}/${MANIFEST}`);
  }

  /** Bytes as they are stored; `undefined` when one of the files cannot be read. */
  async #download(paths: readonly string[]): Promise<Uint8Array[] | undefined> {
    const downloaded = (await this.#files.downloadFiles?.([...paths])) ?? [];
    const contents = downloaded.flatMap(({ content }) => (content === null ? [] : [content]));
    return contents.length === paths.length ? contents : undefined;
  }

  #skip(folder: string, problem: string): undefined {
    this.#logger.warn("skill_not_served", { skill: folder, problem });
    return undefined;
  }
}

/** Virtual path of a `skill://` URI; `undefined` for other URIs and for paths that leave the folder. */
function skillPath(uri: string): string | undefined {
  const rest = /^skill:\/\/([^?#]+)$/.exec(uri)?.[1];
  const segments = rest?.split("/").map(decodeOnce);
  if (!segments?.every((segment) => segment !== undefined && !/^\.|^$|[/\\\0]/.test(segment)))
    return undefined;
  return `${ROOT}/${segments.join("/")}`;
}

function skillFolder(uri: string): string | undefined {
  const path = skillPath(uri);
  return path?.endsWith(`/${MANIFEST}`) ? path.slice(0, -MANIFEST.length - 1) : undefined;
}

const skillUri = (path: string): string => `skill:/${encodePath(path.slice(ROOT.length))}`;
const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
const withoutSlash = (path: string): string => path.replace(/\/$/, "");
/** Hidden files do not belong to a skill. */
const isShown = ({ path }: { path: string }): boolean => !baseName(withoutSlash(path)).startsWith(".");
