import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { approvalLines, askDecision } from "../../../src/cli/terminal/ask-approval.ts";
import type { Asker } from "../../../src/cli/terminal/asker.ts";
import { diffBody, textBody } from "../../../src/cli/terminal/body.ts";
import type { Approval } from "../../../src/runs/run.ts";
import { anApproval } from "../../server/support.ts";
import { colorsFor, displayWidth, withBlanks, wrapText } from "../../../src/cli/terminal/text.ts";

const plain = colorsFor({}, {});

function approval(args: Record<string, unknown>, more: Partial<Approval> = {}): Approval {
  return anApproval({
    tool: "write_file",
    args,
    preview: {
      kind: "diff",
      summary: "Create /workspace/a.md",
      detail: ["@@ -0,0 +1,30 @@", ...Array.from({ length: 30 }, (_, line) => `+line ${line}`)].join("\n"),
    },
    ...more,
  });
}

/** Asks about the first of two approvals. */
const ask = (asked: Approval, asker: Asker) => askDecision(asked, "1 of 2 waiting", asker);

type Person = Asker & { printed: string[]; prompts: string[] };

/** A person with keys and lines prepared; asked for more, they are gone. */
function person(answers: string[], edited?: string): Person {
  const printed: string[] = [];
  const prompts: string[] = [];
  const next = async (prompt: string): Promise<string> => {
    prompts.push(prompt);
    const answer = answers.shift();
    if (answer === undefined) throw new Error("end of input");
    return answer;
  };
  const typed = { key: next, line: next, secret: next, edit: async () => edited };
  const size = () => ({ columns: 60, rows: 20 });
  return { printed, prompts, colors: plain, size, print: (text) => void printed.push(text), ...typed };
}

const write = { file_path: "/workspace/a.md", content: "first\n" };
const short = { preview: { kind: "command", summary: "List", detail: "ls" } } as const;
const ruled = {
  call: { kind: "edit" as const, paths: ["docs/文書.md"] },
  folder: "/project",
  offers: [
    {
      rules: ["Edit(/docs/文書.md)"],
      sentence: "Change the file docs/文書.md.",
      examples: ["change docs/文書.md"],
    },
    { rules: ["Edit(/docs/**)", "Edit(/src/**)"], sentence: "Change any file.", examples: [] },
  ],
};
const same = { key: "k", text: "write_file of /workspace/a.md" };

describe("askDecision", () => {
  it.each(["a", "A"])("takes the key %j for approval", async (key) => {
    expect(await ask(approval(write, short), person([key]))).toEqual({ type: "approve" });
  });

  it("takes s for approving the same for the whole run", async () => {
    const asked = person(["s"]);
    expect(await ask(approval(write, { ...short, same }), asked)).toEqual({ type: "approve_same" });
    const keys = "a approve  s approve for this run  e edit  r reject  d details › ";
    expect(withBlanks(asked.prompts)).toEqual([keys]);
    // A key stays with what it does, however narrow the terminal is.
    expect(withBlanks(wrapText(asked.prompts[0] ?? "", 20)).map((line) => line.trim())).toEqual([
      "a approve",
      "s approve for this run",
      "e edit  r reject",
      "d details ›",
    ]);
  });

  it("takes l and a number for always allowing, after it listed the rules with their meaning", async () => {
    const asked = person(["l", "2"]);
    const wide = ["Edit(/docs/**)", "Edit(/src/**)"];
    expect(await ask(approval(write, { ...short, ruled }), asked)).toEqual({
      type: "approve_always",
      rules: wide,
    });
    expect(withBlanks(asked.prompts)).toEqual([
      "a approve  l always allow  e edit  r reject  d details › ",
      "Number of the rule (any other key goes back) › ",
    ]);
    expect(asked.printed[1]).toBe(
      [
        "",
        "Always allow with one of these rules:",
        "1  Edit(/docs/文書.md)",
        "  │ Change the file docs/文書.md.",
        "  │ such as change docs/文書.md",
        "2  Edit(/docs/**), Edit(/src/**)",
        "  │ Change any file.",
      ].join("\n"),
    );
    expect(asked.printed.at(-1)).toBe("› always allow");
  });

  it.each(["", "0", "3", "x", " ", "\u001b"])("goes back from the rules with %j", async (key) => {
    const asked = person(["l", key, "a"]);
    expect(await ask(approval(write, { ...short, ruled }), asked)).toEqual({ type: "approve" });
  });

  it("offers no rules without any, and says why they did not allow the call", async () => {
    const heldBack = ["a page of\u202e evil.example"];
    const asked = person(["l", "a"]);
    const held = { ...ruled, offers: [], heldBack };
    expect(await ask(approval(write, { ...short, ruled: held }), asked)).toEqual({ type: "approve" });
    expect(asked.prompts[0]).not.toContain("always");
    expect((asked.printed[0] ?? "").replaceAll("\n", " ")).toContain(
      "this conversation has read: a page of\\u202e evil.example; so you are asked.",
    );
  });

  it("warns before a rule is chosen for a call whose end was not shown", async () => {
    const asked = person(["l", "l", "1"]);
    expect(await ask(approval(write, { ruled }), asked)).toMatchObject({ type: "approve_always" });
    expect(asked.printed[1]).toContain("lines not shown");
  });

  it("ignores keys that mean nothing here", async () => {
    const asked = person(["", "x", "s", " ", "a"]);
    expect(await ask(approval(write, short), asked)).toEqual({ type: "approve" });
    expect(asked.prompts).toHaveLength(5);
  });

  it("passes the reason of a rejection on", async () => {
    expect(await ask(approval(write), person(["r", "not now"]))).toEqual({
      type: "reject",
      message: "not now",
    });
    expect(await ask(approval(write), person(["r", " "]))).toEqual({ type: "reject" });
  });

  it("lets the text of a file be edited as text", async () => {
    const answer = await ask(approval(write), person(["e"], "second\n"));
    const args = { ...write, content: "second\n" };
    expect(answer).toEqual({ type: "edit", editedAction: { name: "write_file", args } });
  });

  it("lets other arguments be edited as JSON", async () => {
    const answer = await ask(approval({ path: "/a" }), person(["e"], '{"path":"/b"}'));
    expect(answer).toEqual({ type: "edit", editedAction: { name: "write_file", args: { path: "/b" } } });
  });

  it.each(['{"path":', "[1]", "null"])(
    "asks again after an edit to %s, which is no JSON object",
    async (edited) => {
      const asked = person(["e", "r", ""], edited);
      expect(await ask(approval({ path: "/a" }), asked)).toEqual({ type: "reject" });
      expect(asked.printed.join("\n")).toContain("are not a JSON object. Nothing was run.");
    },
  );

  it("does not take an edit without a change, or one that failed, for a decision", async () => {
    for (const edited of [write.content, undefined]) {
      const asked = person(["e", "r", ""], edited);
      expect(await ask(approval(write), asked)).toEqual({ type: "reject" });
      expect(asked.printed.join("\n")).toContain("Nothing was changed.");
    }
  });

  it("offers only what is possible", async () => {
    const asked = person(["e", "a"]);
    const allowedDecisions: Approval["allowedDecisions"] = ["approve", "reject"];
    expect(await ask(approval(write, { ...short, allowedDecisions }), asked)).toEqual({ type: "approve" });
    expect(asked.prompts[0]).not.toContain("edit");
  });

  it("shows a long change page by page, and says what an approval would not have shown", async () => {
    const asked = person(["a", " ", " ", "a"]);
    await ask(approval(write), asked);
    const [first = "", warning = "", ...pages] = asked.printed;
    expect(first).toContain("? Approval 1 of 2 waiting");
    expect(first).toContain("+ line 0");
    expect(first).not.toContain("+ line 29");
    expect(warning).toMatch(/^\d+ lines not shown\. Press \w again to approve without\sviewing\sthem\.$/);
    expect(asked.prompts[0]).toMatch(/space\s\d+\smore\slines/);
    expect(asked.prompts.at(-1)).not.toContain("space");
    const shown = [first, ...pages].join("\n");
    expect(shown.match(/\+ line \d+/g)).toHaveLength(30);
  });

  it("has its beginning on a small screen, whatever is long in it", async () => {
    const [columns, rows] = [40, 24];
    const asked = { ...person(["r", ""]), size: () => ({ columns, rows }) };
    const path = `/workspace/${"a-long-folder/".repeat(4)}report.md`;
    const { preview } = approval(write);
    const long = { ...preview, summary: `Create ${path} (30 lines)` };
    await ask(approval(write, { preview: long, same: { key: "k", text: path } }), asked);
    const lines = (asked.printed[0] ?? "").split("\n");
    for (const line of lines) expect(displayWidth(line)).toBeLessThan(columns);
    const promptRows = Math.ceil(displayWidth(asked.prompts[0] ?? "") / columns);
    expect(lines.length + promptRows).toBeLessThanOrEqual(rows);
  });

  it("shows the call in full on request, and no line of it counts as unseen", async () => {
    const long = person(["d", "a"]);
    expect(await ask(approval(write), long)).toEqual({ type: "approve" });
    expect(long.printed.join("\n").match(/\+ line \d+/g)).toHaveLength(30);
    expect(long.printed.join("\n")).not.toContain("not shown");
    expect(long.prompts.at(-1)).not.toContain("space");
    const asked = person(["d", "r", ""]);
    await ask(approval({}, { id: "int:0" }), asked);
    expect(asked.printed[1]?.split("\n").slice(0, 3)).toEqual([
      "  │ approval int:0",
      "  │ write_file {}",
      "  11 + line 10",
    ]);
  });

  it("decides nothing when there is nobody to answer", async () => {
    await expect(ask(approval(write), person([]))).rejects.toThrow("end of input");
  });
});

describe("what a call would do", () => {
  it("shows a diff with the numbers of its lines, and what is broken", () => {
    const diff = ["--- /a", "+++ /a", "@@ -9,3 +9,3 @@", " same", "--- gone", "+++ new and long", " \tend"];
    expect(diffBody(diff.join("\n"), { colors: plain, width: 20 })).toEqual([
      "       --- /a",
      "       +++ /a",
      "       @@ -9,3 +9,3",
      "     ┆  @@",
      "   9   same",
      "  10 - -- gone",
      "  10 + ++ new and l",
      "     ┆ ong",
      "  11       end",
    ]);
  });

  it("colours what is added and removed", () => {
    const colors = colorsFor({ isTTY: true }, {});
    const lines = diffBody("@@ -1 +1 @@\n-a\n+b", { colors, width: 60 });
    expect(lines.slice(1)).toEqual([
      `  ${colors.dim("1")} ${colors.red("- a")}`,
      `  ${colors.dim("1")} ${colors.green("+ b")}`,
    ]);
  });

  it("leaves nothing of a text out, and is never wider than the terminal", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 20, max: 60 }), (text, width) => {
        const lines = textBody(text, { colors: plain, width });
        for (const line of lines) expect(displayWidth(line)).toBeLessThan(width);
        expect(
          lines
            .map((line) => line.slice(4))
            .join("")
            .replaceAll(" ", ""),
        ).toBe(text.replace(/[ \t\n]/g, ""));
      }),
    );
  });
});

describe("a call that is not shown whole elsewhere", () => {
  const content = `${"filler\n".repeat(500)}HIDDEN-PAYLOAD\n`;
  const cut = anApproval({
    tool: "write_file",
    args: { file_path: "/workspace/a.sh", content },
    preview: {
      kind: "diff",
      summary: "Overwrite /workspace/a.sh",
      destination: "/workspace/deep/place/a.sh ",
      detail: "--- /a\n+++ /a\n@@ -1 +1 @@\n+filler\n[diff cut: 501 lines more not shown]",
      isPart: true,
    },
  });

  it("is shown whole in a terminal, with its destination", async () => {
    const { title, body } = approvalLines(cut, { colors: plain, width: 60 });
    expect(title.at(-1)).toBe(String.raw`Destination: /workspace/deep/place/a.sh\u0020`);
    expect(body.join("\n")).toContain("HIDDEN-PAYLOAD");
    const at = person(["a", "a"]);
    expect(await ask(cut, at)).toEqual({ type: "approve" });
    expect(at.printed[1]).toContain("lines not shown");
  });
});

it.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{ isTTY: true }, { NO_COLOR: "1" }, false],
  [{ isTTY: true }, { TERM: "dumb" }, false],
])("uses colours on %j with %j: %s", (output, env, expected) => {
  expect(colorsFor(output, env).isColorSupported).toBe(expected);
});
