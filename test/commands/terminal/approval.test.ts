import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ShownApproval, askDecision, callLines, shownApproval } from "../../../src/cli/terminal/ask.ts";
import type { Asker } from "../../../src/cli/terminal/asker.ts";
import { diffBody, textBody } from "../../../src/cli/terminal/body.ts";
import { anApproval } from "../../server/support.ts";
import { colorsFor, displayWidth, withBlanks, wrapText } from "../../../src/cli/terminal/text.ts";

const plain = colorsFor({}, {});

function question(args: unknown, more: Partial<ShownApproval> = {}): ShownApproval {
  return {
    place: "1 of 2 waiting",
    title: ["The main agent wants to run write_file:", "Create /workspace/a.md"],
    isDiff: true,
    body: ["@@ -0,0 +1,30 @@", ...Array.from({ length: 30 }, (_, line) => `+line ${line}`)].join("\n"),
    notes: [],
    details: "write_file {}",
    decisions: ["approve", "edit", "reject"],
    args: JSON.stringify(args),
    ...more,
  };
}

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
const short = { body: "ls", isDiff: false };

describe("askDecision", () => {
  it.each(["a", "A"])("takes the key %j for approval", async (key) => {
    expect(await askDecision(question(write, short), person([key]))).toEqual({ decision: "approve" });
  });

  it("takes s for approving the same for the whole run", async () => {
    const asked = person(["s"]);
    const decisions = ["approve", "approve_same", "edit", "reject"] as const;
    expect(await askDecision(question(write, { ...short, decisions }), asked)).toEqual({
      decision: "approve_same",
    });
    const keys = "a approve  s approve the same  e edit  r reject  d details › ";
    expect(withBlanks(asked.prompts)).toEqual([keys]);
    // A key stays with what it does, however narrow the terminal is.
    expect(withBlanks(wrapText(asked.prompts[0] ?? "", 20)).map((line) => line.trim())).toEqual([
      "a approve",
      "s approve the same",
      "e edit  r reject",
      "d details ›",
    ]);
  });

  it("ignores keys that mean nothing here", async () => {
    const asked = person(["", "x", "s", " ", "a"]);
    expect(await askDecision(question(write, short), asked)).toEqual({ decision: "approve" });
    expect(asked.prompts).toHaveLength(5);
  });

  it("passes the reason of a rejection on", async () => {
    expect(await askDecision(question(write), person(["r", "not now"]))).toEqual({
      decision: "reject",
      message: "not now",
    });
    expect(await askDecision(question(write), person(["r", " "]))).toEqual({ decision: "reject" });
  });

  it("lets the text of a file be edited as text", async () => {
    const answer = await askDecision(question(write), person(["e"], "second\n"));
    expect(answer.decision).toBe("edit");
    expect(JSON.parse(answer.edited_args ?? "")).toEqual({ ...write, content: "second\n" });
  });

  it("lets other arguments be edited as JSON", async () => {
    const answer = await askDecision(question({ path: "/a" }), person(["e"], '{"path":"/b"}'));
    expect(answer).toEqual({ decision: "edit", edited_args: '{"path":"/b"}' });
  });

  it("does not take an edit without a change, or one that failed, for a decision", async () => {
    for (const edited of [write.content, undefined]) {
      const asked = person(["e", "r", ""], edited);
      expect(await askDecision(question(write), asked)).toEqual({ decision: "reject" });
      expect(asked.printed.join("\n")).toContain("Nothing was changed.");
    }
  });

  it("offers only what is possible", async () => {
    const asked = person(["e", "a"]);
    const decisions = ["approve", "reject"] as const;
    expect(await askDecision(question(write, { ...short, decisions }), asked)).toEqual({
      decision: "approve",
    });
    expect(asked.prompts[0]).not.toContain("edit");
  });

  it("shows a long change page by page, and says what an approval would not have shown", async () => {
    const asked = person(["a", " ", " ", "a"]);
    await askDecision(question(write), asked);
    const [first = "", warning = "", ...pages] = asked.printed;
    expect(first).toContain("? Approval 1 of 2 waiting");
    expect(first).toContain("+ line 0");
    expect(first).not.toContain("+ line 29");
    expect(warning).toMatch(/^\d+ lines were not shown\. The same key again approves them\sunseen\.$/);
    expect(asked.prompts[0]).toMatch(/space\s\d+\smore\slines/);
    expect(asked.prompts.at(-1)).not.toContain("space");
    const shown = [first, ...pages].join("\n");
    expect(shown.match(/\+ line \d+/g)).toHaveLength(30);
  });

  it("has its beginning on a small screen, whatever is long in it", async () => {
    const [columns, rows] = [40, 24];
    const asked = { ...person(["r", ""]), size: () => ({ columns, rows }) };
    const path = `/workspace/${"a-long-folder/".repeat(4)}report.md`;
    const title = ["The main agent wants to run write_file:", `Create ${path} (30 lines)`];
    const decisions = ["approve", "approve_same", "edit", "reject"] as const;
    await askDecision(question(write, { title, notes: [`approve the same: ${path}`], decisions }), asked);
    const lines = (asked.printed[0] ?? "").split("\n");
    for (const line of lines) expect(displayWidth(line)).toBeLessThan(columns);
    const promptRows = Math.ceil(displayWidth(asked.prompts[0] ?? "") / columns);
    expect(lines.length + promptRows).toBeLessThanOrEqual(rows);
  });

  it("shows the call in full on request", async () => {
    const asked = person(["d", "r", ""]);
    await askDecision(question(write, { details: "approval int:0\nwrite_file {}" }), asked);
    expect(asked.printed[1]).toBe("  │ approval int:0\n  │ write_file {}");
  });

  it("decides nothing when there is nobody to answer", async () => {
    await expect(askDecision(question(write), person([]))).rejects.toThrow("end of input");
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
  const approval = anApproval({
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
    const asked = shownApproval(approval);
    expect(asked.title.at(-1)).toBe(String.raw`Destination: /workspace/deep/place/a.sh\u0020`);
    const { body } = callLines(asked, { colors: plain, width: 60 });
    expect(body.join("\n")).toContain("HIDDEN-PAYLOAD");
    const at = person(["a", "a"]);
    expect(await askDecision(asked, at)).toEqual({ decision: "approve" });
    expect(at.printed[1]).toContain("lines were not shown");
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
