import { describe, expect, it } from "vitest";
import { type NamedModels, fileModel } from "../../../src/agent/models/file-model.ts";
import { withAllowedModels } from "../../../src/app/models.ts";

const named: NamedModels = {
  main: "anthropic:claude-sonnet-4-5-20250929",
  others: ["anthropic:claude-haiku-4-5", "gpt-5.4-mini", "ollama:qwen3", "groq:llama-4"],
  env: { ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" },
};

describe("the model of a subagent file", () => {
  it.each([
    ["anthropic:claude-sonnet-4-5-20250929", undefined],
    ["anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5"],
    ["openai:gpt-5.4-mini", "gpt-5.4-mini"],
    ["ollama:qwen3", "ollama:qwen3"],
  ])("is the named one: %s", (model, expected) => {
    expect(fileModel({ name: "a", model }, named)).toEqual(expected === undefined ? {} : { model: expected });
  });

  it.each([
    ["inherit", undefined],
    ["Inherit", undefined],
    ["default", undefined],
    ["sonnet", undefined],
    ["haiku", "anthropic:claude-haiku-4-5"],
    ["Haiku", "anthropic:claude-haiku-4-5"],
    ["claude-haiku-4-5", "anthropic:claude-haiku-4-5"],
    ["claude-sonnet", undefined],
    ["gpt-5.4", "gpt-5.4-mini"],
    ["qwen3", "ollama:qwen3"],
  ])("is that of the family: %s", (modelAlias, expected) => {
    expect(fileModel({ name: "a", modelAlias }, named)).toEqual(
      expected === undefined ? {} : { model: expected },
    );
  });

  it.each([
    [{ model: "openai:gpt-5.4" }],
    [{ model: "anthropic:haiku" }],
    [{ model: "Anthropic:claude-haiku-4-5" }],
    [{ model: "anthropic: claude-haiku-4-5" }],
    [{ model: "openai:claude-haiku-4-5" }],
    [{ model: "groq:llama-4" }],
    [{ modelAlias: "opus" }],
    [{ modelAlias: "aiku" }],
    [{ modelAlias: "offline" }],
    [{ modelAlias: "client" }],
    [{ modelAlias: "-" }],
    [{ modelAlias: "claude-haiku-4-5-extra" }],
  ])("is the main one with a notice, where nobody named or can use it: %j", (wish) => {
    const chosen = fileModel({ name: "a", ...wish }, named);
    expect(chosen).toEqual({
      notice: expect.stringMatching(
        /^Subagent 'a' asks in its file for the model '.*', which this server does not allow\./,
      ),
    });
  });

  it("may be the offline model or the client's, where the operator named them", () => {
    const own = { ...named, others: ["offline", "client"], lendable: true };
    expect(fileModel({ name: "a", modelAlias: "offline" }, own)).toEqual({ model: "offline" });
    expect(fileModel({ name: "a", modelAlias: "client" }, own)).toEqual({ model: "client" });
  });

  it("shows what a file asks for on one short line", () => {
    const { notice = "" } = fileModel(
      { name: "a", model: `x:\u202E![i](http://x)\n${"y".repeat(5000)}` },
      named,
    );
    expect(notice).not.toMatch(/[\n\u202E]/);
    expect(notice.length).toBeLessThan(350);
  });
});

it("configured subagents keep their models", () => {
  const { subagents, notices } = withAllowedModels(
    [
      { name: "own", model: "openai:gpt-9" },
      { name: "file", isFile: true, model: "openai:gpt-9" },
    ],
    named,
  );
  expect(subagents).toEqual([
    { name: "own", model: "openai:gpt-9" },
    { name: "file", isFile: true, model: undefined },
  ]);
  expect(notices).toHaveLength(1);
});
