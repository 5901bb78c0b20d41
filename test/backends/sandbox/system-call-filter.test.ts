import { describe, expect, it } from "vitest";
import { systemCallFilter, callNumbers } from "../../../src/backends/sandbox/process-limits.ts";

const ARCHITECTURES = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const I386 = 0x40000003;

const [ALLOW, KILL, EPERM, ENOSYS] = [0x7fff0000, 0x80000000, 0x50001, 0x50026];

interface Call {
  architecture: number;
  number: number;
  args?: readonly number[];
}

/** Runs a filter as the kernel does, which knows more instructions than are used here. */
function verdict(filter: Uint8Array, { architecture, number, args = [] }: Call): number {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, number >>> 0, true);
  data.setUint32(4, architecture, true);
  for (const [index, value] of args.entries()) data.setBigUint64(16 + 8 * index, BigInt(value), true);
  const program = new DataView(filter.buffer, filter.byteOffset, filter.byteLength);
  let accumulator = 0;
  for (let at = 0; at < filter.length; at += 8) {
    const [code, k] = [program.getUint16(at, true), program.getUint32(at + 4, true)];
    const jump = (holds: boolean): number => program.getUint8(at + (holds ? 2 : 3)) * 8;
    if (code === 0x20) accumulator = data.getUint32(k, true);
    else if (code === 0x15) at += jump(accumulator === k);
    else if (code === 0x25) at += jump(accumulator > k);
    else if (code === 0x45) at += jump((accumulator & k) !== 0);
    else if (code === 0x06) return k;
    else throw new Error(`instruction ${code}`);
  }
  throw new Error("it ended without an answer");
}

describe.each(["x64", "arm64"] as const)("the filter of system calls on %s", (processor) => {
  const filter = systemCallFilter(processor) ?? new Uint8Array();
  const architecture = ARCHITECTURES[processor];
  const special = callNumbers("special", processor);
  const answer = (name: string, ...args: number[]): number => {
    const number = special.get(name);
    if (number === undefined) throw new Error(`${name} is not known`);
    return verdict(filter, { architecture, number, args });
  };

  it("is a program that the kernel takes", () => {
    expect(filter.length % 8).toBe(0);
    expect(filter.length / 8).toBeLessThanOrEqual(4096);
  });

  it("refuses every call of the list, and allows all others that are known", () => {
    const refused = new Set(callNumbers("refused", processor).values());
    const numbers = new Set(special.values());
    expect(refused.size).toBe(callNumbers("refused", processor).size);
    for (let number = 0; number <= 466; number += 1) {
      if (numbers.has(number)) continue;
      const expected = refused.has(number) ? EPERM : ALLOW;
      expect(verdict(filter, { architecture, number }), `call ${number}`).toBe(expected);
    }
  });

  it("knows no call that is newer than the list, and none of x32", () => {
    for (const number of [467, 500, 1024, 0x40000000, 0x40000000 + 250, 0x7fffffff, 0xffffffff]) {
      expect(verdict(filter, { architecture, number }), `call ${number}`).toBe(ENOSYS);
    }
  });

  it("ends programs of another architecture", () => {
    const others = [I386, 0x40000028, ...Object.values(ARCHITECTURES)].filter(
      (other) => other !== architecture,
    );
    for (const other of others) {
      for (let number = 0; number <= 466; number += 1) {
        expect(verdict(filter, { architecture: other, number })).toBe(KILL);
      }
    }
  });

  it("allows new processes and threads, and no namespaces", () => {
    const [thread, process] = [0x3d0f00, 0x1200011];
    expect([answer("clone", thread), answer("clone", process)]).toEqual([ALLOW, ALLOW]);
    for (const bit of [17, 25, 26, 27, 28, 29, 30]) expect(answer("clone", process | (1 << bit))).toBe(EPERM);
    expect([answer("clone3"), answer("openat2")]).toEqual([ENOSYS, ENOSYS]);
  });

  it("allows no mode with set-uid or set-gid bits, where there is a mode", () => {
    const modeAt: [string, number][] = [
      ["chmod", 1],
      ["fchmod", 1],
      ["fchmodat", 2],
      ["fchmodat2", 2],
      ["creat", 1],
      ["mknod", 1],
      ["mknodat", 2],
    ];
    for (const [name, index] of modeAt.filter(([known]) => special.has(known))) {
      const withMode = (mode: number): number => answer(name, ...Array<number>(index).fill(0xffff), mode);
      for (const mode of [0o4755, 0o2755, 0o6000, 0o106755]) expect(withMode(mode), name).toBe(EPERM);
      for (const mode of [0, 0o755, 0o1777, 0o100644]) expect(withMode(mode), name).toBe(ALLOW);
    }
    const opens: [string, number[]][] = [
      ["openat", [3, 0]],
      ...(special.has("open") ? [["open", [0]] as [string, number[]]] : []),
    ];
    for (const [name, before] of opens) {
      const open = (flags: number, mode: number): number => answer(name, ...before, flags, mode);
      for (const flags of [0o100, 0o1101, 0o20200000]) {
        expect([open(flags, 0o4755), open(flags, 0o2644), open(flags, 0o666)]).toEqual([EPERM, EPERM, ALLOW]);
      }
      // Without a new file there is no mode, and the register may hold anything.
      expect(open(0, 0o7777)).toBe(ALLOW);
    }
  });

  it("allows sockets and personalities that stay inside", () => {
    for (const family of [1, 2, 10, 16, 39]) expect(answer("socket", family)).toBe(ALLOW);
    for (const family of [38, 40]) expect(answer("socket", family)).toBe(EPERM);
    for (const value of [0, 8, 0x20000, 0xffffffff]) expect(answer("personality", value)).toBe(ALLOW);
    expect(answer("personality", 0x400000)).toBe(EPERM);
  });
});

it("is not there for a processor whose numbers are not known", () => {
  expect(systemCallFilter("riscv64")).toBeUndefined();
});
