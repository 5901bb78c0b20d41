import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { BackendErrorCode } from "../../src/backends/backend.ts";
import table from "../../src/backends/errors.json" with { type: "json" };
import { errors } from "../../src/backends/errors.ts";

const SOURCES = join(import.meta.dirname, "../../src/backends");

const CODES: Record<BackendErrorCode, true> = {
  not_found: true,
  exists: true,
  is_directory: true,
  not_directory: true,
  permission_denied: true,
  invalid_path: true,
  outside_root: true,
  symlink: true,
  binary: true,
  encoding: true,
  too_large: true,
  no_match: true,
  ambiguous: true,
  conflict: true,
  invalid_pattern: true,
  out_of_range: true,
  timeout: true,
  aborted: true,
  unsupported: true,
  io: true,
  backend_error: true,
};

describe("failure texts", () => {
  it.each([
    [errors.fileNotFound("/a"), "not_found", "File '/a' not found"],
    [errors.directoryNotFound("/a"), "not_found", "Directory '/a' not found"],
    [errors.isDirectory("/a"), "is_directory", "'/a' is a directory"],
    [
      errors.alreadyExists("/a"),
      "exists",
      "Cannot write to /a because it already exists. Read it and change it with edit_file, or choose a new path.",
    ],
    [
      errors.writeToSymlink("/a"),
      "symlink",
      "Cannot write to /a because it is a symlink. Symlinks are not allowed.",
    ],
    [errors.symlinkNotAllowed("/a", "outside_root"), "outside_root", "Symlinks are not allowed: /a"],
    [errors.unknownEncoding("/a"), "encoding", "File '/a' is not text in UTF-8 or another known encoding"],
    [
      errors.notInEncoding("/a", "가", "koi8-r"),
      "encoding",
      "'가' (U+AC00) cannot be written to '/a': its encoding KOI8-R does not have this character. Use another one, or convert the file with a command first: iconv -f KOI8-R -t UTF-8.",
    ],
    [
      errors.uncertainEncoding("/a", "cp949", "its encoding is a guess"),
      "encoding",
      "File '/a' was read as CP949, but its encoding is a guess, so it cannot be edited. If it reads right, convert it with a command first: iconv -f CP949 -t UTF-8. Otherwise ask for its encoding.",
    ],
    [
      errors.uncertainEncoding("/a", "utf-8", "some of its bytes are not UTF-8"),
      "encoding",
      "File '/a' was read as UTF-8, but some of its bytes are not UTF-8, so it cannot be edited. Repair these bytes with a command, or ask which encoding they have.",
    ],
    [errors.binaryEdit("/a"), "binary", "File '/a' is binary and cannot be edited as text"],
    [
      errors.binaryTooLarge(11 * 1024 * 1024),
      "too_large",
      "file too large to read (11MB exceeds 10MB limit for binary files)",
    ],
    [
      errors.tooLargeToEdit("/a", 12.34 * 1024 * 1024, 10 * 1024 * 1024),
      "too_large",
      "File '/a' is too large to edit (12.3 MB, limit 10 MB)",
    ],
    [errors.offsetPastEnd(9, 3), "out_of_range", "Line offset 9 exceeds file length (3 lines)"],
    [errors.stringNotFound("x"), "no_match", "String not found in file: 'x'"],
    [
      errors.stringAmbiguous("x", 2),
      "ambiguous",
      "String 'x' appears 2 times in file. Use replace_all=True to replace all of them, or add surrounding text so that it is unique.",
    ],
    [errors.emptyOldString(), "no_match", "oldString cannot be empty when file has content"],
    [errors.identicalStrings(), "no_match", "old_string and new_string are identical; nothing to change."],
    [
      errors.changedSinceRead("/a"),
      "conflict",
      "File '/a' changed since it was read; read it again and retry.",
    ],
    [errors.sensitivePath(), "permission_denied", "Access to sensitive paths is forbidden"],
    [errors.storeMissing(), "unsupported", "Store is required but not available in runtime"],
    [errors.refusedToDelete("/a"), "permission_denied", "Refusing to delete '/a'"],
    [errors.deletionUnavailable("/a"), "unsupported", "deletion is not available for '/a'."],
  ])("%j", (failure, code, error) => {
    expect(failure).toEqual({ code, error });
  });

  it("have a known code and one gap, if their text is about something", () => {
    const known = Object.keys(CODES);
    for (const [code, text] of [table.fixed, table.about, table.two].flatMap((rows) => Object.values(rows)))
      expect(known, text).toContain(code);
    for (const [, text = ""] of Object.values(table.fixed)) expect(text.split("{}")).toHaveLength(1);
    for (const [, text = ""] of Object.values(table.about)) expect(text.split("{}")).toHaveLength(2);
    for (const [, text = ""] of Object.values(table.two)) expect(text.split("{}")).toHaveLength(3);
  });

  it("stand in one place: no other file of the backends makes a failure", () => {
    const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && file !== "errors.ts" && !file.startsWith("sandbox"),
    );
    const making = files.filter((file) =>
      /\bcode: "[a-z]|\berror: ["'`]/.test(readFileSync(join(SOURCES, file), "utf8")),
    );
    expect(making).toEqual([]);
  });
});
