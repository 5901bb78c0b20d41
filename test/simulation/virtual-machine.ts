/**
 * The clocks, timers and random numbers of this process, replaced by those of a seeded simulation. It must be installed
 * before the product is loaded. Servers of one world share the process: each has a place, which everything that it
 * begins belongs to.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import crypto from "node:crypto";
import fs from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { performance } from "node:perf_hooks";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import { draws } from "./random.ts";

export { generator } from "./random.ts";

/** A process of the world. */
export interface Place {
  readonly name: string;
  /** It was killed: its timers never fire, and its storage answers nothing. */
  isDead: boolean;
  /** It is stopped until this time of the world: nothing of it happens before. */
  stoppedUntil: number;
  /** Milliseconds by which its system clock is ahead of the world's time. */
  aheadMs: number;
}

interface Item {
  at: number;
  run: () => void;
  place: Place | undefined;
  everyMs?: number;
  /** Immediates of a killed process still run: what they lead to is silent. */
  isImmediate: boolean;
  isCancelled: boolean;
}

/** Beginning of each world, in milliseconds since the epoch. */
export const BEGINNING = 1_800_000_000_000;
/** Longest time that an answer about a file takes, in milliseconds. */
const FILE_MS = 50;
const realImmediate = setImmediate;
const places = new AsyncLocalStorage<Place>();

let now = BEGINNING;
let items: Item[] = [];
let random = draws(0);
/** Numbers of the scheduler, so that the world's own draws do not depend on the order of turns. */
let drawTurn = draws(0);

/** Begins a world. */
export function seedWith(seed: number): void {
  now = BEGINNING;
  items = [];
  random = draws(Math.imul(seed, 0x85ebca6b) | 0);
  drawTurn = draws(Math.imul(seed, 0xc2b2ae35) | 0);
}

export const worldTime = (): number => now;
export const inPlace = <T>(place: Place | undefined, work: () => T): T =>
  place === undefined ? places.exit(work) : places.run(place, work);
export const currentPlace = (): Place | undefined => places.getStore();

class Handle {
  readonly item: Item;
  constructor(item: Item) {
    this.item = item;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
  [Symbol.dispose](): void {
    this.item.isCancelled = true;
  }
}

function add(run: () => void, ms = 0, options: { everyMs?: number; isImmediate?: boolean } = {}): Handle {
  const item: Item = {
    at: now + Math.max(ms || 0, 0),
    run,
    place: places.getStore(),
    isImmediate: options.isImmediate ?? false,
    isCancelled: false,
    ...(options.everyMs === undefined ? {} : { everyMs: Math.max(options.everyMs, 1) }),
  };
  items.push(item);
  return new Handle(item);
}

/** Resolves at a later turn, `ms` from now at the earliest, in the order that the seed draws. */
export const later = (ms = 0): Promise<void> => new Promise((resolve) => void add(resolve, ms));

function isReady({ at, place, isImmediate }: Item): boolean {
  if (at > now) return false;
  return isImmediate || place === undefined || place.stoppedUntil <= now;
}

const dueTime = ({ at, place }: Item): number => Math.max(at, place?.stoppedUntil ?? 0);

/**
 * Lets all promises settle, then runs one of the items that are ready, whichever the seed draws, or moves the time to
 * the next one. Resolves with false if nothing is left.
 */
export const turn = (): Promise<boolean> =>
  new Promise((resolve) => {
    realImmediate(() => {
      items = items.filter(
        ({ isCancelled, place, isImmediate }) => !isCancelled && (isImmediate || place?.isDead !== true),
      );
      let ready = items.filter(isReady);
      if (ready.length === 0) {
        if (items.length === 0) return resolve(false);
        now = Math.max(
          now,
          items.reduce((first, item) => Math.min(first, dueTime(item)), Infinity),
        );
        ready = items.filter(isReady);
      }
      const item = ready[Math.floor(drawTurn() * ready.length)];
      if (item === undefined) return resolve(true);
      if (item.everyMs === undefined) items.splice(items.indexOf(item), 1);
      else item.at = now + item.everyMs;
      inPlace(item.place, item.run);
      resolve(true);
    });
  });

function bytes(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

function uuid(): `${string}-${string}-${string}-${string}-${string}` {
  const hex = bytes(16).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function abortable<T>(
  value: T,
  signal: AbortSignal | undefined,
  begin: (done: () => void) => Handle,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const reason = (): Error =>
      Object.assign(new Error("The operation was aborted", { cause: signal?.reason }), {
        name: "AbortError",
      });
    if (signal?.aborted) return reject(reason());
    const handle = begin(() => resolve(value));
    signal?.addEventListener("abort", () => {
      handle.item.isCancelled = true;
      reject(reason());
    });
  });
}

/** Replaces what Node offers. There is no way back: a simulation has a process of its own. */
export function install(): void {
  const cancel = (handle: unknown): void => {
    if (handle instanceof Handle) handle.item.isCancelled = true;
  };
  const globals = {
    setTimeout: (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
      add(() => run(...args), ms),
    setInterval: (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
      add(() => run(...args), ms, { everyMs: ms }),
    setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
      add(() => run(...args), 0, { isImmediate: true }),
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  };
  Object.assign(globalThis, globals);
  Object.assign(timers, globals);
  Object.assign(timersPromises, {
    setTimeout: (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      abortable(value, signal, (done) => add(done, ms)),
    setImmediate: (value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      abortable(value, signal, (done) => add(done, 0, { isImmediate: true })),
  });
  const RealDate = Date;
  const systemTime = (): number => Math.floor(now + (places.getStore()?.aheadMs ?? 0));
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [string]) {
      super(...((args.length === 0 ? [systemTime()] : args) as [number]));
    }
    static override now = systemTime;
  } as DateConstructor;
  Object.assign(performance, { now: () => now - BEGINNING });
  Math.random = () => random();
  const fill = <T extends NodeJS.ArrayBufferView | null>(array: T): T => {
    if (array !== null)
      Buffer.from(array.buffer, array.byteOffset, array.byteLength).set(bytes(array.byteLength));
    return array;
  };
  Object.assign(crypto, { randomUUID: uuid, randomBytes: bytes, randomFillSync: fill });
  Object.assign(globalThis.crypto, { getRandomValues: fill, randomUUID: uuid });
  // Functions with callbacks that are bound when code is loaded.
  for (const name of ["readdir", "fsync", "fdatasync", "writeFile", "read", "write"] as const) {
    const atOnce: (...args: never[]) => unknown = fs[`${name}Sync`];
    const called = (...args: unknown[]): void => {
      const done = args.pop() as (error: unknown, result?: unknown) => void;
      add(() => {
        try {
          const result: unknown = Reflect.apply(atOnce, fs, args);
          done(null, result);
        } catch (error) {
          done(error);
        }
      });
    };
    Reflect.set(fs, name, called);
  }
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    add(() => controller.abort(new DOMException("The operation timed out", "TimeoutError")), ms);
    return controller.signal;
  };
  syncBuiltinESMExports();
}

/**
 * Files are read and written at once, and their answers come late: in the order of the seed, and never to the dead. To
 * be called when all code is loaded.
 */
export function installFiles(): void {
  for (const name of Object.keys(fsPromises)) {
    const atOnce: unknown = Reflect.get(fs, `${name}Sync`);
    if (typeof atOnce !== "function" || name === "open" || name === "opendir") continue;
    const inTime = async (...args: unknown[]): Promise<unknown> => {
      // At once, as the next system call: no process is stopped between a check and what follows it.
      const result: unknown = Reflect.apply(atOnce, fs, args);
      await later(random() * FILE_MS);
      return result;
    };
    Reflect.set(fsPromises, name, inTime);
  }
  syncBuiltinESMExports();
}
