import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { approvalGates, touches } from "../../../src/app/run-gates.ts";

describe("touches the workspace", () => {
  const inside = ["/workspace/a.md", "/workspace", "/workspace/", "workspace/a", "/memories/../workspace/a"];
  const written = ["//workspace//a", "/./workspace/a", "\\workspace\\a", "/", "", "~/a"];
  it.each([...inside, ...written, 42, null])("asks for %j", (path) => {
    expect(touches(["/workspace"], { file_path: path })).toBe(true);
    expect(touches(["/workspace"], { path })).toBe(true);
    expect(touches(["/workspace"], { file_path: "/notes.md", path })).toBe(true);
  });

  it.each(["/memories/a.md", "/notes.md", "/workspaces/a", "/a/workspace/b"])(
    "does not ask for %j",
    (path) => {
      expect(touches(["/workspace"], { file_path: path })).toBe(false);
      expect(touches(["/workspace"], { path })).toBe(false);
    },
  );

  it("asks when the arguments name no path", () => {
    expect(touches(["/workspace"], {})).toBe(true);
    expect(touches(["/workspace"], { file: "/memories/a" })).toBe(true);
  });

  it("asks for everything below the workspace, however it is written", () => {
    const separator = fc.constantFrom("/", "//", "/./", "\\");
    const name = fc.stringMatching(/^[a-zA-Z0-9_ .-]{1,12}$/).filter((text) => !/^\.+$/.test(text));
    fc.assert(
      fc.property(fc.array(fc.tuple(separator, name)), separator, (parts, first) => {
        const path = `${first}workspace${parts.flat().join("")}`;
        expect(touches(["/workspace"], { file_path: path })).toBe(true);
      }),
    );
  });
});

describe("approvalGates", () => {
  const writes = ["workspace", "all", "none"] as const;

  it("asks for every command unless the configuration lets sandboxed ones run", () => {
    for (const write of writes) {
      expect(approvalGates({ write, execute: "all" }, true)["execute"]).toBe(true);
      expect(approvalGates({ write, execute: "all" }, false)["execute"]).toBe(true);
      expect(approvalGates({ write, execute: "unsandboxed" }, true)["execute"]).toBe(false);
    }
  });

  it("asks for every command that has no sandbox, whatever is configured", () => {
    for (const write of writes) {
      expect(approvalGates({ write, execute: "unsandboxed" }, false)["execute"]).toBe(true);
    }
  });

  it("asks for changes on other servers like for those of the workspace", () => {
    for (const folder of ["/archive", "/archive/"]) {
      expect(touches(["/workspace", folder], { file_path: "/archive/a.md" })).toBe(true);
      expect(touches(["/workspace", folder], { path: "/" })).toBe(true);
      expect(touches(["/workspace", folder], { file_path: "/archives/a.md" })).toBe(false);
    }
  });

  it("asks for changes in the workspace and in folders on other servers, and for nothing else", () => {
    const gates = approvalGates({ write: "workspace", execute: "all" }, true, { served: ["/archive"] });
    expect(Object.keys(gates).toSorted()).toEqual(["delete", "edit_file", "execute", "write_file"]);
    for (const tool of ["write_file", "edit_file", "delete"]) {
      const asks = (path: string): boolean => Object(gates[tool]).when({ args: { file_path: path } });
      for (const path of ["/workspace/a.md", "/", "/archive/a.md"]) expect(asks(path)).toBe(true);
      for (const path of ["/notes.md", "/memories/a.md", "/archives/a"]) expect(asks(path)).toBe(false);
    }
  });

  it("asks for every change, or for none, when that is configured", () => {
    const gates = (write: (typeof writes)[number]) => approvalGates({ write, execute: "all" }, true);
    for (const tool of ["write_file", "edit_file", "delete"]) {
      expect(gates("all")[tool]).toBe(true);
      expect(gates("none")[tool]).toBe(false);
      expect(gates("workspace")[tool]).toHaveProperty("when");
    }
  });
});
