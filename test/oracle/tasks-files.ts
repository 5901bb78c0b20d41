import { expect } from "vitest";
import { call, edit, failed, find, type OracleTask, plain, read, write } from "./oracle.ts";

const at = (task: string, file = ""): string => `/workspace/${task}${file === "" ? "" : `/${file}`}`;
const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const many = (count: number, line: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => line(n)).join("\n");

/** Tasks about files, commands and the person who approves. */
export const FILE_TASKS: readonly OracleTask[] = [
  {
    name: "three-facts",
    files: { "a.txt": "code north: 17\n", "in/b.txt": "x\ncode east: 4\n", "in/c.md": "code south: 230\n" },
    asked: ["Find the three codes and add them up."],
    *oracle() {
      const [found] = yield [call("grep", { pattern: "code ", path: at("three-facts") })];
      const codes = [...found!.text.matchAll(/code \w+: (\d+)/g)].map(([, code]) => Number(code));
      return `The sum is ${codes.reduce((sum, code) => sum + code, 0)}.`;
    },
    check: ({ answer }) => expect(answer).toBe("The sum is 251."),
  },
  {
    name: "rename",
    files: { "a.ts": "oldName();\noldName();\n", "lib/b.ts": "const x = oldName;\n", "c.ts": "other();\n" },
    asked: ["Rename oldName to newName everywhere."],
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
    check: ({ file }) => {
      expect([file("a.ts"), file("lib/b.ts"), file("c.ts")]).toEqual([
        "newName();\nnewName();\n",
        "const x = newName;\n",
        "other();\n",
      ]);
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
    asked: ["Write index.md with the title of each Markdown file."],
    *oracle() {
      const [found] = yield [call("glob", { pattern: "**/*.md", path: at("index") })];
      const files = lines(found!.text).filter((line) => line.endsWith(".md"));
      const pages = yield files.map((file) => read(file, { limit: 1 }));
      const entries = pages.map((page, n) => `${files[n]}: ${find(plain(page), /# (.+)/)}`);
      yield [write(at("index", "index.md"), entries.sort().join("\n"))];
      return "done";
    },
    check: ({ file }) =>
      expect(lines(file("index.md") ?? "").map((line) => line.replace(/.*: /, ""))).toEqual([
        "Third",
        "First",
        "Second",
      ]),
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
    check: ({ answer }) => expect(answer).toBe("the key is under the mat"),
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
    check: ({ file }) => expect(file("conf.ini")).toBe("port = 8080\n"),
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
    check: ({ file }) => expect(file("a.yml")).toBe("test:\n  retries: 1\nprod:\n  retries: 5\n"),
  },
  {
    name: "scaffold",
    asked: ["Make a package with three files, then list it."],
    *oracle() {
      yield ["package.json", "src/a.js", "README.md"].map((name) => write(at("scaffold", name), `${name}\n`));
      const [listed] = yield [call("ls", { path: at("scaffold") })];
      return listed!.text;
    },
    check: ({ answer, file }) => {
      expect(answer).toMatch(/README\.md[\s\S]*package\.json[\s\S]*src/);
      expect(file("src/a.js")).toBe("src/a.js\n");
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
    check: ({ file }) =>
      expect([file("new/name.txt"), file("old/name.txt")]).toEqual(["kept\nas it is", undefined]),
  },
  {
    name: "csv",
    files: { "sales.csv": `item,price\n${many(40, (n) => `i${n},${n}`)}\n` },
    asked: ["Write the sum of the prices to total.txt."],
    *oracle() {
      const [page] = yield [read(at("csv", "sales.csv"))];
      const sum = lines(plain(page!))
        .slice(1)
        .reduce((total, row) => total + Number(row.split(",")[1] ?? 0), 0);
      yield [write(at("csv", "total.txt"), String(sum))];
      return "done";
    },
    check: ({ file }) => expect(file("total.txt")).toBe("780"),
  },
  {
    name: "trail",
    files: { start: "next: b7", b7: "next: q2", q2: "next: end", end: "the treasure is tea" },
    asked: ["Follow the trail from start."],
    *oracle() {
      let [page] = yield [read(at("trail", "start"))];
      while (page!.text.includes("next: "))
        [page] = yield [read(at("trail", find(page!.text, /next: (\w+)/)))];
      return plain(page!);
    },
    check: ({ answer }) => expect(answer).toContain("the treasure is tea"),
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
    check: ({ answer }) => expect(answer).toBe("green"),
  },
  {
    name: "scratch",
    files: { "in.txt": "blue 3\nred 5\n" },
    asked: ["Take notes in a file of the thread, and answer from them."],
    *oracle() {
      const [page] = yield [read(at("scratch", "in.txt"))];
      yield [write("/scratch/notes.md", plain(page!).replaceAll(" ", "="))];
      yield [edit("/scratch/notes.md", "red=5", "red=6")];
      const [notes] = yield [read("/scratch/notes.md")];
      return lines(plain(notes!)).join(",");
    },
    check: async ({ answer, file, read: readFile }) => {
      expect(answer).toBe("blue=3,red=6");
      expect(file("notes.md")).toBeUndefined();
      expect(await readFile("/scratch/notes.md")).toContain("red=6");
    },
  },
  {
    name: "todos",
    asked: ["Plan three steps, and do one after the other."],
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
    check: ({ views }) => {
      expect(views.at(-1)?.run.todos.map(({ status }) => status)).toEqual([
        "completed",
        "completed",
        "completed",
      ]);
    },
  },
  {
    name: "large-result",
    files: {
      "big.txt": many(6000, (n) => `entry ${n} ${"x".repeat(60)} ${n === 5990 ? "needle-42" : "hay"}`),
    },
    asked: ["Search for entry, and find the needle in the result."],
    *oracle() {
      const [all] = yield [call("grep", { pattern: "entry", path: at("large-result"), max_count: 6000 })];
      const path = find(all!.text, /is saved in (\S+)\. It begins/);
      const [found] = yield [call("grep", { pattern: "needle-\\d+", path, regex: true })];
      return find(found!.text, /(needle-\d+)/);
    },
    check: ({ answer }) => expect(answer).toBe("needle-42"),
  },
  {
    name: "rejected",
    asked: ["Write plan.md."],
    *oracle() {
      const [tried] = yield [write(at("rejected", "plan.md"), "plan")];
      yield [write(`/${find(tried!.text, /put it in (\w+)/)}/plan.md`, "plan")];
      return /reject/i.test(tried!.text) ? "put elsewhere" : "written";
    },
    person: async () => ({ type: "reject", message: "No, put it in drafts instead." }),
    check: async ({ file, read: readFile }) => {
      expect(file("plan.md")).toBeUndefined();
      expect(await readFile("/drafts/plan.md")).toContain("plan");
    },
  },
  {
    name: "edited",
    asked: ["Write greeting.txt, and tell what stands in it."],
    *oracle({ request }) {
      // The history has an edited call as it ran.
      const shown = request.messages.flatMap(({ toolCalls }) => toolCalls);
      const written = shown.find(({ name }) => name === "write_file")?.args["content"];
      yield [write(at("edited", "greeting.txt"), typeof written === "string" ? written : "Hi")];
      const [page] = yield [read(at("edited", "greeting.txt"))];
      return plain(page!);
    },
    person: async ({ tool, args }) => ({
      type: "edit",
      editedAction: { name: tool, args: { ...args, content: "Good morning" } },
    }),
    check: ({ answer, file }) =>
      expect([answer, file("greeting.txt")]).toEqual(["Good morning", "Good morning"]),
  },
  {
    name: "told",
    asked: ["Write the report, in the language that you are told."],
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
    check: ({ answer, file }) =>
      expect([answer, file("report.Esperanto.txt")]).toEqual(["Written in Esperanto.", "Esperanto"]),
  },
  {
    name: "commands",
    files: { "data.txt": "3\n1\n2\n" },
    asked: ["Sort data.txt with a command; mind its exit code."],
    *oracle() {
      const cwd = at("commands");
      const [failed] = yield [call("execute", { command: "sort nothing.txt", cwd })];
      if (!/exit code [12]/.test(failed!.text)) return `it should have failed: ${failed!.text}`;
      const [sorted] = yield [call("execute", { command: "sort data.txt", cwd })];
      return lines(sorted!.text).slice(0, 3).join(",");
    },
    check: ({ answer }) => expect(answer).toBe("1,2,3"),
  },
];
