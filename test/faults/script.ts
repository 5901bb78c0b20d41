import type { WireReply, WireRequest } from "../support/wire-server.ts";
import type { WireMessage } from "../support/wire-server-protocol.ts";

/** What a call of a story came to. `unknown`: its server stopped while it was at work. */
type Outcome = "done" | "rejected" | "unknown";

/** What an agent says at the end. */
export interface Ending {
  story: string;
  /** By the line that a call appends. */
  lines: Record<string, Outcome>;
  /** Words of the messages that came while it worked. */
  told: string[];
  /** What tools answered that no tool should. */
  odd: string[];
}

/** What an agent is told to do. Several such texts may come to it without anything between them. */
export const taskOf = (kind: "story" | "part" | "also", name: string): string => `${kind} ${name};`;

const append = (line: string) => ({ name: "lines__append", args: { line } });
const ask = (line: string) => ({ name: "asking__append", args: { line } });
const delegate = (story: string) => ({
  name: "task",
  args: { description: taskOf("part", story), subagent_type: "general-purpose" },
});

type Call = ReturnType<typeof append> | ReturnType<typeof delegate>;

/** What an agent does, reply by reply. */
function stepsOf(kind: string, story: string): Call[][] {
  if (kind === "part") return [[append(`${story} part`)]];
  if (kind !== "story") return [];
  const number = Number(/\d+$/.exec(story)?.[0]);
  return [
    [append(`${story} first`)],
    number % 3 === 0 ? [delegate(story)] : [append(`${story} left`), append(`${story} right`)],
    [ask(`${story} asked`)],
    [append(`${story} last`)],
  ];
}

/** The model: the next reply follows from the conversation alone. */
export function reply({ messages }: Pick<WireRequest, "messages">): WireReply {
  const said = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => [...text.matchAll(/\b(story|part|also) ([\w-]+);/g)]);
  const [, kind = "", story = ""] = said[0] ?? [];
  const replies = messages.filter(({ role, toolCalls }) => role === "assistant" && toolCalls.length > 0);
  const next = stepsOf(kind, story)[replies.length];
  if (next !== undefined) return { toolCalls: next };
  const told = said.flatMap(([, what, name = ""]) => (what === "also" ? [name] : []));
  return { text: JSON.stringify({ story, told, ...outcomes(messages) } satisfies Ending) };
}

function outcomes(messages: readonly WireMessage[]): Pick<Ending, "lines" | "odd"> {
  const answers = new Map(
    messages.flatMap(({ toolResults }) => toolResults.map(({ id, text }) => [id, text])),
  );
  const lines: Record<string, Outcome> = {};
  const odd: string[] = [];
  for (const { id, name, args } of messages.flatMap(({ toolCalls }) => toolCalls)) {
    const answer = answers.get(id) ?? "";
    const outcome = outcomeOf(answer);
    // What a subagent reports has the same form as what an agent says at its end.
    const report = name === "task" ? endingIn(answer)?.lines : undefined;
    if (report !== undefined) Object.assign(lines, report);
    else if (outcome === undefined || name === "task") odd.push(answer);
    else lines[String(args["line"])] = outcome;
  }
  return { lines, odd };
}

function outcomeOf(answer: string): Outcome | undefined {
  if (answer === "appended") return "done";
  if (answer.includes("User rejected")) return "rejected";
  if (answer.includes("The server stopped while")) return "unknown";
  return undefined;
}

/** What an agent said at its end; `undefined`: this is something else. */
export function endingIn(answer: string): Ending | undefined {
  try {
    return JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1)) as Ending; // made by `reply`
  } catch {
    return undefined;
  }
}
