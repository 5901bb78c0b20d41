/** What happens in a world besides the work of its agents. All of it is drawn at the beginning, so that it can be left out. */
import { generator } from "./virtual-machine.ts";

export type Act =
  /** `twice`: the request is sent to two servers at once. */
  | { kind: "start"; task: string; twice: boolean }
  /** A person edits the folder. */
  | { kind: "edit"; text: string }
  /** A person who answers waiting requests, one after the other. */
  | { kind: "person"; name: string; everyMs: number; rejects: number }
  | { kind: "tell"; run: number; text: string }
  | { kind: "cancel"; run: number }
  /** Goes on in the thread of a run. */
  | { kind: "continue"; run: number; task: string }
  /** Reviews what a run left unapplied, after its end. */
  | { kind: "apply"; run: number }
  /** Every minute, until it is removed. */
  | { kind: "schedule"; task: string; forMs: number }
  /** A server ends; another one starts after `forMs`. */
  | { kind: "kill"; server: number; forMs: number }
  | { kind: "stop"; server: number; forMs: number }
  | { kind: "lost connection"; server: number; forMs: number }
  | { kind: "slow storage"; server: number; forMs: number }
  | { kind: "clock step"; server: number; byMs: number }
  /** Stops the server that applies a change, while it does, if any does within two minutes. */
  | { kind: "stop in a review"; forMs: number }
  | { kind: "full disk"; forMs: number }
  | { kind: "receiver down"; forMs: number };

/** `at`: milliseconds after the beginning of the world. */
export type Planned = Act & { at: number };

export interface Plan {
  servers: number;
  acts: Planned[];
}

/** Longest time after which something is planned to happen, in milliseconds. */
const SPAN = 40_000;

export function planFor(seed: number): Plan {
  const draw = generator(seed);
  const upTo = (limit: number): number => Math.floor(draw() * limit);
  const proposes = seed % 4 === 0;
  const servers = (proposes ? 2 : 1) + upTo(proposes ? 2 : 3);
  const runs = 1 + upTo(3);
  const acts: Planned[] = [];
  const add = (act: Act, within = SPAN): void => void acts.push({ ...act, at: upTo(within) });
  for (let index = 0; index < runs; index += 1)
    add(
      { kind: "start", task: `${proposes ? "propose" : "task"} ${seed}.${index}`, twice: draw() < 0.3 },
      index === 0 ? 1 : 8000,
    );
  for (let count = proposes ? upTo(5) : 0; count > 0; count -= 1)
    add({ kind: "edit", text: `edit ${seed}.${count}` });
  for (const name of ["Ann", "Ben"])
    add({ kind: "person", name, everyMs: 200 + upTo(3000), rejects: draw() }, 1000);
  for (let count = upTo(6); count > 0; count -= 1)
    add({ kind: "tell", run: upTo(runs), text: `message ${seed}.${count}` });
  if (draw() < 0.2) add({ kind: "cancel", run: upTo(runs) });
  // Long enough for two due times. Such a world takes as much work as five others.
  if (draw() < 0.12) add({ kind: "schedule", task: `task ${seed}.schedule`, forMs: 130_000 + upTo(30_000) });
  if (proposes && draw() < 0.8) add({ kind: "stop in a review", forMs: 6000 + upTo(20_000) }, 3000);
  for (let count = upTo(7); count > 0; count -= 1) {
    const [server, forMs] = [upTo(servers), upTo(20_000)];
    const kind = FAULTS[upTo(FAULTS.length)] ?? "kill";
    if (kind === "clock step") add({ kind, server, byMs: upTo(120_000) - 60_000 });
    else if (kind === "full disk" || kind === "receiver down") add({ kind, forMs });
    else add({ kind, server, forMs });
  }
  // With numbers of their own, so that the other acts of a seed stay.
  const more = generator(seed, 3);
  const later = (act: Act): void => void acts.push({ ...act, at: Math.floor(more() * SPAN) });
  const anyRun = (): number => Math.floor(more() * runs);
  if (more() < 0.5)
    later({ kind: "continue", run: anyRun(), task: `${proposes ? "propose" : "task"} ${seed}.more` });
  for (let count = proposes ? Math.floor(more() * 3) : 0; count > 0; count -= 1)
    later({ kind: "apply", run: anyRun() });
  return { servers, acts };
}

/** Kills come most often. */
const FAULTS = [
  "kill",
  "kill",
  "kill",
  "stop",
  "stop",
  "lost connection",
  "slow storage",
  "clock step",
  "full disk",
  "receiver down",
] as const;

export const isFault = ({ kind }: Act): boolean =>
  kind === "stop in a review" || (FAULTS as readonly string[]).includes(kind);
