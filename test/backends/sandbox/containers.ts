import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { DockerOptions } from "../../../src/backends/sandbox/docker.ts";

const IMAGE = "local/deepagent-busybox:1";
const PROGRAM = "podman";
const LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

/** Podman with an image made of BusyBox, on machines whose control groups and limits are not to be had. */
export const CONTAINERS: DockerOptions = {
  image: IMAGE,
  program: PROGRAM,
  programArguments: ["--runtime", "runc"],
  limits: LIMITS,
};

/** Why there are no containers here; the image is made when there are. */
export const whyNoContainers: string | undefined = prepareImage();

/** Names of the containers that are there, running or not. */
export const containerIds = (filter = "name=deepagent-"): string[] =>
  execFileSync(PROGRAM, ["ps", "--all", "--filter", filter, "--format", "{{.Names}}"], {
    encoding: "utf8",
  })
    .split("\n")
    .filter((name) => name !== "")
    .sort();

function prepareImage(): string | undefined {
  const busybox = ["/bin/busybox", "/usr/bin/busybox"].find((path) => existsSync(path));
  if (busybox === undefined) return "busybox is not installed";
  const folder = mkdtempSync(join(tmpdir(), "deepagent-image-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const root = join(folder, "root");
  mkdirSync(join(root, "bin"), { recursive: true });
  mkdirSync(join(root, "tmp"));
  chmodSync(join(root, "tmp"), 0o1777);
  copyFileSync(busybox, join(root, "bin/busybox"));
  const applets = execFileSync(busybox, ["--list"], { encoding: "utf8" }).trim().split("\n");
  for (const applet of applets) if (applet !== "busybox") symlinkSync("busybox", join(root, "bin", applet));
  const archive = join(folder, "image.tar");
  try {
    execFileSync("tar", ["-C", root, "-cf", archive, "."]);
    execFileSync(PROGRAM, ["import", archive, IMAGE], { stdio: "pipe" });
    const run = ["--runtime", "runc", "run", "--rm", "--network", "none", ...LIMITS, IMAGE, "true"];
    execFileSync(PROGRAM, run, { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return `podman with runc does not work here: ${String(error).split("\n")[0]}`;
  }
}
