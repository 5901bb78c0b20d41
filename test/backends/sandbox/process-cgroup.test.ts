import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { CommandCgroup, cgroupParent } from "../../../src/backends/sandbox/process-limits.ts";
import { folder } from "./support.ts";

/** A file system with these files, each below a directory of its own where needed. */
function root(files: Readonly<Record<string, string>>): string {
  const made = folder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(made, path)), { recursive: true });
    writeFileSync(join(made, path), content);
  }
  return made;
}

describe("cgroupParent", () => {
  it.each<{ name: string; files: Record<string, string>; parent: string }>([
    {
      name: "the own group of version 1",
      files: {
        "proc/self/cgroup": "9:name=systemd:/x\n8:cpu,pids:/own/group\n0::/\n",
        "sys/fs/cgroup/pids/own/group/cgroup.procs": "",
      },
      parent: "sys/fs/cgroup/pids/own/group",
    },
    {
      name: "what a container sees of version 1",
      files: { "proc/self/cgroup": "8:pids:/docker/abc\n", "sys/fs/cgroup/pids/cgroup.procs": "" },
      parent: "sys/fs/cgroup/pids",
    },
    {
      name: "the own group of version 2 that hands counting down",
      files: {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.subtree_control": "cpu memory pids\n",
      },
      parent: "sys/fs/cgroup",
    },
    {
      name: "beside the own group of version 2",
      files: {
        "proc/self/cgroup": "0::/system.slice/agent.service\n",
        "sys/fs/cgroup/system.slice/cgroup.subtree_control": "memory pids\n",
        "sys/fs/cgroup/system.slice/agent.service/cgroup.subtree_control": "\n",
      },
      parent: "sys/fs/cgroup/system.slice",
    },
  ])("is $name", ({ files, parent }) => {
    const made = root(files);
    expect(cgroupParent("pids", made)).toBe(join(made, parent));
  });

  it("is nowhere without groups that count", () => {
    expect(cgroupParent("pids", root({}))).toBeUndefined();
    const files = { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.subtree_control": "cpu\n" };
    expect(cgroupParent("pids", root(files))).toBeUndefined();
  });
});

describe("CommandCgroup", () => {
  it("is not made where this process may not", () => {
    expect(CommandCgroup.make({ pids: 10, memory: 1 }, () => "/proc/self/nonexistent")).toBeUndefined();
    expect(CommandCgroup.make({ pids: 10 }, () => undefined)).toBeUndefined();
  });

  it("removes what killed servers left, and nothing of those that live", () => {
    const parent = folder();
    for (const name of ["deepagent-4194305-a", `deepagent-${process.pid}-b`, "other"])
      mkdirSync(join(parent, name));
    // The folder is no control group, so that nothing is limited.
    expect(CommandCgroup.make({ pids: 10 }, () => parent)).toBeUndefined();
    expect(readdirSync(parent).sort()).toEqual([`deepagent-${process.pid}-b`, "other"]);
  });
});
