import { describe, expect, test } from "vitest";
import { BACKENDS } from "./backends.ts";
import { harness } from "./harness.ts";

const PATH = "/a/Analysis.ipynb";

/** A file as Jupyter writes it: one blank per level, source as lines, numbers that JavaScript would write otherwise. */
const JUPYTER = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa1111",
   "metadata": {},
   "source": [
    "# Größe\\n",
    "of things"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bbbb2222",
   "metadata": {"scrolled": true, "ratio": 1.0},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "first\\n",
      "\\u001b[31msecond\\u001b[0m\\n"
     ]
    },
    {
     "data": {
      "image/png": "${"A".repeat(5000)}",
      "text/plain": [
       "<Figure size 640x480>"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    }
   ],
   "source": [
    "x = 1\\n",
    "print(x)"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "cccc3333",
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`;

const SHOWN = [
  "<cell 1: markdown>",
  "# Größe",
  "of things",
  "<cell 2: code>",
  "x = 1",
  "print(x)",
  "<output: stdout>",
  "first",
  "second",
  "<output: text>",
  "<Figure size 640x480>",
  "<output: image/png, 5000 characters, not shown>",
  "<cell 3: code>",
  "",
];

const notebook = (cells: readonly object[], minor = 4): string =>
  JSON.stringify({ cells, metadata: {}, nbformat: 4, nbformat_minor: minor });

const code = (source: unknown, more: object = {}) => ({
  cell_type: "code",
  execution_count: null,
  metadata: {},
  outputs: [],
  source,
  ...more,
});

describe.each(BACKENDS)("a notebook over $name", ({ open }) => {
  const opened = async (content: string, path = PATH) => {
    const tools = harness(await open({ [path]: content }));
    return {
      tools,
      lines: async (): Promise<string[]> => {
        const text = await tools.text("read_file", { file_path: path });
        return text
          .split("\n")
          .flatMap((line) => (line.includes("\t") ? [line.slice(line.indexOf("\t") + 1)] : []));
      },
      edit: (old_string: string, new_string: string, replace_all = false) =>
        tools.text("edit_file", { file_path: path, old_string, new_string, replace_all }),
      file: async (): Promise<unknown> => (await tools.backend.readRaw(path)).data?.content,
    };
  };

  test("is read as cells, with short outputs and the sizes of others", async () => {
    const { lines, tools } = await opened(JUPYTER);
    expect(await lines()).toEqual(SHOWN);
    const page = await tools.text("read_file", { file_path: PATH, offset: 3, limit: 2 });
    expect(page).toContain("<cell 2: code>");
    expect(page).toContain("[lines 4-5 of 14; continue with offset=5]");
    expect(page).toContain("begins a new one");
  });

  test("keeps every other byte when a line of one cell changes", async () => {
    const { edit, file } = await opened(JUPYTER);
    expect(await edit("x = 1\nprint(x)", 'x = "ü"\nprint(x)\n')).toContain("Successfully replaced 1");
    expect(await file()).toBe(
      JUPYTER.replace('"x = 1\\n",\n    "print(x)"', '"x = \\"ü\\"\\n",\n    "print(x)\\n"'),
    );
  });

  test("gets a new cell, loses one, and changes the type of one", async () => {
    const { edit, file, lines } = await opened(JUPYTER);
    await edit("of things\n", "of things\n<cell: code>\nimport os\n");
    expect(await lines()).toEqual([
      ...SHOWN.slice(0, 3),
      "<cell 2: code>",
      "import os",
      ...SHOWN.slice(3).map((line) => line.replace("cell 3", "cell 4").replace("cell 2", "cell 3")),
    ]);
    const added = JSON.parse(String(await file())).cells[1];
    expect(added).toEqual({
      cell_type: "code",
      execution_count: null,
      id: expect.stringMatching(/^[0-9a-f]{8}$/),
      metadata: {},
      outputs: [],
      source: ["import os"],
    });
    await edit("<cell 2: code>\nimport os\n", "");
    expect(await file()).toBe(JUPYTER);
    await edit("<cell 3: code>", "<cell 3: markdown>");
    expect(JSON.parse(String(await file())).cells[2]).toEqual({
      cell_type: "markdown",
      id: "cccc3333",
      metadata: {},
      source: [],
    });
  });

  test("loses outputs, whose text cannot be changed", async () => {
    const { edit, file } = await opened(JUPYTER);
    expect(await edit("first", "1st")).toContain("the outputs of cell 2 can be removed, but not changed");
    expect(await file()).toBe(JUPYTER);
    await edit(`${SHOWN.slice(6, 12).join("\n")}\n`, "");
    const cell = JSON.parse(String(await file())).cells[1];
    expect(cell).toMatchObject({ execution_count: null, outputs: [], source: ["x = 1\n", "print(x)"] });
    expect(String(await file())).toContain('{"scrolled": true, "ratio": 1.0}');
  });

  test("keeps a source in one text, its indentation, its escapes and its line ends", async () => {
    const spaced = JSON.stringify(JSON.parse(notebook([code("a = 'é'\nb"), code("b")])), null, 4);
    const ascii = spaced.replace("é", String.raw`\u00e9`).replaceAll("\n", "\r\n");
    const { edit, file } = await opened(ascii);
    await edit("a = 'é'", "a = 'ö'\nc");
    expect(await file()).toBe(ascii.replace(String.raw`\u00e9'`, String.raw`\u00f6'\nc`));
    const compact = await opened(notebook([code(["1"]), code(["2"])]));
    await compact.edit("2", "3");
    expect(await compact.file()).toBe(notebook([code(["1"]), code(["3"])]));
  });

  test("lines of a source that look like marks stay lines of the source", async () => {
    const source = "<cell 2: code>\n\\<output: text>\n<output for='a'>\n<cello>";
    const { edit, lines, file } = await opened(notebook([code(source)]));
    expect(await lines()).toEqual([
      "<cell 1: code>",
      ...source.split("\n").map((line) => (/cello/.test(line) ? line : `\\${line}`)),
    ]);
    await edit("<cello>", "<cellos>");
    expect(JSON.parse(String(await file())).cells).toEqual([code(source.replace("cello", "cellos"))]);
  });

  test("without ids gets none, and a long output is cut", async () => {
    const outputs = [{ output_type: "stream", name: "stderr", text: "w".repeat(9000) }];
    const { edit, lines, file } = await opened(notebook([code("a", { outputs })]));
    expect(await lines()).toContain("<output: stderr, the first 2000 of 9000 characters>");
    await edit("<cell 1: code>", "<cell: markdown>\n# Title\n<cell 1: code>");
    expect(JSON.parse(String(await file())).cells).toEqual([
      { cell_type: "markdown", metadata: {}, source: ["# Title"] },
      code("a", { outputs }),
    ]);
  });

  test("an output without text and pictures, as Plotly and widgets write it, is named", async () => {
    const data = { "application/vnd.plotly.v1+json": { data: [1] }, "text/html": ["<div></div>"] };
    const outputs = [{ output_type: "display_data", metadata: {}, data }];
    const { lines } = await opened(notebook([code("fig.show()", { outputs })]));
    expect(await lines()).toContain("<output: application/vnd.plotly.v1+json, 12 characters, not shown>");
  });

  test("an error shows its trace, and odd outputs do no harm", async () => {
    const outputs = [
      {
        output_type: "error",
        ename: "ValueError",
        evalue: "no",
        traceback: ["\u001b[0;31mValueError\u001b[0m: no"],
      },
      { output_type: "error", ename: "KeyError", evalue: "k" },
      null,
      { output_type: "execute_result", data: null },
      {
        output_type: "execute_result",
        data: { "application/x+json": { a: 1 }, "text/html": "<p>", "a>b/c": {} },
      },
    ];
    const { lines } = await opened(notebook([code(3, { outputs })]));
    expect(await lines()).toEqual([
      "<cell 1: code>",
      "",
      "<output: error>",
      "ValueError: no",
      "<output: error>",
      "KeyError: k",
      "<output: ab/c, 2 characters, not shown>",
    ]);
  });

  test.each([
    ["cut", JUPYTER.slice(0, 200)],
    ["of format 3", '{"worksheets": [], "nbformat": 3}'],
    ["without cells", '{"nbformat": 4}'],
    ["with a cell that is none", notebook([code("a"), "b" as never])],
    ["plain text", "hello\n"],
  ])("a file that is %s is read and edited as it is", async (_, content) => {
    const { lines, edit, file } = await opened(content);
    const first = content.split("\n", 1)[0] ?? "";
    expect((await lines())[0]).toBe(first);
    const beginning = content.slice(0, 10);
    await edit(beginning, `${beginning} `);
    expect(await file()).toBe(content.replace(beginning, `${beginning} `));
  });

  test("settings of the file itself can be edited, if it stays a notebook", async () => {
    const { edit, file } = await opened(JUPYTER);
    await edit('"display_name": "Python 3"', '"display_name": "Python 3.12"');
    expect(await file()).toBe(JUPYTER.replace('"Python 3"', '"Python 3.12"'));
    expect(await edit(' "nbformat": 4,', "")).toContain("String not found");
  });

  test("what was written before the first cell is refused, and a miss shows the nearest lines", async () => {
    const { edit, file } = await opened(JUPYTER);
    expect(await edit("<cell 1: markdown>\n", "")).toContain("before the text of its first cell");
    expect(await edit("x  =  1", "x")).toContain("x = 1");
    expect(await file()).toBe(JUPYTER);
  });

  test("is made by write_file from cells or from its JSON", async () => {
    const { tools } = await opened("{}");
    const write = (file_path: string, content: string) => tools.text("write_file", { file_path, content });
    await write("/new.ipynb", "<cell: markdown>\n# Hi\n\n<cell: code>\nprint(1)\n");
    const { data } = await tools.backend.readRaw("/new.ipynb");
    expect(JSON.parse(String(data?.content))).toMatchObject({
      cells: [
        { cell_type: "markdown", source: ["# Hi"] },
        { cell_type: "code", source: ["print(1)"], outputs: [], execution_count: null },
      ],
      nbformat: 4,
    });
    await write("/json.ipynb", JUPYTER);
    expect((await tools.backend.readRaw("/json.ipynb")).data?.content).toBe(JUPYTER);
    await write("/cells.md", "<cell: code>\n1");
    expect((await tools.backend.readRaw("/cells.md")).data?.content).toBe("<cell: code>\n1");
  });

  test("an empty notebook gets its first cell", async () => {
    const { edit, file } = await opened(notebook([]));
    await edit("", "<cell: code>\n1 + 1\n");
    expect(JSON.parse(String(await file())).cells).toEqual([code(["1 + 1"])]);
  });

  test("a preview shows the lines of the file that change, the same as the edit", async () => {
    const { tools, edit, file } = await opened(JUPYTER);
    const args = {
      file_path: PATH,
      old_string: "<cell 3: code>",
      new_string: "<cell: code>\ny\n<cell 3: code>",
    };
    const { detail } = await tools.preview("edit_file", args);
    await edit(args.old_string, args.new_string);
    const added = detail
      .split("\n")
      .filter((line) => line.startsWith("+ "))
      .map((line) => line.slice(1));
    expect(added).toHaveLength(10);
    expect(String(await file())).toContain(added.join("\n"));
  });
});
