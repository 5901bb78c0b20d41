import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { parseArguments } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { loadConfig } from "../../src/config/load.ts";
import { ROOT } from "../commands/built-bin.ts";
import { freePort } from "../support/free-port.ts";

// What Dockerfile, compose.yaml and deploy/ promise, as far as it can be judged without an engine.

const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const folder = mkdtempSync(join(tmpdir(), "containers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Instructions of the Dockerfile: of the stage that becomes the image, or of all. */
function instructions(name: string, stage: "last" | "all" = "last"): string[] {
  const lines = read("Dockerfile")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n/g, " ")
    .split("\n");
  const from = stage === "all" ? 0 : lines.findLastIndex((line) => line.startsWith("FROM "));
  return lines
    .slice(from)
    .flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []));
}
const words = (list = ""): string[] => z.array(z.string()).parse(JSON.parse(list));
const imageEnv: Record<string, string> = Object.fromEntries(
  instructions("ENV").flatMap((text) =>
    [...text.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
  ),
);
const port = Number(instructions("EXPOSE")[0]);

function documents(name: string): unknown[] {
  return parseAllDocuments(read(name), { merge: true }).map((document) => {
    expect(document.errors, name).toEqual([]);
    return document.toJS();
  });
}

/** A process of ours in a container: how it is started, and how long it has to end. */
interface Contained {
  args: string[];
  env: Record<string, string>;
  /** The configuration file that is mounted for it. */
  file: string;
  graceSeconds: number;
}

const OurService = z.object({
  command: z.array(z.string()),
  environment: z.record(z.string(), z.coerce.string()),
  volumes: z.array(z.string()),
  stop_grace_period: z.string(),
});
const Compose = z.object({ services: z.object({ server: OurService, worker: OurService }) });

function inCompose(): Contained[] {
  const { services } = Compose.parse(documents("compose.yaml")[0]);
  return Object.values(services).map(({ command, environment, volumes, stop_grace_period: grace }) => {
    const mounted = volumes.map((volume) => volume.split(":")).find(([, at]) => at === "/etc/deepagent");
    // As compose fills the variables in when they are not set.
    const env = Object.entries(environment).map(([name, text]) => [
      name,
      text.replaceAll(/\$\{[^}]*\}/g, ""),
    ]);
    return {
      args: command,
      env: Object.fromEntries(env),
      file: join(ROOT, mounted?.[0] ?? "", "config.json"),
      graceSeconds: Number.parseInt(grace, 10),
    };
  });
}

const objects = ["config", "server", "worker"].flatMap((name) => documents(`deploy/kubernetes/${name}.yaml`));
const ofKind = <T>(kind: string, schema: z.ZodType<T>): T[] =>
  objects.flatMap((object) => {
    const isOfKind = z.object({ kind: z.literal(kind) }).safeParse(object).success;
    return isOfKind ? [schema.parse(object)] : [];
  });

const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.literal("http") }) });
const PreStop = z.object({ preStop: z.object({ exec: z.object({ command: z.array(z.string()) }) }) });
const Container = z.object({
  args: z.array(z.string()),
  env: z.array(z.object({ name: z.string(), value: z.string() })),
  ports: z.tuple([z.object({ name: z.literal("http"), containerPort: z.number() })]),
  livenessProbe: Probe,
  readinessProbe: Probe,
  lifecycle: PreStop.optional(),
});
const Pod = z.object({
  // With links, Kubernetes sets DEEPAGENT_PORT and the like for the service `deepagent`.
  enableServiceLinks: z.literal(false),
  terminationGracePeriodSeconds: z.number(),
  containers: z.tuple([Container]),
});
const Deployment = z.object({ spec: z.object({ template: z.object({ spec: Pod }) }) });
const pods = ofKind("Deployment", Deployment).map(({ spec }) => spec.template.spec);

function inKubernetes(): Contained[] {
  const file = join(folder, "config.json");
  const [settings] = ofKind("ConfigMap", z.object({ data: z.object({ "config.json": z.string() }) }));
  writeFileSync(file, settings?.data["config.json"] ?? "");
  const [secret] = ofKind("Secret", z.object({ stringData: z.record(z.string(), z.string()) }));
  return pods.map(({ containers: [{ args, env, lifecycle }], terminationGracePeriodSeconds: grace }) => ({
    args,
    env: { ...secret?.stringData, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
    file,
    graceSeconds: grace - Number(lifecycle?.preStop.exec.command[1] ?? 0),
  }));
}

describe.each([
  ["compose.yaml", inCompose],
  ["deploy/kubernetes", inKubernetes],
])("%s", (_, contained) => {
  test("starts servers and workers by lines and settings that the program takes, and lets them drain", () => {
    expect(contained().map(({ args }) => args[0])).toEqual(["serve", "work"]);
    for (const { args, env, file, graceSeconds } of contained()) {
      const command = COMMANDS.find(({ name }) => name === args[0]);
      const parsed = command && parseArguments(args.slice(1), command);
      if (parsed?.ok !== true) throw new Error(`${args.join(" ")}: ${parsed?.problems.join(" ")}`);
      const given = { ...imageEnv, ...env, DEEPAGENT_CONFIG: file };
      const facts = { env: given, cwd: folder, home: "/home/node", platform: "linux" } as const;
      const loaded = loadConfig({ flags: parsed.flags, ...facts });
      if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
      const { http, limits, storage } = loaded.config;
      expect(http).toMatchObject({ host: "0.0.0.0", port });
      // Without tokens it would refuse to listen there.
      expect(http.tokens).not.toEqual([]);
      expect(storage).toMatch(/^postgres:/);
      expect(limits.drain).toBeGreaterThan(0);
      expect(graceSeconds).toBeGreaterThan(limits.drain);
    }
  });
});

test("proxy and probes ask on the port of the image", () => {
  expect(/^ *server-template \w+ \d+ server:(\d+)$/m.exec(read("deploy/haproxy.cfg"))?.[1]).toBe(
    String(port),
  );
  expect(pods.map(({ containers }) => containers[0].ports[0].containerPort)).toEqual([port, port]);
});

test("the proxy hides what probes and Prometheus ask for, and passes all else", () => {
  const config = read("deploy/haproxy.cfg");
  expect(config.match(/^ *http-request deny .*$/gm)).toEqual([
    "  http-request deny deny_status 404 if internal or upwards",
  ]);
  expect(/^ *acl internal (.*)$/m.exec(config)?.[1]).toBe("path,url_dec -m beg /metrics /healthz /readyz");
});

/** Paths that the proxy and Kubernetes ask. */
const probed = new Set([
  /http-check .* uri (\S+)/.exec(read("deploy/haproxy.cfg"))?.[1],
  ...pods.flatMap(({ containers: [{ livenessProbe, readinessProbe }] }) =>
    [livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path),
  ),
]);

/** Sources and destination of what is copied from this folder. */
const copied = (stage: "last" | "all") =>
  instructions("COPY", stage).map((text) => {
    const paths = text.split(" ").filter((word) => !word.startsWith("--"));
    return { fromStage: text.startsWith("--from="), sources: paths.slice(0, -1), to: paths.at(-1) ?? "" };
  });

test("what the Dockerfile copies is there, and is sent to the builder", () => {
  const sent = read(".dockerignore").split("\n");
  const sources = copied("all").flatMap((copy) => (copy.fromStage ? [] : copy.sources));
  expect(sources.filter((source) => !existsSync(join(ROOT, source)))).toEqual([]);
  expect(sources.filter((source) => !sent.includes(`!${source}`))).toEqual([]);
});

test("the image serves as its user, from a tree that cannot be written", { tags: "bwrap" }, async () => {
  const [user, group] = (instructions("USER")[0] ?? "").split(":");
  const [, entry = "", name] = /ln -s (\S+) \/usr\/local\/bin\/(\S+)/.exec(instructions("RUN").join()) ?? [];
  expect(words(instructions("ENTRYPOINT")[0])).toEqual(["tini", "--", name]);
  const config = join(folder, "image.json");
  writeFileSync(
    config,
    JSON.stringify({ http: { tokens: [{ sha256: "0".repeat(64), principal: "alice" }] } }),
  );
  const binds = copied("last").flatMap(({ sources, to }) =>
    sources.flatMap((source) => {
      const path = source.replace("/app/", "");
      return ["--ro-bind", join(ROOT, path), join("/app", sources.length > 1 ? path : to)];
    }),
  );
  const folders = ["/usr", "/bin", "/lib", "/lib64", "/etc", dirname(process.execPath)];
  const system = folders.flatMap((path) => ["--ro-bind-try", path, path]);
  const writable = ["/tmp", ...words(instructions("VOLUME")[0])].flatMap((path) => ["--tmpfs", path]);
  const start = `--ro-bind ${config} /tmp/image.json --remount-ro / --chdir ${instructions("WORKDIR")[1]}`;
  const env = { ...imageEnv, DEEPAGENT_HTTP_PORT: String(await freePort()), DEEPAGENT_MODEL: "offline" };
  const sandbox =
    `--die-with-parent --unshare-user --uid ${user} --gid ${group} --proc /proc --dev /dev`.split(" ");
  const program = [process.execPath, entry, ...words(instructions("CMD")[0]), "--config", "/tmp/image.json"];
  const child = spawn(
    "bwrap",
    [...sandbox, ...system, ...binds, ...writable, ...start.split(" "), ...program],
    {
      env: { ...env, HOME: "/home/node", PATH: "/usr/bin:/bin" },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  const [, check] = /CMD (\[.*\])$/.exec(instructions("HEALTHCHECK")[0] ?? "") ?? [];
  const health = () => spawnSync(process.execPath, words(check).slice(1), { env }).status;
  expect(health()).toBe(1);
  await expect.poll(health).toBe(0);
  for (const path of probed) {
    const answer = async () => (await fetch(`http://127.0.0.1:${env.DEEPAGENT_HTTP_PORT}${path}`)).status;
    await expect.poll(answer, { message: `${path}: ${errors}` }).toBe(200);
  }
});

test("the files that come with the project let commands run only where `execute.sandbox` says", () => {
  const files = ["deploy/config/config.json", "deploy/kubernetes/config.yaml"];
  for (const file of files) expect(read(file)).toMatch(/"execute": \{ "mode": "sandbox" \}/);
  expect(instructions("RUN", "all").join("\n")).not.toMatch(/bubblewrap/);
});
