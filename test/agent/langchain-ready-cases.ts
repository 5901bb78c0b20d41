import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import {
  type AgentMiddleware,
  anthropicPromptCachingMiddleware,
  bedrockPromptCachingMiddleware,
  ClearToolUsesEdit,
  contextEditingMiddleware,
  dynamicSystemPromptMiddleware,
  humanInTheLoopMiddleware,
  llmToolSelectorMiddleware,
  modelCallLimitMiddleware,
  modelFallbackMiddleware,
  modelRetryMiddleware,
  piiMiddleware,
  piiRedactionMiddleware,
  summarizationMiddleware,
  toolCallLimitMiddleware,
  toolEmulatorMiddleware,
  toolErrorMiddleware,
  toolRetryMiddleware,
} from "langchain";
import { z } from "zod";
import { type ScriptedModel, scriptedModel, type ScriptedReplyFunction } from "../support/scripted-model.ts";

/** Tools that both agents have; ours has its own besides. */
export const ownTools = () => {
  let failures = 2;
  return [
    tool(({ text }: { text: string }) => `noted ${text}`, {
      name: "note",
      description: "Notes a text.",
      schema: z.object({ text: z.string() }),
    }),
    tool(
      () => {
        if (failures-- > 0) throw new Error("not yet");
        return "worked";
      },
      { name: "flaky", description: "Fails twice.", schema: z.object({}) },
    ),
    tool(() => "write to jane@example.com", {
      name: "lookup",
      description: "Finds an address.",
      schema: z.object({}),
    }),
  ];
};
export const OWN = new Set(["note", "flaky", "lookup", "extract"]);

export interface Case {
  middleware: (model: ScriptedModel) => AgentMiddleware[];
  reply: ScriptedReplyFunction;
  /** What the person says, turn by turn, in one thread. */
  says?: string[];
  /** Answers to interrupts, in order. */
  answers?: unknown[];
}

const note = (id: string, text = id) => ({ id, name: "note", args: { text } });
const calling =
  (times: number, name = "note"): ScriptedReplyFunction =>
  ({ call }) =>
    call < times
      ? { toolCalls: [{ id: `c${call}`, name, args: name === "note" ? { text: `${call}` } : {} }] }
      : { text: "end" };
const broken: ScriptedReplyFunction = () => {
  throw Object.assign(new Error("503 overloaded"), { status: 503 });
};

const spare = (): ScriptedModel => scriptedModel(() => ({ text: "from the spare" }));

export const CASES: Record<string, Case> = {
  fallback: { middleware: () => [modelFallbackMiddleware(spare())], reply: broken },
  "model retry, in vain": {
    middleware: () => [modelRetryMiddleware({ maxRetries: 1, initialDelayMs: 1, jitter: false })],
    reply: broken,
  },
  "model retry": {
    middleware: () => [modelRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false })],
    reply: (request) => (request.call < 2 ? broken(request) : { text: "at last" }),
  },
  "model calls per run": {
    middleware: () => [modelCallLimitMiddleware({ runLimit: 2 })],
    reply: calling(5),
  },
  "model calls per thread": {
    middleware: () => [modelCallLimitMiddleware({ threadLimit: 3 })],
    reply: calling(9),
    says: ["go", "again"],
  },
  "model calls, as an error": {
    middleware: () => [modelCallLimitMiddleware({ runLimit: 1, exitBehavior: "error" })],
    reply: calling(5),
  },
  "tool calls per run": {
    middleware: () => [toolCallLimitMiddleware({ runLimit: 3, toolName: "note" })],
    reply: ({ call }) =>
      call < 2
        ? { toolCalls: [note(`${call}a`), note(`${call}b`), { name: "lookup", args: {} }] }
        : { text: "end" },
    says: ["go", "again"],
  },
  "tool calls per thread, ending": {
    middleware: () => [toolCallLimitMiddleware({ threadLimit: 1, exitBehavior: "end" })],
    reply: calling(4),
    says: ["go", "again"],
  },
  "tool calls, as an error": {
    middleware: () => [toolCallLimitMiddleware({ toolName: "note", runLimit: 1, exitBehavior: "error" })],
    reply: calling(4),
  },
  "tool retry": {
    middleware: () => [toolRetryMiddleware({ maxRetries: 3, initialDelayMs: 1, jitter: false })],
    reply: calling(1, "flaky"),
  },
  "tool retry, in vain": {
    middleware: () => [toolRetryMiddleware({ maxRetries: 1, initialDelayMs: 1, jitter: false })],
    reply: calling(1, "flaky"),
  },
  "tool error": {
    middleware: () => [toolErrorMiddleware({ onError: (error) => `sorry: ${String(error)}` })],
    reply: calling(1, "flaky"),
  },
  "tool emulator": {
    middleware: () => [toolEmulatorMiddleware({ model: scriptedModel(() => ({ text: "emulated" })) })],
    reply: calling(2),
  },
  "context editing": {
    middleware: () => [
      contextEditingMiddleware({
        edits: [new ClearToolUsesEdit({ trigger: { tokens: 1 }, keep: { messages: 1 } })],
      }),
    ],
    reply: calling(3),
  },
  "pii redacted": {
    middleware: () => [
      piiMiddleware("email", {
        strategy: "redact",
        applyToInput: true,
        applyToOutput: true,
        applyToToolResults: true,
      }),
    ],
    reply: ({ call }) =>
      call === 0
        ? { toolCalls: [{ id: "a", name: "lookup", args: {} }] }
        : { text: "I wrote to bob@example.com" },
    says: ["write to jane@example.com"],
  },
  "pii masked": {
    middleware: () => [piiMiddleware("email", { strategy: "mask", applyToInput: true })],
    reply: calling(1),
    says: ["write to jane@example.com"],
  },
  "pii hashed": {
    middleware: () => [piiMiddleware("ip", { strategy: "hash", applyToInput: true })],
    reply: calling(1),
    says: ["ping 10.1.2.3"],
  },
  "pii blocked": {
    middleware: () => [piiMiddleware("email", { strategy: "block", applyToInput: true })],
    reply: calling(1),
    says: ["write to jane@example.com"],
  },
  "pii put back": {
    middleware: () => [piiRedactionMiddleware({ rules: { email: /\S+@\S+/g } })],
    reply: ({ messages }) => ({ text: `I wrote to ${/\[\S+\]/.exec(messages.at(-1)?.text ?? "")?.[0]}` }),
    says: ["write to jane@example.com"],
  },
  summarization: {
    middleware: () => [
      summarizationMiddleware({
        model: scriptedModel(() => ({ text: "SUMMARY" })),
        trigger: { messages: 5 },
        keep: { messages: 2 },
      }),
    ],
    reply: calling(5),
  },
  "tools chosen by a model": {
    middleware: () => [
      llmToolSelectorMiddleware({
        model: Object.assign(
          scriptedModel(() => ({})),
          {
            withStructuredOutput: () => RunnableLambda.from(() => ({ tools: ["lookup"] })),
          },
        ),
        maxTools: 1,
        alwaysInclude: ["note"],
      }),
    ],
    reply: calling(1),
  },
  "a prompt made for each call": {
    middleware: () => [dynamicSystemPromptMiddleware(({ messages }) => ` seen ${messages.length}`)],
    reply: calling(1),
  },
  "prompt caching elsewhere": {
    middleware: () => [
      anthropicPromptCachingMiddleware({ unsupportedModelBehavior: "ignore" }),
      bedrockPromptCachingMiddleware({ unsupportedModelBehavior: "ignore" }),
    ],
    reply: calling(1),
  },
  "approvals: all": {
    middleware: () => [humanInTheLoopMiddleware({ interruptOn: { note: true } })],
    reply: ({ call }) => (call === 0 ? { toolCalls: [note("a"), note("b")] } : { text: "end" }),
    answers: [
      {
        decisions: [
          { type: "approve" },
          { type: "edit", editedAction: { name: "note", args: { text: "B" } } },
        ],
      },
    ],
  },
  "approvals: one rejected": {
    middleware: () => [humanInTheLoopMiddleware({ interruptOn: { note: true } })],
    reply: ({ call }) => (call === 0 ? { toolCalls: [note("a")] } : { text: "end" }),
    answers: [{ decisions: [{ type: "reject", message: "no" }] }],
  },
};
