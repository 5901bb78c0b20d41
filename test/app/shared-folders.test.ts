import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import shared from "../../src/agent/layers/shared-folders.json" with { type: "json" };
import { loadSkills } from "../../src/agent/layers/skill-files.ts";
import { FileTree, readAgentFiles, sharedRoots, workspaceFolders } from "../../src/app/file-tree.ts";
import { readPersonCommands } from "../../src/app/person-commands.ts";
import { type Config, ConfigSchema } from "../../src/config/schema.ts";
import { createLogger, silentLogger } from "../../src/core/logger.ts";
import { realPath } from "../../src/core/real-path.ts";
import { LOCAL } from "../../src/runs/run.ts";

const OWNER = { principal: LOCAL };

/** A home folder and a repository with a workspace in it. Paths begin with `home/`, `repo/` or `ws/`. */
function place(files: Record<string, string> = {}) {
  const root = realPath(mkdtempSync(join(tmpdir(), "shared-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const at = (path: string): string => join(root, path.replace(/^ws\//, "repo/packages/api/"));
  for (const [path, text] of Object.entries({
    "repo/.git/HEAD": "",
    "home/x": "",
    "ws/a.md": "",
    ...files,
  })) {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), text);
  }
  const config: Config = {
    ...ConfigSchema.parse({ dataDir: join(root, "data"), workspace: join(root, "repo/packages/api") }),
    homeFolder: join(root, "home"),
  };
  return { root, at, config };
}

const skill = (name: string, more = "", body = "Text."): string =>
  `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n${body}\n`;
const agent = (name: string, prompt = "Work."): string =>
  `---\nname: ${name}\ndescription: d\n---\n${prompt}\n`;

function agentsOf(config: Config, owner = OWNER) {
  const own = [[new FileTree(config).mounts(owner), workspaceFolders("agents", config.workspace)] as const];
  return readAgentFiles(config, owner, own, silentLogger);
}

async function skillsOf(config: Config, owner = OWNER, log = silentLogger) {
  const tree = new FileTree(config);
  return loadSkills(tree.mounts(owner), tree.skillSources(owner), log, 300);
}

describe("skills of other programs", () => {
  it("are read from every folder of the table", async () => {
    const all = [
      ...shared.skills.project.flatMap((folder) => [`ws/${folder}`, `repo/${folder}`]),
      ...shared.skills.home.map((folder) => `home/${folder}`),
    ];
    const { config } = place(
      Object.fromEntries(all.map((path, at) => [`${path}/s${at}/SKILL.md`, skill(`s${at}`)])),
    );
    const found = Object.keys(await skillsOf(config));
    expect(all.filter((_, at) => !found.includes(`s${at}`))).toEqual([]);
  });

  it("of the project count before those of the person, the deeper ones before others, and twins are named", async () => {
    const { config } = place({
      "home/.claude/skills/a/SKILL.md": skill("a", "", "home"),
      "repo/.claude/skills/a/SKILL.md": skill("a", "", "repo"),
      "ws/.cursor/skills/a/SKILL.md": skill("a", "", "cursor"),
      "ws/.agents/skills/a/SKILL.md": skill("a", "", "agents"),
    });
    const lines: string[] = [];
    const skills = await skillsOf(
      config,
      OWNER,
      createLogger("warn", (line) => void lines.push(line)),
    );
    expect(skills["a"]?.path).toBe("/workspace/.agents/skills/a/SKILL.md");
    expect(lines.filter((line) => line.includes("skill_name_twice"))).toHaveLength(3);
  });

  it("are those of the person only for the person at this machine, and one setting turns them off", async () => {
    const { config } = place({
      "home/.claude/skills/mine/SKILL.md": skill("mine"),
      "home/.claude/agents/mine.md": agent("mine"),
    });
    const { homeFolder: _off, ...without } = config;
    expect(Object.keys(await skillsOf(config))).toContain("mine");
    for (const [settings, owner] of [
      [config, { principal: "alice" }],
      [without, OWNER],
    ] as const) {
      expect(Object.keys(await skillsOf(settings, owner))).not.toContain("mine");
      const files = new FileTree(settings).mounts(owner);
      expect((await files.ls("/skills")).files?.map(({ path }) => path)).not.toContain("/skills/~claude/");
      expect(await agentsOf(settings, owner)).toEqual([]);
    }
  });

  it("of folders above are left out where people have folders of their own", () => {
    const { config } = place({ "repo/.claude/skills/a/SKILL.md": skill("a") });
    expect(sharedRoots("skills", config, OWNER)).toMatchObject([{ label: "repository" }]);
    expect(sharedRoots("skills", { ...config, workspaceFolder: "{principal}" }, OWNER)).toEqual([]);
  });

  it("are not read through links that lead out of the repository or to the whole home folder", async () => {
    const { config, at } = place({
      "outside/skills/evil/SKILL.md": skill("evil"),
      "home/private/SKILL.md": skill("private"),
    });
    for (const folder of ["ws/.claude", "repo/.claude", "home/.claude", "ws/.agents/skills"])
      mkdirSync(at(folder), { recursive: true });
    symlinkSync(at("outside/skills"), at("ws/.claude/skills"));
    symlinkSync(at("outside/skills"), at("repo/.claude/skills"));
    symlinkSync(at("home"), at("home/.claude/skills"));
    symlinkSync(at("outside/skills/evil"), at("ws/.agents/skills/evil"));
    const lines: string[] = [];
    const skills = await skillsOf(
      config,
      OWNER,
      createLogger("warn", (line) => void lines.push(line)),
    );
    expect(Object.keys(skills)).not.toEqual(expect.arrayContaining(["evil"]));
    expect(Object.keys(skills)).not.toContain("private");
    expect(lines.join()).toContain("a link that leads out of its folder");
  });

  it("that installers link into several folders are one skill, without a notice", async () => {
    const { config, at } = place({ "home/.agents/skills/pdf/SKILL.md": skill("pdf") });
    mkdirSync(at("home/.claude/skills"), { recursive: true });
    symlinkSync("../../.agents/skills/pdf", at("home/.claude/skills/pdf"));
    const lines: string[] = [];
    const skills = await skillsOf(
      config,
      OWNER,
      createLogger("warn", (line) => void lines.push(line)),
    );
    expect(skills["pdf"]).toBeDefined();
    expect(lines).toEqual([]);
  });

  it("are bounded: a folder with thousands does not keep the others out", async () => {
    const { config, at } = place({ "ws/.agents/skills/own/SKILL.md": skill("own") });
    for (let index = 0; index < 3000; index += 1)
      mkdirSync(at(`home/.claude/skills/n${index}`), { recursive: true });
    const skills = await skillsOf(config);
    expect(Object.keys(skills)).toContain("own");
  });
});

describe("agent files", () => {
  it("are read from every folder of the table, the nearest first", async () => {
    const all = [
      ...shared.agents.home.map((folder) => `home/${folder}`),
      ...shared.agents.project.flatMap((folder) => [`repo/${folder}`, `ws/${folder}`]),
    ];
    const files = Object.fromEntries(all.map((path, at) => [`${path}/a${at}.md`, agent(`a${at}`)]));
    const twins = {
      "home/.claude/agents/t.md": agent("t", "home"),
      "ws/.claude/agents/t.md": agent("t", "ws"),
    };
    const toml =
      'name = "codex"\ndescription = "d"\ndeveloper_instructions = "x"\nsandbox_mode = "read-only"\n';
    const { config } = place({
      ...files,
      ...twins,
      "repo/.claude/agents/t.md": agent("t", "repo"),
      "ws/.codex/agents/c.toml": toml,
    });
    const found = await agentsOf(config);
    const names = found.map(({ name }) => name);
    expect(all.filter((_, at) => !names.includes(`a${at}`))).toEqual([]);
    expect(found.find(({ name }) => name === "t")?.systemPrompt).toBe("ws");
    expect(found.find(({ name }) => name === "codex")?.disallowedTools).toContain("execute");
  });
});

describe("commands", () => {
  const TEXT =
    "---\ndescription: Reviews.\nargument-hint: '[pr]'\n---\nReview $1 for !`git log` and $ARGUMENTS.\n";

  it("are read from every folder of the table, as TOML too, with skills that only a person starts", async () => {
    const all = [
      ...shared.commands.home.map((one) => `home/${one}`),
      ...shared.commands.project.flatMap((one) => [`ws/${one}`, `repo/${one}`]),
    ];
    const { config } = place({
      ...Object.fromEntries(all.map((path, at) => [`${path}/git/c${at}.md`, TEXT])),
      "ws/.gemini/commands/t.toml": 'description = "d"\nprompt = "Do {{args}}"\n',
      "ws/.github/prompts/p.prompt.md":
        "---\ndescription: d\n---\nAsk ${input:who:name} twice: ${input:who}.",
      "ws/.agents/skills/ship/SKILL.md": skill(
        "ship",
        "disable-model-invocation: true\n",
        "Ship $0 from ${CLAUDE_SKILL_DIR}.",
      ),
      "ws/.agents/skills/codex/SKILL.md": skill("codex"),
      "ws/.agents/skills/codex/agents/openai.yaml": "policy:\n  allow_implicit_invocation: false\n",
      "ws/.agents/skills/nobody/SKILL.md": skill(
        "nobody",
        "disable-model-invocation: yes\nuser-invocable: no\n",
      ),
      "ws/.claude/commands/empty.md": "",
    });
    const commands = new Map(
      (await readPersonCommands(config, OWNER, silentLogger)).map((one) => [one.name, one]),
    );
    expect(all.filter((_, at) => !commands.has(`git:c${at}`))).toEqual([]);
    expect(commands.get("git:c0")?.fill("7 now")).toBe("Review 7 for !`git log` and 7 now.");
    expect(commands.get("t")?.fill("it")).toBe("Do it");
    expect(commands.get("p")).toMatchObject({ inputs: ["who"] });
    expect(commands.get("p")?.fill({ who: "$ARGUMENTS" })).toBe("Ask $ARGUMENTS twice: $ARGUMENTS.");
    expect(commands.get("ship")?.fill("v2")).toBe("Ship v2 from /workspace/.agents/skills/ship.");
    expect([...commands.keys()]).toContain("codex");
    for (const name of ["nobody", "empty"]) expect([...commands.keys()]).not.toContain(name);
    const others = await readPersonCommands(config, { principal: "alice" }, silentLogger);
    expect(others.map(({ name }) => name)).not.toContain("git:c0");
  });
});
