import { expect } from "vitest";
import { call, delegate, edit, find, markOf, type OracleTask, plain, read, write } from "./oracle.ts";

const at = (task: string, file: string): string => `/workspace/${task}/${file}`;
const texts = (results: readonly { text: string }[]): string => results.map(({ text }) => text).join(" ");
const AREAS = ["north", "east", "south"];

/** Tasks about subagents, memory, threads, skills, and what providers do to replies and conversations. */
export const AGENT_TASKS: readonly OracleTask[] = [
  {
    name: "delegate",
    files: { "north.txt": "snow", "east.txt": "rain", "south.txt": "sun" },
    asked: ["Have the weather of each area looked up, and combine it."],
    *oracle() {
      const reports = yield AREAS.map((area) =>
        delegate(`${markOf("delegate")} Report the weather of ${area}.`),
      );
      return texts(reports);
    },
    *worker({ task }) {
      const area = find(task, /weather of (\w+)/);
      const [page] = yield [read(at("delegate", `${area}.txt`))];
      return `${area}: ${plain(page!)}`;
    },
    check: ({ answer, views }) => {
      expect(answer).toBe("north: snow east: rain south: sun");
      expect(views[0]?.subagents.map(({ status }) => status)).toEqual([
        "completed",
        "completed",
        "completed",
      ]);
    },
  },
  {
    name: "worker-writes",
    asked: ["Have a draft written, and check it."],
    *oracle() {
      const [report] = yield [delegate(`${markOf("worker-writes")} Write a draft and name its path.`)];
      const [page] = yield [read(find(report!.text, /path: (\S+)/))];
      return plain(page!);
    },
    *worker() {
      yield [write(at("worker-writes", "draft.md"), "a fine draft")];
      return `path: ${at("worker-writes", "draft.md")}`;
    },
    check: ({ answer, file }) => expect([answer, file("draft.md")]).toEqual(["a fine draft", "a fine draft"]),
  },
  {
    name: "unknown-worker",
    asked: ["Ask the oracle of Delphi."],
    *oracle() {
      const [tried] = yield [delegate(`${markOf("unknown-worker")} Say yes.`, "pythia")];
      const name = find(tried!.text, /allowed types are `([\w-]+)`/);
      const [report] = yield [delegate(`${markOf("unknown-worker")} Say yes.`, name)];
      return report!.text;
    },
    *worker() {
      yield [call("ls", { path: "/workspace" })];
      return "yes";
    },
    check: ({ answer }) => expect(answer).toBe("yes"),
  },
  {
    name: "shared-file",
    asked: ["Have two parts of one file of the thread done at the same time."],
    *oracle() {
      yield [write("/shared.md", "first: ?\n\n\n\nmiddle\n\n\n\nlast: ?\n")];
      yield ["first", "last"].map((part) => delegate(`${markOf("shared-file")} Fill in part ${part}.`));
      const [page] = yield [read("/shared.md")];
      return plain(page!);
    },
    *worker({ task }) {
      const part = find(task, /part (\w+)/);
      yield [read("/shared.md")];
      yield [edit("/shared.md", `${part}: ?`, `${part}: done`)];
      return "done";
    },
    check: ({ answer }) => expect(answer).toMatch(/first: done[\s\S]*middle[\s\S]*last: done/),
  },
  {
    name: "two-rounds",
    files: { "hint.txt": "look into vault.txt", "vault.txt": "gold" },
    asked: ["Have the hint read, then have followed what it says."],
    *oracle() {
      const [hint] = yield [delegate(`${markOf("two-rounds")} Read hint.txt`)];
      const [gold] = yield [delegate(`${markOf("two-rounds")} Read ${find(hint!.text, /look into (\S+)/)}`)];
      return `Found ${gold!.text}`;
    },
    *worker({ task }) {
      const [page] = yield [read(at("two-rounds", find(task, /Read (\S+)/)))];
      return plain(page!);
    },
    check: ({ answer }) => expect(answer).toBe("Found gold"),
  },
  {
    name: "remember",
    asked: ["Remember that the door code is 8512.", { anew: "What is the door code?" }],
    *oracle({ task }) {
      if (task.includes("Remember")) {
        yield [write("/memories/door.md", `door code: ${find(task, /code is (\d+)/)}\n`)];
        return "I will.";
      }
      const [found] = yield [call("grep", { pattern: "door code", path: "/memories" })];
      return find(found!.text, /door code: (\d+)/);
    },
    check: ({ answer }) => expect(answer).toBe("8512"),
  },
  {
    name: "standing-orders",
    asked: ["From now on sign with Zephyr.", { anew: "Write one line." }],
    *oracle({ task, system }) {
      if (task.includes("From now on")) {
        yield [write("/memories/AGENTS.md", `Sign all answers with ${find(task, /sign with (\w+)/)}.\n`)];
        return "Noted.";
      }
      return `A line. ${find(system, /Sign all answers with (\w+)/)}`;
    },
    check: ({ answer }) => expect(answer).toBe("A line. Zephyr"),
  },
  {
    name: "corrected-memory",
    asked: [
      "The train leaves at 9.",
      "It leaves at 10.",
      { anew: "Have somebody look up when the train leaves." },
    ],
    *oracle({ task }) {
      if (task.includes("look up")) {
        const [report] = yield [delegate(`${markOf("corrected-memory")} When does it leave?`)];
        return report!.text;
      }
      const time = find(task, /leaves at (\d+)/);
      if (time === "9") yield [write("/memories/train.md", "train: 9")];
      else yield [edit("/memories/train.md", "train: 9", `train: ${time}`)];
      return "ok";
    },
    *worker() {
      const [page] = yield [read("/memories/train.md")];
      return find(page!.text, /train: (\d+)/);
    },
    check: ({ answer }) => expect(answer).toBe("10"),
  },
  {
    name: "follow-up",
    files: { "list.txt": "apples\npears\n" },
    asked: ["Read the list.", "What was second on it? Do not look again."],
    *oracle({ task, before, request }) {
      if (!task.includes("second")) {
        yield [read(at("follow-up", "list.txt"))];
        return "Read.";
      }
      const known = request.messages.flatMap(({ toolResults }) => toolResults);
      return `${find(texts(known), /1\t\w+\n\t(\w+)/)} (${find(before, /(Read)\./)})`;
    },
    check: ({ answer }) => expect(answer).toBe("pears (Read)"),
  },
  {
    name: "skill",
    asked: ["Find out why the test fails, by the skill for it."],
    *oracle({ system }) {
      const [skill] = yield [read(find(system, /(\/skills\/\S*failure-analysis\/SKILL\.md)/))];
      const notes = find(skill!.text, /notes file \(`(\S+?)`\)/);
      yield [write(notes, "Seen: nothing.")];
      return `The notes are in ${notes}.`;
    },
    check: async ({ answer, read: readFile }) => {
      expect(answer).toBe("The notes are in /failure.md.");
      expect(await readFile("/failure.md")).toContain("Seen");
    },
  },
  {
    name: "compaction",
    files: Object.fromEntries(
      ["p", "q", "r", "s"].map((name, n) => [
        `${name}.txt`,
        `value of ${name}: ${n + 2}\n`.padEnd(4000, "-"),
      ]),
    ),
    asked: ["Multiply the four values."],
    *oracle({ request }) {
      // What the summary tells need not be read again.
      const told = request.messages.map(({ text }) => text).join("\n");
      let known = told;
      for (const name of ["p", "q", "r", "s"].filter((one) => !told.includes(`value of ${one}`))) {
        const [page] = yield [read(at("compaction", `${name}.txt`))];
        known += page!.text;
      }
      const values = new Map(
        [...known.matchAll(/value of (\w): (\d+)/g)].map(([, name, value]) => [name, Number(value)]),
      );
      return `The product is ${[...values.values()].reduce((product, value) => product * value, 1)}.`;
    },
    summary: (text) =>
      `SUMMARY of ${markOf("compaction")}: ${[...text.matchAll(/value of \w: \d+/g)].map(([fact]) => fact).join(", ")}`,
    fault: ({ request }) =>
      request.messages.flatMap(({ toolResults }) => toolResults).length >= 3 &&
      !JSON.stringify(request.messages).includes("SUMMARY")
        ? { status: 400, message: "prompt is too long: 3000 tokens > 1500 maximum" }
        : undefined,
    check: ({ answer }) => expect(answer).toBe("The product is 120."),
  },
  {
    name: "cut-and-silent",
    files: { "poem.txt": "roses are red" },
    asked: ["Read the poem and recite it."],
    *oracle({ request }) {
      const last = request.messages.at(-1)?.text ?? "";
      const [page] = yield [read(at("cut-and-silent", "poem.txt"))];
      if (last.startsWith("Your reply was cut")) return " are red.";
      if (last.includes("Your reply was empty"))
        return { text: `It goes: ${plain(page!).split(" ")[0]}`, truncated: true };
      return {};
    },
    check: ({ answer }) => expect(answer).toBe("It goes: roses are red."),
  },
];
