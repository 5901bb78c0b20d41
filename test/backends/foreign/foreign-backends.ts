import type { BackendV1 } from "../../../src/backends/foreign/adapt.ts";
import { compileGlob } from "../../../src/backends/glob.ts";
import type { Backend, FileData, FileInfo, GrepMatch } from "../../../src/backends/backend.ts";

/**
 * Two backends as others write them for deepagents: everything in a map, no capabilities declared, writes
 * that overwrite, lines counted from 1, failures without codes, exceptions for the unexpected.
 */

const stamp = new Date(0).toISOString();

function toData(path: string, bytes: Uint8Array): FileData {
  const isText = !path.endsWith(".png") && !bytes.includes(0);
  const times = { created_at: stamp, modified_at: stamp };
  return isText
    ? {
        content: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
        mimeType: "text/plain",
        ...times,
      }
    : { content: bytes, mimeType: "application/octet-stream", ...times };
}

class FileMap {
  readonly files = new Map<string, FileData>();

  textOf(path: string): string {
    const content = this.files.get(path)?.content ?? "";
    return typeof content === "string" ? content : "";
  }

  need(path: string): FileData {
    const data = this.files.get(path);
    if (data === undefined) throw new Error(`ENOENT: no such file or directory, open '/srv/host${path}'`);
    return data;
  }

  below(directory: string): string[] {
    const base = directory.endsWith("/") ? directory : `${directory}/`;
    return [...this.files.keys()].filter((path) => path.startsWith(base)).reverse();
  }

  list(directory: string): FileInfo[] {
    const base = directory.endsWith("/") ? directory : `${directory}/`;
    const names = new Set(this.below(directory).map((path) => path.slice(base.length).replace(/\/.*$/, "/")));
    return [...names].map((name) => ({ path: base + name, is_dir: name.endsWith("/") }));
  }

  glob(pattern: string, directory: string): FileInfo[] {
    const base = directory.endsWith("/") ? directory : `${directory}/`;
    const compiled = compileGlob(pattern);
    return this.below(directory)
      .filter((path) => compiled.ok && compiled.glob.matches(path.slice(base.length)))
      .map((path) => ({ path }));
  }

  grep(pattern: string, directory: string): GrepMatch[] {
    const paths = this.files.has(directory) ? [directory] : this.below(directory);
    return paths.flatMap((path) =>
      this.textOf(path)
        .split("\n")
        .flatMap((text, index) => (text.includes(pattern) ? [{ path, line: index + 1, text }] : [])),
    );
  }

  edit(path: string, oldString: string, newString: string, replaceAll: boolean) {
    const text = this.textOf(path);
    const count = text.split(oldString).length - 1;
    if (!this.files.has(path)) return { error: `Error: File '${path}' not found` };
    if (count === 0) return { error: `Error: String not found in file: '${oldString}'` };
    if (count > 1 && !replaceAll)
      return { error: `Error: String '${oldString}' appears ${count} times in file` };
    this.put(path, new TextEncoder().encode(text.split(oldString).join(newString)));
    return { path, filesUpdate: null, occurrences: count };
  }

  put(path: string, bytes: Uint8Array): void {
    this.files.set(path, toData(path, bytes));
  }
}

export function foreignV2(): Backend {
  const map = new FileMap();
  return {
    ls: (path) => ({ files: map.list(path) }),
    read: async (path, offset = 0, limit = 500) => {
      await Promise.resolve();
      const { content } = map.need(path);
      if (typeof content !== "string") return { content: content as Uint8Array };
      const lines = content.split("\n");
      const page = lines.slice(offset, offset + limit);
      return { content: page.join("\n"), startLine: offset + 1, endLine: offset + page.length };
    },
    readRaw: (path) => ({ data: map.need(path) }),
    grep: (pattern, path) => ({ matches: map.grep(pattern, path ?? "/") }),
    glob: (pattern, path = "/") => ({ files: map.glob(pattern, path) }),
    write: async (path, content) => {
      await Promise.resolve();
      map.put(path, new TextEncoder().encode(content));
      return { path, filesUpdate: null };
    },
    edit: async (path, oldString, newString, replaceAll = false) => {
      await Promise.resolve();
      return map.edit(path, oldString, newString, replaceAll);
    },
    uploadFiles: (files) =>
      files.map(([path, bytes]) => {
        map.put(path, bytes);
        return { path, error: null };
      }),
  };
}

/** Version 1; `raw` tells whether it has the later added `readRaw`. */
export function foreignV1(raw: boolean): BackendV1 {
  const map = new FileMap();
  return {
    lsInfo: (path) => map.list(path),
    read: (path, offset = 0, limit = 500) => {
      if (!map.files.has(path)) return `Error: File '${path}' not found`;
      const lines = map
        .textOf(path)
        .split("\n")
        .slice(offset, offset + limit);
      return lines.map((line, index) => `${String(offset + index + 1).padStart(6)}\t${line}`).join("\n");
    },
    ...(raw ? { readRaw: (path: string) => map.need(path) } : {}),
    grepRaw: (pattern, path) =>
      pattern === "(" ? "Invalid regex pattern: (" : map.grep(pattern, path ?? "/"),
    globInfo: (pattern, path = "/") => map.glob(pattern, path),
    write: (path, content) => {
      if (map.files.has(path)) return { error: `Cannot write to ${path} because it already exists.` };
      map.put(path, new TextEncoder().encode(content));
      return { path, filesUpdate: null };
    },
    edit: (path, oldString, newString, replaceAll = false) =>
      map.edit(path, oldString, newString, replaceAll),
    uploadFiles: (files) =>
      files.map(([path, bytes]) => {
        map.put(path, bytes);
        return { path, error: null };
      }),
  };
}
