// The list of what is in the bundle, and the daily look for vulnerabilities in it. The report of npm is made up: the real
// one changes every day.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "../commands/built-bin.ts";
import { filesIn } from "../support/files-in.ts";

const Lock = z.object({ packages: z.record(z.string(), z.looseObject({ version: z.string().optional() })) });
const { packages } = Lock.parse(JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")));
const versionOf = (name: string) => packages[`node_modules/${name}`]?.version;

it("has a bill of materials with exactly the packages that are bundled", () => {
  const read = (name: string) => readFileSync(join(ROOT, "dist", name), "utf8");
  const Licences = z.tuple([
    z.union([
      z.strictObject({ license: z.strictObject({ id: z.string() }) }),
      z.strictObject({ expression: z.string() }),
    ]),
  ]);
  const Component = z.strictObject({
    type: z.enum(["application", "library"]),
    "bom-ref": z.string(),
    group: z.string().startsWith("@").optional(),
    name: z.string(),
    version: z.string(),
    licenses: Licences,
    purl: z.string().startsWith("pkg:npm/"),
  });
  const { metadata, components } = z
    .strictObject({
      $schema: z.literal("http://cyclonedx.org/schema/bom-1.6.schema.json"),
      bomFormat: z.literal("CycloneDX"),
      specVersion: z.literal("1.6"),
      version: z.literal(1),
      metadata: z.strictObject({ component: Component }),
      components: z.array(Component),
    })
    .parse(JSON.parse(read("sbom.cdx.json")));
  expect(metadata.component).toMatchObject({ name: "deepagent-mcp", version: packages[""]?.version });
  const listed = components.map(
    ({ group, name, version }) => `${group ? `${group}/` : ""}${name} ${version}`,
  );
  const licensed = [...read("THIRD-PARTY-LICENSES.txt").matchAll(/^(\S+ \d\S*) \(.*\)$/gm)].map(
    ([, one]) => one,
  );
  expect(listed.sort()).toEqual([...new Set(licensed)].sort());
  for (const { group, name, version, purl } of components)
    expect(decodeURIComponent(purl)).toBe(`pkg:npm/${group ? `${group}/` : ""}${name}@${version}`);
});

/** The script's findings if npm prints this report of the packages that are not for development. */
function audit(report: unknown): { status: number | null; stdout: string; stderr: string } {
  const folder = filesIn({ "report.json": JSON.stringify(report) });
  const answer = `#!/bin/sh\n[ "$*" = "audit --omit=dev --json" ] && cat '${folder}/report.json'\nexit 1\n`;
  const npm = join(filesIn({ npm: answer }), "npm");
  spawnSync("chmod", ["755", npm]);
  return spawnSync(process.execPath, [join(ROOT, "scripts/audit.mjs")], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(npm, "..")}${delimiter}${process.env["PATH"]}` },
  });
}

const vulnerable = (name: string, via: readonly unknown[]) => ({
  [name]: { name, severity: "high", via, nodes: [`node_modules/${name}`] },
});
const ADVISORY = { severity: "high", title: "Reads too much", url: "https://example.org/1", range: "<99" };

it("names vulnerable packages with their advisories", () => {
  const vulnerabilities = {
    ...vulnerable("zod", [ADVISORY]),
    ...vulnerable("@cfworker/json-schema", [ADVISORY]),
    ...vulnerable("@vscode/ripgrep", [ADVISORY]),
    // Vulnerable only because of another one.
    ...vulnerable("langchain", ["@cfworker/json-schema"]),
  };
  expect(audit({ vulnerabilities })).toMatchObject({
    status: 1,
    stdout: ["zod", "@cfworker/json-schema", "@vscode/ripgrep"]
      .flatMap((name) => [
        `- ${name} ${versionOf(name)}\n`,
        "  - high: [Reads too much](https://example.org/1), in versions <99\n",
      ])
      .join(""),
  });
});

it("succeeds without findings, and says so if there is no report", () => {
  expect(audit({ vulnerabilities: {} })).toMatchObject({
    status: 0,
    stdout: "",
  });
  expect(audit({ message: "405", error: {} })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("gave no report"),
  });
});

it("npm counts the packages in the bundle as those of users, and no others", () => {
  const components = z
    .object({ components: z.array(z.object({ purl: z.string() })) })
    .parse(JSON.parse(readFileSync(join(ROOT, "dist/sbom.cdx.json"), "utf8"))).components;
  const isDevelopment = ({ purl }: { purl: string }): boolean => {
    const [, name = "", version] = /^pkg:npm\/(.+)@([^@]+)$/.exec(decodeURIComponent(purl)) ?? [];
    const found = Object.entries(packages).filter(
      ([path, one]) => path.endsWith(`node_modules/${name}`) && one.version === version,
    );
    return found.every(([, { dev }]) => dev === true);
  };
  expect(components.length).toBeGreaterThan(50);
  expect(components.filter(isDevelopment)).toEqual([]);
});
