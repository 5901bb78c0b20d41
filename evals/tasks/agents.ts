import {
  call,
  delegate,
  edit,
  type EvalTask,
  expectParts,
  expectThat,
  find,
  markOf,
  plain,
  read,
  write,
} from "../task.ts";

const at = (task: string, file: string): string => `/workspace/${task}/${file}`;
const texts = (results: readonly { text: string }[]): string => results.map(({ text }) => text).join(" ");
const AREAS = ["north", "east", "south"];

/** Tasks about subagents, memory, threads, skills, and what providers do to replies and conversations. */
export const AGENT_TASKS: readonly EvalTask[] = [
  {
    name: "delegate",
    files: { "north.txt": "snow", "east.txt": "rain", "south.txt": "sun" },
    asked: [
      "Have the weather of each area, which is in north.txt, east.txt and south.txt, looked up by a subagent of its own, all at the same time. Answer with AREA: WEATHER for each.",
    ],
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
      expectParts(answer, /north\W+snow/i, /east\W+rain/i, /south\W+sun/i);
      const statuses = views[0]?.subagents.map(({ status }) => status) ?? [];
      const isDone = statuses.length === AREAS.length && statuses.every((status) => status === "completed");
      expectThat(isDone, "three completed subagents", statuses);
    },
  },
  {
    name: "worker-writes",
    asked: [
      "Have a subagent write a draft of one line to draft.md, and name its path. Then read it, and answer with its line.",
    ],
    *oracle() {
      const [report] = yield [delegate(`${markOf("worker-writes")} Write a draft and name its path.`)];
      const [page] = yield [read(find(report!.text, /path: (\S+)/))];
      return plain(page!);
    },
    *worker() {
      yield [write(at("worker-writes", "draft.md"), "a fine draft")];
      return `path: ${at("worker-writes", "draft.md")}`;
    },
    check: ({ answer, file }) => {
      const draft = file("draft.md")?.trim();
      expectThat(Boolean(draft), "a draft in draft.md", draft);
      expectParts(answer, draft!);
    },
  },
  {
    name: "unknown-worker",
    asked: [
      "Have a subagent of the type pythia answer yes. If that type does not exist, take another. Answer with its answer.",
    ],
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
    check: ({ answer }) => expectParts(answer, /\byes\b/i),
  },
  {
    name: "shared-file",
    asked: [
      'Write /shared.md with the lines "first: ?", "middle" and "last: ?", and three empty lines between them. Have two subagents work at the same time: one makes it "first: done", the other "last: done". Then read it, and answer with all of it.',
    ],
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
    check: ({ answer }) => expectParts(answer, /first: done[\s\S]*middle[\s\S]*last: done/),
  },
  {
    name: "two-rounds",
    files: { "hint.txt": "look into vault.txt", "vault.txt": "gold" },
    asked: ["Have a subagent read hint.txt, then another follow what it says. Answer with what was found."],
    *oracle() {
      const [hint] = yield [delegate(`${markOf("two-rounds")} Read hint.txt`)];
      const [gold] = yield [delegate(`${markOf("two-rounds")} Read ${find(hint!.text, /look into (\S+)/)}`)];
      return `Found ${gold!.text}`;
    },
    *worker({ task }) {
      const [page] = yield [read(at("two-rounds", find(task, /Read (\S+)/)))];
      return plain(page!);
    },
    check: ({ answer }) => expectParts(answer, "gold"),
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
    check: ({ answer }) => expectParts(answer, "8512"),
  },
  {
    name: "standing-orders",
    asked: [
      "From now on sign all answers with Zephyr, also in later conversations.",
      { anew: "Answer with one line about the sea." },
    ],
    *oracle({ task, system }) {
      if (task.includes("From now on")) {
        yield [write("/memories/AGENTS.md", `Sign all answers with ${find(task, /answers with (\w+)/)}.\n`)];
        return "Noted.";
      }
      return `A line. ${find(system, /Sign all answers with (\w+)/)}`;
    },
    check: ({ answer }) => expectParts(answer, "Zephyr"),
  },
  {
    name: "corrected-memory",
    asked: [
      "Remember that the train leaves at 9.",
      "It leaves at 10; remember that instead.",
      {
        anew: "Have a subagent look up when the train leaves; it is in your memories. Answer with the time.",
      },
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
    check: ({ answer }) => expectParts(answer, /\b10\b/),
  },
  {
    name: "follow-up",
    files: { "list.txt": "apples\npears\n" },
    asked: ["Read list.txt.", "What was second on it? Do not look again."],
    *oracle({ task, before, request }) {
      if (!task.includes("second")) {
        yield [read(at("follow-up", "list.txt"))];
        return "Read.";
      }
      const known = request.messages.flatMap(({ toolResults }) => toolResults);
      return `${find(texts(known), /1\t\w+\n\t(\w+)/)} (${find(before, /(Read)\./)})`;
    },
    check: ({ answer }) => expectParts(answer, "pears"),
  },
  {
    name: "skill",
    files: {
      "sum.js": "export const sum = (a, b) => a + b + 1;\n",
      "test.log": "FAIL sum.test.js: sum(1, 2): expected 3, received 4\n",
    },
    asked: [
      "Find out why the test in test.log fails, by the skill for failures, and keep its notes file. Change nothing else.",
    ],
    *oracle({ system }) {
      const [skill] = yield [read(find(system, /(\/skills\/\S*failure-analysis\/SKILL\.md)/))];
      const notes = find(skill!.text, /notes file \(`(\S+?)`\)/);
      yield [write(notes, "Seen: sum adds one too many.")];
      return `The notes are in ${notes}.`;
    },
    check: async ({ read: readFile }) => {
      const notes = await readFile("/failure.md");
      expectThat(Boolean(notes), "notes in /failure.md", notes);
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
    asked: ["Multiply the values in p.txt, q.txt, r.txt and s.txt."],
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
    check: ({ answer }) => expectParts(answer, "120"),
  },
  {
    name: "cut-and-silent",
    files: { "poem.txt": "roses are red" },
    asked: ["Read poem.txt, and recite it."],
    *oracle({ request }) {
      const last = request.messages.at(-1)?.text ?? "";
      const [page] = yield [read(at("cut-and-silent", "poem.txt"))];
      if (last.startsWith("Your reply was cut")) return " are red.";
      if (last.includes("Your reply was empty"))
        return { text: `It goes: ${plain(page!).split(" ")[0]}`, truncated: true };
      return {};
    },
    check: ({ answer }) => expectParts(answer, "roses are red"),
  },
];
