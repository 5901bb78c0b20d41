import { unreadable } from "./errors.ts";

declare const jsonOf: unique symbol;

/** Text that holds a value of type T as JSON. Only `toJson` makes it, so reading it gives a T. */
export type Json<T> = string & { readonly [jsonOf]: T };

export function toJson<T>(value: T): Json<T> {
  // `jsonOf` exists in types only.
  return JSON.stringify(value) as Json<T>;
}

export function fromJson<T>(json: Json<T>): T {
  try {
    // Written by `toJson` from a T.
    return JSON.parse(json) as T;
  } catch (thrown) {
    throw unreadable(thrown, "the database of runs");
  }
}
