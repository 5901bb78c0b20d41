import { describe, expect, it, onTestFinished } from "vitest";
import { createSandbox, type OpenSandbox } from "../../../src/backends/sandbox/create-sandbox.ts";
import { listedPaths, pageText } from "../../../testing/suite.ts";
import { folder } from "./support.ts";

const SPECIAL = "$100 [a-z]* \\n \"double\" 'single' `tick` %s \t tab\nnaïve 日本語 👋\n";

/** That file tools and commands of one sandbox work on the same files, in both directions. */
const CASES: Readonly<Record<string, (sandbox: OpenSandbox) => Promise<void>>> = {
  "tells output, its lines, and how a command ended": async (sandbox) => {
    const chained = await sandbox.execute('export A="a b" && echo "$A" && echo two; echo three');
    expect(chained).toEqual({ output: "a b\ntwo\nthree\n", exitCode: 0, truncated: false });
    expect((await sandbox.execute("exit 42")).exitCode).toBe(42);
    expect((await sandbox.execute("echo wrong >&2")).output).toBe("[stderr] wrong\n");
    expect((await sandbox.execute("nonexistent_command_12345")).exitCode).toBe(127);
    expect((await sandbox.execute("true")).output).toBe("");
  },
  "commands see what is written, replaced, edited and uploaded": async (sandbox) => {
    await sandbox.write("/deep/er/a b.txt", SPECIAL);
    expect((await sandbox.execute("cat 'deep/er/a b.txt'")).output).toBe(SPECIAL);
    await sandbox.write("/deep/er/a b.txt", "one two\n", { mode: "overwrite" });
    await sandbox.edit("/deep/er/a b.txt", "two", "$& \\1");
    expect((await sandbox.execute("cat deep/er/*")).output).toBe("one $& \\1\n");
    await sandbox.write("/empty", "");
    expect((await sandbox.execute("test -f empty && ! test -s empty")).exitCode).toBe(0);
    await sandbox.write("/long", "line\n".repeat(5000));
    expect((await sandbox.execute("wc -l < long")).output.trim()).toBe("5000");
    const script = new TextEncoder().encode("echo from a script\n");
    await sandbox.uploadFiles?.([["/run.sh", script]]);
    expect((await sandbox.execute("sh run.sh")).output).toBe("from a script\n");
  },
  "file tools see what commands make": async (sandbox) => {
    await sandbox.execute("mkdir -p none many && for i in $(seq 10 59); do echo x > many/$i.txt; done");
    expect((await sandbox.ls("/none")).files).toEqual([]);
    expect(listedPaths(await sandbox.ls("/many/"))).toHaveLength(50);
    await sandbox.execute("mkdir d; cd d; touch .hidden 'a b' 'c(1)-[x]@#.txt'; mkdir .git 'sub dir'");
    expect(listedPaths(await sandbox.ls("/d"))).toEqual([
      "/d/.git/",
      "/d/.hidden",
      "/d/a b",
      "/d/c(1)-[x]@#.txt",
      "/d/sub dir/",
    ]);
    await sandbox.execute("seq -f 'Row_%g' 0 999 > rows");
    expect(pageText(await sandbox.read("/rows", 500, 2))).toBe("Row_500\nRow_501\n");
    expect(pageText(await sandbox.read("/rows", 0, 0))).toBe("");
    expect((await sandbox.read("/rows", 1000, 1)).code).toBe("out_of_range");
    const [answer, missing] = (await sandbox.downloadFiles?.(["/rows", "/nothing"])) ?? [];
    expect(answer?.content?.length).toBe(7890);
    expect(missing).toMatchObject({ content: null, error: "file_not_found" });
  },
  "searches find what commands make": async (sandbox) => {
    await sandbox.execute("mkdir -p s/1/2 s/none; echo target > s/a.txt; echo Target > s/1/b.txt");
    await sandbox.execute("echo '世界 target $5 [a-z]*' | tee s/1/2/c.py s/1/2/.d.py > /dev/null");
    const found = async (pattern: string, path: string, glob?: string): Promise<string[]> =>
      (await sandbox.grep(pattern, path, glob)).matches?.map(({ path: at, line }) => `${at}:${line}`) ?? [];
    expect(await found("target", "/s")).toEqual(["/s/1/2/.d.py:1", "/s/1/2/c.py:1", "/s/a.txt:1"]);
    expect(await found("世界", "/s", "c.*")).toEqual(["/s/1/2/c.py:1"]);
    expect(await found("$5 [a-z]*", "/s", "*.py")).toHaveLength(2);
    expect(await found("target", "/s/none")).toEqual([]);
    expect(listedPaths(await sandbox.glob("**/[a-b].*", "/s"))).toEqual(["/s/1/b.txt", "/s/a.txt"]);
    expect(listedPaths(await sandbox.glob("**/.*.py", "/s"))).toEqual(["/s/1/2/.d.py"]);
    expect(listedPaths(await sandbox.glob("*.md", "/s"))).toEqual([]);
  },
};

describe.each(["local", "bubblewrap"] as const)("a sandbox of the provider %s", (provider) => {
  const needs = provider === "bubblewrap" ? { tags: "bwrap" } : {};
  for (const [name, check] of Object.entries(CASES)) {
    it(name, needs, async () => {
      const rootDir = folder();
      const sandbox = await createSandbox(
        provider === "local" ? { provider, rootDir, virtualMode: true } : { provider, rootDir },
      );
      onTestFinished(() => sandbox.close());
      await check(sandbox);
    });
  }
});
