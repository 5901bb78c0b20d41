import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { approvalTitle, askApproval, type ApprovalForm, type Asker } from "../../../src/cli/terminal/ask.ts";
import { colorsFor } from "../../../src/cli/terminal/text.ts";

function form(
  args: unknown,
  decisions: ("approve" | "approve_same" | "edit" | "reject")[] = ["approve", "edit", "reject"],
): ApprovalForm {
  const diff = Array.from({ length: 30 }, (_, line) => `    +line ${line}`).join("\n");
  return {
    message: `main agent wants to run write_file (changes a file):\nCreate /workspace/a.md\n\n${diff}`,
    requestedSchema: {
      properties: { decision: { enum: decisions }, edited_args: { default: JSON.stringify(args) } },
    },
  };
}

/** A person with answers prepared; asked for more, they are gone. */
function person(answers: string[], edited?: string): Asker & { printed: string[]; prompts: string[] } {
  const printed: string[] = [];
  const prompts: string[] = [];
  return {
    printed,
    prompts,
    colors: colorsFor({}, {}),
    rows: () => 20,
    print: (text) => void printed.push(text),
    question: async (prompt) => {
      prompts.push(prompt);
      const answer = answers.shift();
      if (answer === undefined) throw new Error("end of input");
      return answer;
    },
    edit: async () => edited,
  };
}

const write = { file_path: "/workspace/a.md", content: "first\n" };

describe("askApproval", () => {
  it.each(["a", "approve", "A"])("takes %j for approval", async (answer) => {
    expect(await askApproval(form(write), person([answer]))).toEqual({ decision: "approve" });
  });

  it("takes s for approving the same for the whole run", async () => {
    const decisions = ["approve", "approve_same", "edit", "reject"] as const;
    const asked = person(["s"]);
    expect(await askApproval(form(write, [...decisions]), asked)).toEqual({ decision: "approve_same" });
    expect(asked.prompts[0]).toContain("ame for the whole run");
  });

  it("colours lines of the diff, and neither its file names nor the text around it", async () => {
    const colors = picocolors.createColors(true);
    const diff = ["--- /a", "+++ /a", "@@ -1,2 +1,2 @@", " same", "--- gone", "+++ new"];
    const message = ["+ asks", "", ...diff.map((line) => `    ${line}`)].join("\n");
    const asked = { ...person(["a"]), colors };
    await askApproval({ ...form(write), message }, asked);
    expect(asked.printed.join("\n").split("\n").slice(2)).toEqual([
      "+ asks",
      "",
      colors.bold("    --- /a"),
      colors.bold("    +++ /a"),
      colors.cyan("    @@ -1,2 +1,2 @@"),
      "     same",
      colors.red("    --- gone"),
      colors.green("    +++ new"),
    ]);
  });

  it("asks again until it understands", async () => {
    const asked = person(["", "x", "yes", "a"]);
    expect(await askApproval(form(write), asked)).toEqual({ decision: "approve" });
    expect(asked.prompts).toHaveLength(4);
  });

  it("passes the reason of a rejection on", async () => {
    expect(await askApproval(form(write), person(["r", "not now"]))).toEqual({
      decision: "reject",
      message: "not now",
    });
    expect(await askApproval(form(write), person(["r", " "]))).toEqual({ decision: "reject" });
  });

  it("lets the text of a file be edited as text", async () => {
    const answer = await askApproval(form(write), person(["e"], "second\n"));
    expect(answer.decision).toBe("edit");
    expect(JSON.parse(answer.edited_args ?? "")).toEqual({ ...write, content: "second\n" });
  });

  it("lets other arguments be edited as JSON", async () => {
    const answer = await askApproval(form({ path: "/a" }), person(["e"], '{"path":"/b"}'));
    expect(answer).toEqual({ decision: "edit", edited_args: '{"path":"/b"}' });
  });

  it("does not take an edit without a change, or one that failed, for a decision", async () => {
    for (const edited of [write.content, undefined]) {
      const asked = person(["e", "r", ""], edited);
      expect(await askApproval(form(write), asked)).toEqual({ decision: "reject" });
      expect(asked.printed.join("\n")).toContain("Nothing was changed.");
    }
  });

  it("offers only what is possible", async () => {
    const asked = person(["e", "a"]);
    expect(await askApproval(form(write, ["approve", "reject"]), asked)).toEqual({ decision: "approve" });
    expect(asked.prompts[0]).not.toContain("dit");
  });

  it("shows a long change in part, and all of it on request", async () => {
    const asked = person(["v", "a"]);
    await askApproval(form(write), asked);
    const [first = "", note = "", all = ""] = asked.printed;
    expect(first).toContain("+line 0");
    expect(first).not.toContain("+line 29");
    expect(note).toMatch(/\d+ more lines/);
    expect(all).toContain("+line 29");
  });

  it("decides nothing when there is nobody to answer", async () => {
    await expect(askApproval(form(write), person([]))).rejects.toThrow("end of input");
  });
});

it("names who wants to do what", () => {
  expect(approvalTitle(form(write))).toBe(
    "main agent wants to run write_file (changes a file): Create /workspace/a.md",
  );
});

it.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{ isTTY: true }, { NO_COLOR: "1" }, false],
  [{ isTTY: true }, { TERM: "dumb" }, false],
])("uses colours on %j with %j: %s", (output, env, expected) => {
  expect(colorsFor(output, env).isColorSupported).toBe(expected);
});
