import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
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
      places: found.mounts.flatMap(({ at }) => (at.startsWith(`${root}/`) ? [relative(at)] : [])),
    };
  };
  mkdirSync(join(root, "work"));
  return { root, program, link, of };
}

describe("programFolders", () => {
  it.each<[string, string[], string, string[]]>([
    [
      "nvm",
      [".nvm/versions/node/v1/bin/node", ".nvm/versions/node/v1/lib/x", ".nvm/versions/node/v1/etc/npmrc"],
      ".nvm/versions/node/v1/bin",
      [".nvm/versions/node/v1/bin", ".nvm/versions/node/v1/lib"],
    ],
    [
      "pyenv",
      [".pyenv/shims/python", ".pyenv/versions/3/bin/python", ".pyenv/version", ".pyenv/cache/x"],
      ".pyenv/shims",
      [".pyenv/shims", ".pyenv/version", ".pyenv/versions"],
    ],
    [
      "asdf",
      [".asdf/shims/x", ".asdf/installs/x/1/bin/x", ".asdf/.asdfrc"],
      ".asdf/shims",
      [".asdf/installs", ".asdf/shims"],
    ],
    [
      "volta",
      [".volta/bin/node", ".volta/tools/image/x", ".volta/layout.v4", ".volta/hooks.json", ".volta/log/x"],
      ".volta/bin",
      [".volta/bin", ".volta/layout.v4", ".volta/tools"],
    ],
    [
      "mise",
      [".local/share/mise/shims/x", ".local/share/mise/installs/x/1/bin/x", ".local/share/mise/downloads/x"],
      ".local/share/mise/shims",
      [".local/share/mise/installs", ".local/share/mise/shims"],
    ],
    [
      "cargo",
      [
        ".cargo/bin/cargo",
        ".cargo/lib/x",
        ".cargo/credentials.toml",
        ".rustup/toolchains/x",
        ".rustup/tmp/x",
      ],
      ".cargo/bin",
      [".cargo/bin", ".rustup/toolchains"],
    ],
    [".local", [".local/bin/x", ".local/lib/y"], ".local/bin", [".local/bin"]],
    ["the folder of programs of a person", ["bin/x", "lib/y"], "bin", ["bin"]],
    ["the home folder", ["x"], "", []],
    ["a folder of the workspace", ["work/node_modules/.bin/x"], "work/node_modules/.bin", []],
    [
      "packages of Node",
      ["app/node_modules/.bin/x", "app/.env"],
      "app/node_modules/.bin",
      ["app/node_modules"],
    ],
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
    const uv = ".local/share/uv/tools/ruff";
    expect(of(".local/bin").places).toEqual([".local/bin", `${uv}/bin`, `${uv}/lib`, "private/tool"]);
  });

  it("follows an entry that is a link", () => {
    const { program, link, of } = home();
    program(".sdkman/candidates/java/21/bin/java");
    link(".sdkman/candidates/java/current", "21");
    expect(of(".sdkman/candidates/java/current/bin").places).toEqual([
      ".sdkman/candidates/java/21/bin",
      ".sdkman/candidates/java/current/bin",
    ]);
  });

  it("passes by what is closed to this user, as a PATH of another one has it", () => {
    const { root, program, of } = home();
    program(".cargo/bin/cargo");
    program("closed/bin/x");
    program("unlisted/bin/x");
    const isRoot = process.getuid?.() === 0;
    for (const [path, mode] of [
      ["", 0o755],
      ["closed", isRoot ? 0o700 : 0],
      ["unlisted/bin", isRoot ? 0o711 : 0o111],
    ] as const)
      chmodSync(join(root, path), mode);
    onTestFinished(() => ["closed", "unlisted/bin"].forEach((path) => chmodSync(join(root, path), 0o755)));
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(of("closed/bin", "unlisted/bin", ".cargo/bin").places).toEqual([".cargo/bin", "unlisted/bin"]);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  it("leaves the folders of the system alone, and takes parts of /usr/local", () => {
    const { mounts } = programFolders({ PATH: "/usr/bin:/bin:/usr/local/sbin" }, folder(), folder());
    const places = mounts.map(({ at }) => at);
    expect(places.filter((path) => /^\/(usr\/(?!local\/)|bin|lib|etc)/.test(path))).toEqual([]);
    expect(places).toContain("/usr/local/bin");
    expect(places.filter((path) => /^\/usr\/local\/(etc|var)|^\/(usr\/local|opt)$/.test(path))).toEqual([]);
  });

  it("lets commands find the programs, and nothing beside them", { tags: "bwrap" }, async () => {
    const { root, program, of } = home();
    program(".pyenv/versions/3/bin/python-of-test", "#!/bin/sh\necho python\n");
    program(".pyenv/shims/python-of-test", '#!/bin/sh\nexec "$PYENV_ROOT/versions/3/bin/python-of-test"\n');
    program(".pyenv/versions/3/etc/settings", "in a version\n");
    program(".pyenv/cache/settings", "beside the versions\n");
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
      `python-of-test; cargo-of-test; ls ${root}/.cargo; ls -A ${root}; cat ${root}/.pyenv/*/settings ${root}/.pyenv/*/*/etc/settings 2>/dev/null`,
    );
    expect(output).toBe("python\ncargo\nbin\n.cargo\n.pyenv\nin a version\n");
  });
});

/** A package: the program that the search path leads to, what else it needs, and its settings and data. */
type Package = [name: string, program: string, needed: string[], kept: string[]];

const PACKAGES: readonly Package[] = [
  [
    "a prefix",
    "bin/x",
    ["lib/a.so", "lib64/b", "libexec/c", "share/d"],
    ["etc/x.conf", "var/log", "data/db", "conf/y", ".env"],
  ],
  ["Node", "bin/node", ["lib/node_modules/npm/cli.js", "include/node/x.h", "share/man/x"], ["etc/npmrc"]],
  ["a JDK", "bin/java", ["lib/modules", "conf/security/java.security", "jmods/x", "release"], ["secrets/x"]],
  ["Maven", "bin/mvn", ["boot/x.jar", "lib/y.jar"], ["conf/settings.xml"]],
  ["Tomcat", "bin/catalina.sh", ["lib/x.jar"], ["conf/tomcat-users.xml", "logs/x", "webapps/x", "work/x"]],
  ["Go", "bin/go", ["pkg/tool/x", "src/fmt/x.go", "go.env", "VERSION"], ["config/x"]],
  ["Erlang", "bin/erl", ["lib/x", "erts-14.2/bin/y", "releases/26/z"], ["log/x"]],
  [
    "a virtual environment",
    "bin/python",
    ["lib/python3/site-packages/x", "pyvenv.cfg"],
    [".env", "config.toml"],
  ],
  [
    "Homebrew",
    "bin/jq",
    ["Cellar/jq/1/bin/jq", "opt/x", "lib/x.dylib", "Frameworks/x"],
    ["etc/my.cnf", "var/postgres/x"],
  ],
  ["a compiler", "bin/arm-none-eabi-gcc", ["arm-none-eabi/include/x", "lib/gcc/x"], ["user-settings/x"]],
  ["PostgreSQL", "bin/psql", ["lib/x", "share/y"], ["data/base/1"]],
  [
    "Chrome",
    "chrome",
    [
      "locales/de.pak",
      "resources.pak",
      "icudtl.dat",
      "libEGL.so",
      "v8_context_snapshot.bin",
      "WidevineCdm/x",
    ],
    ["config.json", "policies.ini", "Default/Cookies"],
  ],
  ["an Electron app", "slack", ["resources/app.asar", "chrome_100_percent.pak"], ["settings.yml"]],
  [
    "PowerShell",
    "pwsh",
    ["System.dll", "pwsh.runtimeconfig.json", "libpsl.so", "modules/x"],
    ["powershell.config.json"],
  ],
  ["Zig", "zig", ["lib/std/x.zig"], ["cache/x"]],
  ["scripts", "start.sh", ["common.sh", "helper.py"], ["secrets.env", "password.txt"]],
];

describe("a package outside the home folder", () => {
  /** The places, below the folder of the package, that programs on a search path with these entries show. */
  function shown(name: string, files: readonly string[], reach: (root: string) => string): string[] {
    const root = folder();
    const program = files[0] ?? "";
    for (const file of files) {
      mkdirSync(dirname(join(root, "opt", name, file)), { recursive: true });
      writeFileSync(join(root, "opt", name, file), "", { mode: file === program ? 0o755 : 0o644 });
    }
    mkdirSync(join(root, "links"));
    const entry = reach(root);
    const { mounts } = programFolders({ PATH: entry }, join(root, "work"), join(root, "home"));
    const places = mounts.map(({ at }) => at);
    return files.filter((file) =>
      places.some((place) => `${root}/opt/${name}/${file}/`.startsWith(`${place}/`)),
    );
  }

  it.each(PACKAGES)(
    "shows what %s needs, and neither its settings nor its data",
    (_what, program, needed, kept) => {
      const files = [program, ...needed, ...kept];
      const linked = (root: string): string => {
        symlinkSync(join(root, "opt/package", program), join(root, "links/x"));
        return join(root, "links");
      };
      const named = (root: string): string => dirname(join(root, "opt/package", program));
      const versioned = (root: string): string => {
        symlinkSync("package", join(root, "opt/current"));
        symlinkSync(join(root, "opt/current", program), join(root, "second"));
        symlinkSync("../second", join(root, "links/x"));
        return join(root, "links");
      };
      for (const reach of [linked, named, versioned]) {
        expect(shown("package", files, reach)).toEqual([program, ...needed]);
      }
    },
  );

  it("shows nothing of a package that no program on the search path belongs to", () => {
    expect(shown("package", ["bin/x", "lib/y"], (root) => join(root, "links"))).toEqual([]);
  });

  it("follows no part that is a link to a private folder", () => {
    const root = folder();
    const at = (path: string): string => join(root, path);
    for (const path of ["home/private", "opt/x/bin", "work"]) mkdirSync(at(path), { recursive: true });
    symlinkSync(at("home"), at("opt/x/share"));
    symlinkSync(at("work"), at("opt/x/lib"));
    const { mounts } = programFolders({ PATH: at("opt/x/bin") }, at("work"), at("home"));
    expect(mounts.map(({ at: place }) => place).filter((place) => place.startsWith(root))).toEqual([
      at("opt/x/bin"),
    ]);
  });
});

const isWritable = ["/opt", "/usr/local/bin"].every((path) => {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
});

describe.runIf(isWritable)("in the sandbox", () => {
  it(
    "a program of /opt works, and no settings or data of /opt and /usr/local are seen",
    { tags: "bwrap" },
    async () => {
      const root = mkdtempSync("/opt/deepagent-test-");
      const link = join("/usr/local/bin", basename(root));
      const etc = mkdtempSync("/usr/local/etc-of-test-");
      onTestFinished(() =>
        [root, link, etc].forEach((path) => rmSync(path, { recursive: true, force: true })),
      );
      for (const name of ["bin", "lib", "etc", "data"]) mkdirSync(join(root, name));
      for (const path of [join(root, "etc/secret"), join(root, "data/secret"), join(etc, "secret")])
        writeFileSync(path, "secret");
      writeFileSync(join(root, "lib/word"), "works");
      writeFileSync(join(root, "bin/x"), `#!/bin/sh\ncat ${root}/lib/word\n`, { mode: 0o755 });
      symlinkSync(join(root, "bin/x"), link);
      const opened = await openBubblewrap({ rootDir: folder() });
      if (!opened.ok) throw new Error(opened.reason);
      onTestFinished(() => opened.backend.close());
      const { output } = await opened.backend.execute(
        `${basename(link)}; echo; ls ${root}; grep -rl secret ${root} ${etc} 2>/dev/null; touch /usr/local/x /opt/x`,
      );
      expect(output).toMatch(/^works\nbin\nlib\n(.*touch: .*Read-only file system\n){2}$/);
    },
  );
});
