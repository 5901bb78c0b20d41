import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerOptions } from "../../../src/backends/sandbox/docker.ts";
import { programPath } from "../../support/program-path.ts";

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

/** Names of the containers that are there, running or not. */
export const containerIds = (filter = "name=deepagent-"): string[] =>
  execFileSync(PROGRAM, ["ps", "--all", "--filter", filter, "--format", "{{.Names}}"], {
    encoding: "utf8",
  })
    .split("\n")
    .filter((name) => name !== "")
    .sort();

/** Makes the image, and runs a container of it; throws what is missing for that. */
export function prepareImage(): void {
  const busybox = programPath("busybox");
  if (busybox === undefined) throw new Error("busybox is not in PATH");
  const folder = mkdtempSync(join(tmpdir(), "deepagent-image-"));
  try {
    const root = join(folder, "root");
    mkdirSync(join(root, "bin"), { recursive: true });
    mkdirSync(join(root, "tmp"));
    chmodSync(join(root, "tmp"), 0o1777);
    copyFileSync(busybox, join(root, "bin/busybox"));
    const applets = execFileSync(busybox, ["--list"], { encoding: "utf8" }).trim().split("\n");
    for (const applet of applets) if (applet !== "busybox") symlinkSync("busybox", join(root, "bin", applet));
    const archive = join(folder, "image.tar");
    execFileSync("tar", ["-C", root, "-cf", archive, "."]);
    execFileSync(PROGRAM, ["import", archive, IMAGE], { stdio: "pipe" });
    const run = ["--runtime", "runc", "run", "--rm", "--network", "none", ...LIMITS, IMAGE, "true"];
    execFileSync(PROGRAM, run, { stdio: "pipe" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
