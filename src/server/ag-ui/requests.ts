/** Asks the person at an AG-UI program, in a form that its version and its tools know, and reads the answers. */
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import type { Interrupt, RunAgentInput } from "@ag-ui/core";
import { isoTime } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { defined, isRecord, parsedJson, recordOf } from "../../core/unknown.ts";
import { type Principal, type RunRequest, contentOf, isQuestion } from "../../runs/run.ts";
import { requestForm } from "../views/request-form.ts";
import type { SentEvent } from "./events.ts";

export class ProgramRequests {
  /** A front end that declares a tool of this name is asked by calls of it, and its results are the answers. */
  static readonly #tool = "answer_request";
  static readonly #id = /^(.{1,300})\.([\w-]{8})\.([\w-]{22})$/;
  /** Answers to interrupts, by their ids; undefined if the program sends a message. */
  readonly answers?: ReadonlyArray<{ id: string; payload: unknown }>;
  /** `legacy`: an event that programs read as an interrupt before the protocol had one. */
  readonly #forms: { tool: boolean; legacy: boolean; interrupts: boolean };
  readonly #sign: (waiting: RunRequest, nonce: string) => string;

  /** `body`: the request as it came, with the tools and messages that `input` leaves out. */
  constructor(input: RunAgentInput, body: unknown, principal: Principal, key: Uint8Array) {
    const { tools, messages } = recordOf(body);
    const tool = [tools ?? []].flat().some((one) => recordOf(one)["name"] === ProgramRequests.#tool);
    const legacy = !tool && !(Number.parseInt(input.protocolVersion ?? "", 10) >= 1);
    // Some clients that know interrupts want them answered in no other way.
    const isOff = legacy && recordOf(input.forwardedProps)["interrupts"] === false;
    this.#forms = { tool, legacy, interrupts: !tool && !isOff };
    this.#sign = (waiting, nonce) => {
      const shown = isQuestion(waiting) ? contentOf(waiting) : [waiting.tool, waiting.args];
      const facts = JSON.stringify([principal, waiting.runId, waiting.id, shown, nonce]);
      return createHmac("sha256", key).update(`ag-ui ${facts}`).digest("base64url").slice(0, 22);
    };
    const { resume = [], forwardedProps } = input;
    const { resume: command, interruptEvent } = recordOf(recordOf(forwardedProps)["command"]);
    const all = [messages ?? []].flat().map(recordOf);
    const results = all
      .slice(all.findLastIndex(({ role }) => role !== "tool") + 1)
      .map(({ toolCallId, content }) => ({ id: String(toolCallId), payload: unquoted(content) }))
      .filter(({ id }) => ProgramRequests.#id.test(id));
    if (resume.length > 0)
      this.answers = resume.flatMap(({ interruptId: id, status, payload }) =>
        status === "cancelled" ? [] : [{ id, payload: payload as unknown }],
      );
    // LangGraph's command for an interrupted graph.
    else if ((command ?? undefined) !== undefined) {
      const payload = unquoted(command);
      const id = recordOf(payload)["interruptId"] ?? recordOf(unquoted(interruptEvent))["id"];
      const problem = "Send the id of the request as interruptId, or its whole value as interruptEvent.";
      if (typeof id !== "string") throw new DeepAgentError("invalid_answer", problem);
      this.answers = [{ id, payload }];
    } else if (results.length > 0) this.answers = results;
  }

  /** Asks for answers. The last event is that of the run, with `finished`. */
  ask(
    waiting: readonly RunRequest[],
    openCommand: string | undefined,
    finished: Extract<SentEvent, { type: "RUN_FINISHED" }>,
  ): SentEvent[] {
    const interrupts = waiting.map((one) => this.#toInterrupt(one, openCommand));
    const { tool, legacy } = this.#forms;
    const outcome = this.#forms.interrupts ? { outcome: { type: "interrupt" as const, interrupts } } : {};
    const calls = interrupts.flatMap((interrupt): SentEvent[] => [
      { type: "TOOL_CALL_START", toolCallId: interrupt.id, toolCallName: ProgramRequests.#tool },
      { type: "TOOL_CALL_ARGS", toolCallId: interrupt.id, delta: JSON.stringify(interrupt) },
      { type: "TOOL_CALL_END", toolCallId: interrupt.id },
    ]);
    const where = openCommand === undefined ? "" : `, or run \`${openCommand}\` in a terminal`;
    const messageId = randomUUID();
    const delta = [
      ...interrupts.map(({ message = "" }) => message.split("\n", 2).join("\n")),
      `The run waits for you. If this program shows no form, open the page of the server${where}.`,
    ].join("\n\n");
    const events: SentEvent[] = [
      { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
      { type: "TEXT_MESSAGE_END", messageId },
      ...interrupts.map((one) => {
        return { type: "CUSTOM" as const, name: "on_interrupt", value: JSON.stringify(one) };
      }),
    ];
    return [...(tool ? calls : legacy ? events : []), { ...finished, ...outcome }];
  }

  /** Converts a request to an interrupt, with the form of every other surface: the answer is for the message shown. */
  #toInterrupt(waiting: RunRequest, openCommand?: string): Interrupt {
    const elsewhere = openCommand && `open the page of the server, or run ${openCommand} in a terminal`;
    const place = { runId: waiting.runId, position: 1, total: 1, ...defined({ elsewhere }) };
    const form = requestForm(waiting, place, { urls: false, lists: true });
    const nonce = randomBytes(6).toString("base64url");
    return {
      id: `${waiting.id}.${nonce}.${this.#sign(waiting, nonce)}`,
      reason: isQuestion(waiting) ? "question" : "approval",
      message: form.message,
      ...(form.mode === "url" ? {} : { responseSchema: form.requestedSchema }),
      ...(waiting.expiresAt === undefined ? {} : { expiresAt: isoTime(waiting.expiresAt) }),
      ...(isQuestion(waiting) ? {} : { metadata: { tool: waiting.tool } }),
    };
  }

  /**
   * Reads the newest answer to a request as the content of its form: its members, one value, or whether a call is
   * `approved`. Returns undefined without an answer whose id proves that this request was shown.
   */
  contentFor(waiting: RunRequest): { content: unknown } | undefined {
    const found = this.answers?.findLast(({ id }) => {
      const [, request, nonce = "", signed] = ProgramRequests.#id.exec(id) ?? [];
      return request === waiting.id && signed === this.#sign(waiting, nonce);
    });
    if (found === undefined) return undefined;
    const { approved = found.payload, ...members } = recordOf(found.payload);
    const said = String(approved);
    if (!isQuestion(waiting) && (said === "true" || said === "false"))
      return { content: { decision: said === "true" ? "approve" : "reject", ...members } };
    if (isRecord(found.payload)) return { content: found.payload };
    const { properties } = recordOf(this.#toInterrupt(waiting).responseSchema);
    return { content: { [Object.keys(recordOf(properties))[0] ?? ""]: found.payload } };
  }
}

/** Returns the object or the text in JSON, which some programs quote twice; other values unchanged. */
function unquoted(value: unknown): unknown {
  const parsed = typeof value === "string" ? parsedJson(value) : undefined;
  return isRecord(parsed) || typeof parsed === "string" ? unquoted(parsed) : value;
}
