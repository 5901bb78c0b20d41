import { describe, expect, it } from "vitest";
import { loadSkills, parseSkill } from "../../../../src/agent/layers/skills.ts";
import { StoreBackend } from "../../../../src/backends/stores/langgraph-store.ts";
import { createLogger, silentLogger } from "../../../../src/core/logger.ts";
import { InMemoryStore } from "@langchain/langgraph";

const PATH = "/s/a/SKILL.md";
const file = (...lines: string[]): string => ["---", ...lines, "---", "# Body"].join("\n");

describe("a skill", () => {
  it.each([
    ["# nothing", "description is missing: what it does and when to use it"],
    [file("name: a"), "description is missing: what it does and when to use it"],
    [file("name: [a]", "description: d"), "name must be a text"],
    [file("name: a", "description: ''"), "description is missing"],
    [file("name: a", 'description: " "'), "name and description must not be blank"],
    [file("- name: a"), "the front matter must be lines of `field: value`"],
    [
      file(": [", "  description: d"),
      "the front matter is not YAML: Flow sequence in block collection must be sufficiently indented and end with a ] in line",
    ],
  ])("that cannot be used says why: %j", (text, problem) => {
    const parsed = parseSkill(PATH, text);
    expect(parsed.ok ? "" : parsed.problem).toMatch(PATH);
    expect(parsed.ok ? "" : parsed.problem).toContain(problem);
  });

  it.each<[string[], string, object]>([
    [["license: 2.0"], "", { license: "2" }],
    [["license: [MIT]"], "license must be a text and was left out", {}],
    [["compatibility: 3"], "", { compatibility: "3" }],
    [[`compatibility: ${"x".repeat(501)}`], "longer than 500 characters", { compatibility: "x".repeat(500) }],
    [["metadata: 7"], "metadata must be a map of texts and was left out", {}],
    [["metadata:", "  version: 1.5", "  tags: [a]"], "", { metadata: { version: "1.5", tags: '["a"]' } }],
    [["allowed-tools: ls read_file"], "", { allowedTools: ["ls", "read_file"] }],
    [["allowed-tools: Bash(git add:*), Read"], "", { allowedTools: ["Bash(git add:*)", "Read"] }],
    [["allowed-tools: [ls, grep]"], "", { allowedTools: ["ls", "grep"] }],
    [["allowed-tools: [ls, {Bash: git}, null]"], "", { allowedTools: ["ls"] }],
    [["allowed-tools: 3"], "allowed-tools must be names of tools", {}],
    [["license:"], "", {}],
    [["user-invocable: true"], "", {}],
  ])("is used all the same with %j", (lines, warning, more) => {
    const parsed = parseSkill(PATH, file("name: a", "description: d", ...lines));
    const warnings = warning === "" ? [] : [expect.stringContaining(warning)];
    expect(parsed).toEqual({
      ok: true,
      warnings,
      described: { name: "a", description: "d", path: PATH, ...more },
    });
  });

  it.each([
    ["Upper", "lowercase"],
    ["a--b", "single hyphens"],
    ["-a", "lowercase"],
    ["b", "differs from its folder 'a'; rename one of them"],
    ["x".repeat(65), "name is longer than 64 characters and was cut"],
  ])("with the name %j is used with a warning", (name, warning) => {
    const parsed = parseSkill(PATH, file(`name: ${name}`, "description: d"));
    expect(parsed.ok ? parsed.warnings.join() : "").toContain(warning);
  });

  it.each([
    [
      "vercel-labs/agent-skills#275",
      `<!-- made by a tool -- do not edit -->\n${file("name: a", "description: d")}`,
      "d",
    ],
    ["graphene-data/graphene#351", `\r\n\n${file("name: a", "description: d")}`, "d"],
    ["langwatch/langwatch#7407", file('name: ""', "description: d"), "d"],
    ["anomalyco/opencode#26391", `${file("name: a")}\n\nFirst\nlines.\n\nMore.`, "First\nlines."],
    ["glittercowboy/plugin-freedom-system#6", `# a\n\n${file("name: a", "description: d")}\n\nDo it.`, "d"],
    ["PacketScope#95", "# a\n## b\n\n![x](y)\n\nDo **it**.\n", "Do **it**."],
  ])("%s: %j has a name and a description", (_source, text, description) => {
    expect(parseSkill(PATH, text)).toMatchObject({ ok: true, described: { name: "a", description } });
  });

  it("says what stands for a missing name and description", () => {
    const parsed = parseSkill("/s/b-c/SKILL.md", "Does things.\n");
    expect(parsed).toEqual({
      ok: true,
      described: { name: "b-c", description: "Does things.", path: "/s/b-c/SKILL.md" },
      warnings: [
        "/s/b-c/SKILL.md: the front matter is missing",
        "/s/b-c/SKILL.md: name is missing: what the skill is called; 'b-c' is used",
        "/s/b-c/SKILL.md: description is missing: what it does and when to use it; 'Does things.' is used",
      ],
    });
  });

  it("may come from Windows", () => {
    const text = `\uFEFF${file("name: a", "description: d").replaceAll("\n", "\r\n")}`;
    expect(parseSkill(PATH, text)).toMatchObject({ ok: true, warnings: [] });
  });
});

it("whose front matter is not YAML is read line by line, with a warning", () => {
  const parsed = parseSkill(PATH, file("name: a", "description: Use it: when needed"));
  expect(parsed).toEqual({
    ok: true,
    described: { name: "a", description: "Use it: when needed", path: PATH },
    warnings: [
      `${PATH}: the front matter is not YAML: Nested mappings are not allowed in compact mappings in line 3; put quotes around a text with ': ' or '#' in it; it was read line by line`,
    ],
  });
});

it("sources say when they hold no skill, or two of one name", async () => {
  const lines: string[] = [];
  const backend = new StoreBackend({ store: new InMemoryStore(), namespace: ["skills"] });
  await backend.write("/empty/a/notes.md", "no skill");
  for (const folder of ["a", "b"])
    await backend.write(`/twice/${folder}/SKILL.md`, file("name: a", `description: ${folder}`));
  const log = createLogger("info", (line) => void lines.push(line));
  const skills = await loadSkills(backend, ["/empty/", "/twice/"], log);
  expect(Object.keys(skills)).toEqual(["a"]);
  expect(lines.join("")).toContain(
    '"skill_source_without_skills","source":"/empty/","expected":"NAME/SKILL.md"',
  );
  expect(lines.join("")).toContain('"skill_name_twice","source":"/twice/"');
});

it("a skill file may have a name in small letters", async () => {
  const backend = new StoreBackend({ store: new InMemoryStore(), namespace: ["skills"] });
  await backend.write("/s/a/skill.md", file("name: a", "description: d"));
  await backend.write("/s/b/Skill.md/SKILL.md", file("name: b", "description: d"));
  expect(Object.keys(await loadSkills(backend, ["/s/"], silentLogger))).toEqual(["a", "b"]);
});

it.each([
  ["vercel-labs/skills#1272", "product/a"],
  ["getsentry/dotagents#58", ".curated/a"],
  ["vercel-labs/skills#1866", "cloud/data/a"],
])("%s: a skill in the group %s is found, and nothing inside of skills", async (_source, folder) => {
  const backend = new StoreBackend({ store: new InMemoryStore(), namespace: ["skills"] });
  await backend.write("/s/flat/SKILL.md", file("name: flat", "description: d"));
  await backend.write("/s/flat/examples/b/SKILL.md", file("name: b", "description: d"));
  await backend.write("/s/node_modules/x/SKILL.md", file("name: x", "description: d"));
  await backend.write("/s/1/2/3/deep/SKILL.md", file("name: deep", "description: d"));
  await backend.write(`/s/${folder}/SKILL.md`, file("name: a", "description: d"));
  const skills = await loadSkills(backend, ["/s/"], silentLogger);
  expect(Object.values(skills).map(({ path }) => path)).toEqual([
    `/s/${folder}/SKILL.md`,
    "/s/flat/SKILL.md",
  ]);
  expect(Object.keys(await loadSkills(backend, ["/s/"], silentLogger, 2))).not.toContain("deep");
});
