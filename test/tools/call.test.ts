import { describe, expect, test } from "vitest";
import { cancellable } from "../../src/tools/call.ts";
import { fileTools } from "../../src/tools/index.ts";
import { toolError } from "../../src/tools/tool.ts";
import { foreignBackend, harness, stateBackend } from "./harness.ts";

describe("cancellation", () => {
  const args: Record<string, Record<string, unknown>> = {
    ls: {},
    read_file: { file_path: "/a" },
    write_file: { file_path: "/b", content: "x" },
    edit_file: { file_path: "/a", old_string: "x", new_string: "y" },
    glob: { pattern: "*" },
    grep: { pattern: "x" },
    delete: { file_path: "/a" },
    execute: { command: "ls" },
  };
  test.each(fileTools().map(({ name }) => name))("%s does nothing in a cancelled run", async (name) => {
    const backend = stateBackend({ "/a": "x" });
    expect(await harness(backend).call(name, args[name] ?? {}, { signal: AbortSignal.abort() })).toEqual({
      content: `Error: ${name} was cancelled.`,
      status: "error",
      artifact: { code: "aborted" },
    });
    expect(await harness(backend).text("grep", { pattern: "x" })).toBe("/a:\n  1: x");
  });

  test("an abort during the call, however the backend shows it", async () => {
    const reason = new Error("stopped by the user");
    for (const end of [
      () => ({ error: "The operation on '/' was cancelled", code: "aborted" as const }),
      (signal: AbortSignal) => {
        throw signal.reason;
      },
      () => {
        throw new DOMException("aborted", "AbortError");
      },
    ]) {
      const controller = new AbortController();
      const backend = foreignBackend({
        ls: () => {
          controller.abort(reason);
          return end(controller.signal);
        },
      });
      expect(await harness(backend).text("ls", {}, { signal: controller.signal })).toBe(
        "Error: ls was cancelled.",
      );
    }
  });

  test("work that finished all the same keeps its result", async () => {
    const controller = new AbortController();
    const result = await cancellable("write_file", controller.signal, async () => {
      controller.abort();
      return { content: "Successfully wrote to '/a'" };
    });
    expect(result.content).toBe("Successfully wrote to '/a'");
  });

  test("what is not an abort stays what it is", async () => {
    const { signal } = new AbortController();
    await expect(cancellable("ls", signal, () => Promise.reject(new Error("bug")))).rejects.toThrow("bug");
    expect(await cancellable("ls", signal, async () => toolError("no"))).toEqual({
      content: "Error: no",
      status: "error",
    });
  });
});

test("with real paths a relative path stays relative, for the backend to place", async () => {
  const asked: string[] = [];
  const backend = foreignBackend({
    capabilities: { paths: "real" },
    ls: (path) => {
      asked.push(path);
      return { files: [] };
    },
  });
  await harness(backend).call("ls", { path: "src//x" });
  await harness(backend).call("ls", { path: "/abs/x" });
  await harness(backend).call("ls", {});
  expect(asked).toEqual(["src/x", "/abs/x", "."]);
});
