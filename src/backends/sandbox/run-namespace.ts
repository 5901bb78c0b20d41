/** The shared parts of all commands of a run in Bubblewrap: loopback network, `/tmp`, `/dev/shm` and the end of their programs. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { SYSTEM_PATH, programPath, splitWords } from "./environment.ts";
import { PROBE_TIMEOUT_MS } from "./probe.ts";
import type { ProcessGroup, ProcessRunner } from "./process-runner.ts";

/** The way into the namespaces. */
export interface NamespaceEntry {
  /** Starts the program in its further arguments inside. */
  launcher: readonly string[];
  /** A folder inside that has the shared `tmp` and `shm`. No other namespace has one of that name. */
  folder: string;
  /** Process ID of the holder. */
  holder: number;
  /** True if an earlier one has ended, with its programs and the content of `/tmp`. */
  isReplacement: boolean;
}

/**
 * Namespaces that a small process holds from the first command on. They see all files of this machine, because each
 * command makes its own view of them. The kernel ends every process inside with the holder, and that with this process.
 */
export class RunNamespace {
  readonly #bwrap: string;
  readonly #scratch: (path: string) => string[];
  #holder: { group: ProcessGroup; entry: Promise<NamespaceEntry | undefined> } | undefined;

  /** `scratch`: arguments of Bubblewrap for a limited file system in memory. */
  constructor(bwrap: string, scratch: (path: string) => string[]) {
    this.#bwrap = programPath(bwrap);
    this.#scratch = scratch;
  }

  /** Makes the namespaces if there are none. Returns undefined if that fails. */
  async enter(runner: ProcessRunner): Promise<NamespaceEntry | undefined> {
    const before = this.#holder;
    const known = await before?.entry;
    if (known !== undefined && before?.group.hasEnded === false && existsSync(`/proc/${known.holder}`))
      return known;
    // If several commands come at once, the first makes them, and only it reports the end of earlier ones.
    if (this.#holder !== before) return this.enter(runner);
    this.#holder = this.#open(runner);
    const entry = await this.#holder.entry;
    return entry && { ...entry, isReplacement: before !== undefined };
  }

  #open(runner: ProcessRunner) {
    // Every Linux has /sys, and Bubblewrap does not need it.
    const folder = `/sys/${randomBytes(12).toString("hex")}`;
    // Prints its process ID as this process sees it, and waits.
    const hold = 'read -r pid rest </sys/proc/self/stat; echo "holder $pid"; exec tail -f /dev/null';
    const settings = [
      splitWords(
        "--unshare-all --unshare-user --uid 0 --gid 0 --die-with-parent --new-session --hostname sandbox --clearenv",
      ),
      ["--setenv", "PATH", SYSTEM_PATH, "--dev-bind", "/", "/", "--tmpfs", "/sys"],
      ["tmp", "shm"].flatMap((name) => this.#scratch(`${folder}/${name}`)),
      ["--dev-bind", "/proc", "/sys/proc", "--proc", "/proc", "--remount-ro", "/sys", "--chdir", "/"],
    ].flat();
    let said = "";
    let tell: (pid: string) => void;
    const pid = new Promise<string>((resolve) => (tell = resolve));
    const group = runner.start({
      file: this.#bwrap,
      args: ["--args", "3", "--", "/bin/sh", "-c", hold],
      env: {},
      cwd: "/",
      inputs: [Buffer.from(settings.map((text) => `${text}\0`).join(""))],
      maxOutputBytes: 1000,
      onOutput: (chunk) => {
        said += chunk;
        const [, found] = /holder (\d+)\n/.exec(said) ?? [];
        if (found !== undefined) tell(found);
      },
    });
    const timer = setTimeout(() => group.kill(), PROBE_TIMEOUT_MS);
    const begin = async (): Promise<NamespaceEntry | undefined> => {
      const found = await Promise.race([pid, group.ended]);
      clearTimeout(timer);
      if (typeof found !== "string") return undefined;
      const enter = splitWords("--preserve-credentials -U -m -n -p -i -u -t");
      const launcher = [programPath("nsenter"), ...enter, found, "--"];
      return { launcher, folder, holder: Number(found), isReplacement: false };
    };
    return { group, entry: begin() };
  }
}
