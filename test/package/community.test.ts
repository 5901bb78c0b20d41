// What people find who want to report, change or discuss something: it is true, and leads somewhere.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");

/** What GitHub takes as the form of an issue; anything else hides the form without a word. */
const Form = z.strictObject({
  name: z.string(),
  description: z.string(),
  labels: z.array(z.string()),
  body: z
    .array(
      z.discriminatedUnion("type", [
        z.strictObject({
          type: z.literal("markdown"),
          attributes: z.strictObject({ value: z.string() }),
        }),
        z.strictObject({
          type: z.enum(["input", "textarea"]),
          id: z.string().regex(/^[\w-]+$/),
          attributes: z.strictObject({
            label: z.string(),
            description: z.string().optional(),
            placeholder: z.string().optional(),
            render: z.string().optional(),
          }),
          validations: z.strictObject({ required: z.boolean() }).optional(),
        }),
      ]),
    )
    .refine((body) => {
      const ids = body.flatMap((part) => ("id" in part ? [part.id] : []));
      return ids.length > 0 && new Set(ids).size === ids.length;
    }),
});

it("the forms of issues are such as GitHub shows", () => {
  const folder = join(ROOT, ".github/ISSUE_TEMPLATE");
  const names = readdirSync(folder);
  expect(names).toContain("bug.yml");
  for (const name of names) Form.parse(parse(readFileSync(join(folder, name), "utf8")));
});

it("every command that a contributor is told exists", () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
  const text = ["README.md", "CONTRIBUTING.md", ".github/pull_request_template.md", "SECURITY.md"]
    .map((name) => readFileSync(join(ROOT, name), "utf8"))
    .join("\n");
  const told = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name = ""]) => name);
  expect(told.length).toBeGreaterThan(3);
  expect(told.filter((name) => scripts[name] === undefined)).toEqual([]);
  const files = [...text.matchAll(/node (scripts\/[\w-]+\.mjs)/g)].map(([, name = ""]) => name);
  expect(files.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
});

it("no link of the texts leads nowhere", () => {
  const texts = ["SECURITY.md", "CONTRIBUTING.md", ".github/pull_request_template.md"];
  const lost = texts.flatMap((name) => {
    const text = readFileSync(join(ROOT, name), "utf8").replaceAll(/```[^]*?```|`[^`\n]*`/g, "");
    return [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(ROOT, dirname(name), target)))
      .map((target) => `${name}: ${target}`);
  });
  expect(lost).toEqual([]);
});
