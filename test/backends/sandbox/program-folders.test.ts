import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openBubblewrap } from "../../../src/backends/sandbox/bubblewrap.ts";
import { programFolders } from "../../../src/backends/sandbox/program-folders.ts";
import { folder } from "./support.ts";

function home() {
  const root = folder();
  const program = (path: string, text = "#!/bin/sh\necho $0\n"): string => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { mode: 0o755 });
    return join(root, path);
  };
  const link = (path: string, target: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  };
  const of = (...entries: string[]) => {
    const PATH = entries.map((entry) => join(root, entry)).join(":");
    const found = programFolders({ PATH }, join(root, "work"), root);
    const relative = (path: string) => path.slice(root.length + 1);
    return {
      ...found,
      PATH,
      places: found.mounts.map(({ at }) => relative(at)),
    };
  };
  mkdirSync(join(root, "work"));
  return { root, program, link, of };
}

describe("programFolders", () => {
  it.each<[string, string[], string, string[]]>([
    ["a prefix", ["opt/brew/bin/x", "opt/brew/lib/y"], "opt/brew/bin", ["opt/brew", "opt/brew/bin"]],
    [
      "nvm",
      [".nvm/versions/node/v1/bin/node"],
      ".nvm/versions/node/v1/bin",
      [".nvm", ".nvm/versions/node/v1/bin"],
    ],
    [
      "pyenv",
      [".pyenv/shims/python", ".pyenv/versions/3/bin/python"],
      ".pyenv/shims",
      [".pyenv", ".pyenv/shims"],
    ],
    [
      "cargo",
      [".cargo/bin/cargo", ".cargo/lib/x", ".cargo/credentials.toml", ".rustup/x"],
      ".cargo/bin",
      [".cargo/bin", ".rustup"],
    ],
    [".local", [".local/bin/x", ".local/lib/y"], ".local/bin", [".local/bin"]],
    ["the folder of programs of a person", ["bin/x", "lib/y"], "bin", ["bin"]],
    ["the home folder", ["x"], "", []],
    ["a folder of the workspace", ["work/node_modules/.bin/x"], "work/node_modules/.bin", []],
    ["a folder that is missing", [], "gone/bin", []],
  ])("knows %s", (_what, programs, entry, places) => {
    const { program, of } = home();
    for (const path of programs) program(path);
    expect(of(entry).places).toEqual(places);
  });

  it("follows links to the tools of an environment, or to one file", () => {
    const { program, link, of } = home();
    program(".local/share/uv/tools/ruff/bin/ruff");
    program(".local/share/uv/tools/ruff/lib/x");
    program("private/tool");
    link(".local/bin/ruff", "../share/uv/tools/ruff/bin/ruff");
    link(".local/bin/tool", "../../private/tool");
    link(".local/bin/own", "ruff");
    expect(of(".local/bin").places).toEqual([".local/bin", ".local/share/uv/tools/ruff", "private/tool"]);
  });

  it("follows an entry that is a link", () => {
    const { program, link, of } = home();
    program(".sdkman/candidates/java/21/bin/java");
    link(".sdkman/candidates/java/current", "21");
    expect(of(".sdkman/candidates/java/current/bin").places).toEqual([
      ".sdkman",
      ".sdkman/candidates/java/current/bin",
    ]);
  });

  it("passes by what is closed to this user, as a PATH of another one has it", () => {
    const { root, program, of } = home();
    program(".cargo/bin/cargo");
    program("closed/bin/x");
    program("unlisted/x");
    const isRoot = process.getuid?.() === 0;
    for (const [path, mode] of [
      ["", 0o755],
      ["closed", isRoot ? 0o700 : 0],
      ["unlisted", isRoot ? 0o711 : 0o111],
    ] as const)
      chmodSync(join(root, path), mode);
    onTestFinished(() => ["closed", "unlisted"].forEach((path) => chmodSync(join(root, path), 0o755)));
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(of("closed/bin", "unlisted", ".cargo/bin").places).toEqual([".cargo/bin", "unlisted"]);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  it("leaves the folders of the system alone", () => {
    expect(programFolders({ PATH: "/usr/bin:/bin:/usr/local/sbin" }, folder(), folder()).mounts).toEqual([]);
  });

  it("lets commands find the programs, and nothing beside them", { tags: "bwrap" }, async () => {
    const { root, program, of } = home();
    program(".pyenv/versions/3/bin/python-of-test", "#!/bin/sh\necho python\n");
    program(".pyenv/shims/python-of-test", '#!/bin/sh\nexec "$PYENV_ROOT/versions/3/bin/python-of-test"\n');
    program(".cargo/bin/cargo-of-test", "#!/bin/sh\necho cargo\n");
    program(".cargo/credentials.toml", "secret");
    const { PATH, mounts, env } = of(".pyenv/shims", ".cargo/bin");
    const before = process.env["PATH"];
    process.env["PATH"] = `${PATH}:${before}`;
    onTestFinished(() => void (process.env["PATH"] = before));
    const opened = await openBubblewrap({ rootDir: join(root, "work"), readOnly: mounts, env });
    if (!opened.ok) throw new Error(opened.reason);
    onTestFinished(() => opened.backend.close());
    const { output } = await opened.backend.execute(
      `python-of-test; cargo-of-test; ls ${root}/.cargo; ls -A ${root}`,
    );
    expect(output).toBe("python\ncargo\nbin\n.cargo\n.pyenv\n");
  });
});
