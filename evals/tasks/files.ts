import {
  call,
  edit,
  type EvalTask,
  expectFile,
  expectNoFile,
  expectParts,
  expectThat,
  failed,
  find,
  plain,
  read,
  write,
} from "../task.ts";

const at = (task: string, file = ""): string => `/workspace/${task}${file === "" ? "" : `/${file}`}`;
const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const many = (count: number, line: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => line(n)).join("\n");

/** Tasks about files, commands and the person who approves. */
export const FILE_TASKS: readonly EvalTask[] = [
  {
    name: "three-facts",
    files: { "a.txt": "code north: 17\n", "in/b.txt": "x\ncode east: 4\n", "in/c.md": "code south: 230\n" },
    asked: ["Find the three codes in the files, and add them up."],
    *oracle() {
      const [found] = yield [call("grep", { pattern: "code ", path: at("three-facts") })];
      const codes = [...found!.text.matchAll(/code \w+: (\d+)/g)].map(([, code]) => Number(code));
      return `The sum is ${codes.reduce((sum, code) => sum + code, 0)}.`;
    },
    check: ({ answer }) => expectParts(answer, "251"),
  },
  {
    name: "rename",
    files: { "a.ts": "oldName();\noldName();\n", "lib/b.ts": "const x = oldName;\n", "c.ts": "other();\n" },
    asked: ["Rename oldName to newName in all files."],
    *oracle() {
      const grep = call("grep", {
        pattern: "oldName",
        path: at("rename"),
        output_mode: "files_with_matches",
      });
      const [files] = yield [grep];
      yield lines(files!.text).map((file) => edit(file, "oldName", "newName", { replace_all: true }));
      const [rest] = yield [grep];
      return rest!.text;
    },
    check: (end) => {
      expectFile(end, "a.ts", "newName();\nnewName();\n");
      expectFile(end, "lib/b.ts", "const x = newName;\n");
      expectFile(end, "c.ts", "other();\n");
    },
  },
  {
    name: "index",
    files: {
      "one.md": "# First\n",
      "two.md": "# Second\n",
      "deep/three.md": "# Third\n",
      "no.txt": "# No\n",
    },
    asked: [
      'Write index.md: one line "PATH: TITLE" for each other Markdown file, sorted by path, and nothing else.',
    ],
    *oracle() {
      const [found] = yield [call("glob", { pattern: "**/*.md", path: at("index") })];
      const files = lines(found!.text).filter((line) => line.endsWith(".md"));
      const pages = yield files.map((file) => read(file, { limit: 1 }));
      const entries = pages.map((page, n) => `${files[n]}: ${find(plain(page), /# (.+)/)}`);
      yield [write(at("index", "index.md"), entries.sort().join("\n"))];
      return "done";
    },
    check: ({ file }) => {
      const titles = lines(file("index.md") ?? "").map((line) => line.replace(/.*: /, ""));
      expectThat(titles.join() === "Third,First,Second", "the titles Third, First and Second", titles);
    },
  },
  {
    name: "pages",
    files: { "long.log": many(5000, (n) => (n === 4321 ? "the key is under the mat" : `line ${n}`)) },
    asked: ["Read long.log from its beginning until it says where the key is."],
    *oracle() {
      let [page] = yield [read(at("pages", "long.log"), { limit: 1500 })];
      while (!page!.text.includes("the key is")) {
        const offset = Number(find(page!.text, /continue with offset=(\d+)/));
        [page] = yield [read(at("pages", "long.log"), { offset, limit: 1500 })];
      }
      return find(page!.text, /\t(the key is .*)/);
    },
    check: ({ answer }) => expectParts(answer, "under the mat"),
  },
  {
    name: "failed-edit",
    files: { "conf.ini": "port  =  80\n" },
    asked: ["Set the port to 8080."],
    *oracle() {
      const file = at("failed-edit", "conf.ini");
      const [tried] = yield [edit(file, "port = 80", "port = 8080")];
      if (!failed(tried!)) return "it should have failed";
      const [page] = yield [read(file)];
      const line = lines(plain(page!)).find((text) => text.startsWith("port"));
      yield [edit(file, line ?? "", "port = 8080")];
      return "done";
    },
    check: ({ file }) => expectParts(file("conf.ini") ?? "", /^port\s*=\s*8080\s*$/),
  },
  {
    name: "ambiguous-edit",
    files: { "a.yml": "test:\n  retries: 1\nprod:\n  retries: 1\n" },
    asked: ["Set the retries of prod to 5."],
    *oracle() {
      const file = at("ambiguous-edit", "a.yml");
      const [tried] = yield [edit(file, "retries: 1", "retries: 5")];
      if (!failed(tried!)) return "it should have been refused";
      yield [edit(file, "prod:\n  retries: 1", "prod:\n  retries: 5")];
      return "done";
    },
    check: (end) => expectFile(end, "a.yml", "test:\n  retries: 1\nprod:\n  retries: 5\n"),
  },
  {
    name: "scaffold",
    asked: [
      "Write package.json, src/a.js and README.md, each with its own path as its only line. Then list the folder, and answer with what it has.",
    ],
    *oracle() {
      yield ["package.json", "src/a.js", "README.md"].map((name) => write(at("scaffold", name), `${name}\n`));
      const [listed] = yield [call("ls", { path: at("scaffold") })];
      return listed!.text;
    },
    check: (end) => {
      expectParts(end.answer, "README.md", "package.json", "src");
      for (const name of ["package.json", "src/a.js", "README.md"]) expectFile(end, name, name);
    },
  },
  {
    name: "move",
    files: { "old/name.txt": "kept\nas it is" },
    asked: ["Move old/name.txt to new/name.txt."],
    *oracle() {
      const [page] = yield [read(at("move", "old/name.txt"))];
      yield [write(at("move", "new/name.txt"), plain(page!))];
      yield [call("delete", { file_path: at("move", "old/name.txt") })];
      return "moved";
    },
    check: (end) => {
      expectFile(end, "new/name.txt", "kept\nas it is");
      expectNoFile(end, "old/name.txt");
    },
  },
  {
    name: "csv",
    files: { "sales.csv": `item,price\n${many(40, (n) => `i${n},${n}`)}\n` },
    asked: ["Write the sum of the prices in sales.csv, the number alone, to total.txt."],
    *oracle() {
      const [page] = yield [read(at("csv", "sales.csv"))];
      const sum = lines(plain(page!))
        .slice(1)
        .reduce((total, row) => total + Number(row.split(",")[1] ?? 0), 0);
      yield [write(at("csv", "total.txt"), String(sum))];
      return "done";
    },
    check: (end) => expectFile(end, "total.txt", "780"),
  },
  {
    name: "trail",
    files: { start: "next: b7", b7: "next: q2", q2: "next: end", end: "the treasure is tea" },
    asked: ["Follow the trail that begins in the file start, and answer with what the last file says."],
    *oracle() {
      let [page] = yield [read(at("trail", "start"))];
      while (page!.text.includes("next: "))
        [page] = yield [read(at("trail", find(page!.text, /next: (\w+)/)))];
      return plain(page!);
    },
    check: ({ answer }) => expectParts(answer, "treasure is tea"),
  },
  {
    name: "missing-file",
    files: { "docs/settings.md": "colour: green" },
    asked: ["Which colour does settings.md name?"],
    *oracle() {
      const [tried] = yield [read(at("missing-file", "settings.md"))];
      if (!failed(tried!)) return "it should have failed";
      const [found] = yield [call("glob", { pattern: "**/settings.md", path: at("missing-file") })];
      const [page] = yield [read(lines(found!.text)[0] ?? "")];
      return find(page!.text, /colour: (\w+)/);
    },
    check: ({ answer }) => expectParts(answer, "green"),
  },
  {
    name: "scratch",
    files: { "in.txt": "blue 3\nred 5\n" },
    asked: [
      "Copy in.txt to /scratch/notes.md, with = in the place of each space. Correct red to 6 there, read it again, and answer with its lines, joined by a comma.",
    ],
    *oracle() {
      const [page] = yield [read(at("scratch", "in.txt"))];
      yield [write("/scratch/notes.md", plain(page!).replaceAll(" ", "="))];
      yield [edit("/scratch/notes.md", "red=5", "red=6")];
      const [notes] = yield [read("/scratch/notes.md")];
      return lines(plain(notes!)).join(",");
    },
    check: async (end) => {
      expectParts(end.answer, "blue=3,red=6");
      expectNoFile(end, "notes.md");
      expectParts((await end.read("/scratch/notes.md")) ?? "", "red=6");
    },
  },
  {
    name: "todos",
    asked: [
      "Plan three steps in your list of todos: write one to /todos/0.txt, two to /todos/1.txt, and three to /todos/2.txt. Do one after the other, and keep the list up to date.",
    ],
    *oracle() {
      const steps = ["one", "two", "three"];
      const planned = (done: number) =>
        call("write_todos", {
          todos: steps.map((content, n) => ({
            content,
            status: n < done ? "completed" : n === done ? "in_progress" : "pending",
          })),
        });
      for (const n of steps.keys()) yield [planned(n), write(`/todos/${n}.txt`, steps[n] ?? "")];
      yield [planned(steps.length)];
      return "all done";
    },
    check: async ({ views, read: readFile }) => {
      const todos = views.at(-1)?.run.todos.map(({ status }) => status) ?? [];
      const isDone = todos.length >= 3 && todos.every((status) => status === "completed");
      expectThat(isDone, "three completed todos", todos);
      expectParts((await readFile("/todos/2.txt")) ?? "", "three");
    },
  },
  {
    name: "large-result",
    files: {
      "big.txt": many(6000, (n) => `entry ${n} ${"x".repeat(60)} ${n === 5990 ? "needle-42" : "hay"}`),
    },
    asked: [
      "Search big.txt for all lines with entry. One of them has a needle with a number, such as needle-1: answer with it.",
    ],
    *oracle() {
      const [all] = yield [call("grep", { pattern: "entry", path: at("large-result"), max_count: 6000 })];
      const path = find(all!.text, /is saved in (\S+)\. It begins/);
      const [found] = yield [call("grep", { pattern: "needle-\\d+", path, regex: true })];
      return find(found!.text, /(needle-\d+)/);
    },
    check: ({ answer }) => expectParts(answer, "needle-42"),
  },
  {
    name: "rejected",
    asked: ["Write a plan of one line to plan.md."],
    *oracle() {
      const [tried] = yield [write(at("rejected", "plan.md"), "plan")];
      yield [write(find(tried!.text, /write it to (\S+\.md)/), "plan")];
      return /reject/i.test(tried!.text) ? "put elsewhere" : "written";
    },
    person: async () => ({ type: "reject", message: "No, write it to /drafts/plan.md instead." }),
    check: async (end) => {
      expectNoFile(end, "plan.md");
      const plan = await end.read("/drafts/plan.md");
      expectThat(Boolean(plan), "a plan in /drafts/plan.md", plan);
    },
  },
  {
    name: "edited",
    asked: [
      "Write Hi to greeting.txt. Then read it, and answer with what it says; a person may have changed it, which is right.",
    ],
    *oracle({ request }) {
      // The history has an edited call as it ran.
      const shown = request.messages.flatMap(({ toolCalls }) => toolCalls);
      const written = shown.find(({ name }) => name === "write_file")?.args["content"];
      yield [write(at("edited", "greeting.txt"), typeof written === "string" ? written : "Hi")];
      const [page] = yield [read(at("edited", "greeting.txt"))];
      return plain(page!);
    },
    person: async ({ tool, args }) =>
      tool === "write_file"
        ? { type: "edit", editedAction: { name: tool, args: { ...args, content: "Good morning" } } }
        : { type: "approve" },
    check: (end) => {
      expectParts(end.answer, "Good morning");
      expectFile(end, "greeting.txt", "Good morning");
    },
  },
  {
    name: "told",
    asked: [
      "Write a report of one word to report.txt. If you are told a language for it, write the name of the language to report.LANGUAGE.txt, too.",
    ],
    *oracle({ told }) {
      yield [write(at("told", "report.txt"), "report")];
      const language = find(told, /in (\w+), please/);
      yield [write(at("told", `report.${language}.txt`), language)];
      return `Written in ${language}.`;
    },
    person: async ({ args }, tell) => {
      if (String(args["file_path"]).endsWith("report.txt")) await tell("Make it in Esperanto, please.");
      return { type: "approve" };
    },
    check: (end) => expectFile(end, "report.Esperanto.txt", "Esperanto"),
  },
  {
    name: "commands",
    files: { "data.txt": "3\n1\n2\n" },
    asked: [
      "Sort nothing.txt with a command. If that fails, sort data.txt with one, and answer with its lines, joined by commas.",
    ],
    *oracle() {
      const cwd = at("commands");
      const [failed] = yield [call("execute", { command: "sort nothing.txt", cwd })];
      if (!/exit code [12]/.test(failed!.text)) return `it should have failed: ${failed!.text}`;
      const [sorted] = yield [call("execute", { command: "sort data.txt", cwd })];
      return lines(sorted!.text).slice(0, 3).join(",");
    },
    check: ({ answer }) => expectParts(answer, /1, ?2, ?3/),
  },
];
