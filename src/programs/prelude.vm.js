/**
 * Defines the functions of the program, and returns one that reports the end of its own promise. Arguments and answers
 * cross as JSON. A script ends with the value of its last statement, in an object.
 */
(function (call, write, localize, done, failed, names, order) {
  "use strict";
  const { parse, stringify } = JSON;
  const known = new Map();
  for (const name of parse(names)) {
    known.set(name, (args) => {
      // Made here, its stack names the line of the call.
      const failure = new Error();
      return call(name, args === undefined ? "{}" : (stringify(args) ?? "null")).then((answer) => {
        const { value, error } = parse(answer);
        if (error === undefined) return value;
        failure.message = error;
        throw failure;
      });
    });
  }
  const missing = (name) =>
    new Error("No tool is named '" + name + "'. Tools: " + [...known.keys()].join(", ") + ".");
  globalThis.tools = new Proxy(Object.freeze(Object.fromEntries(known)), {
    get(_, name) {
      if (typeof name === "symbol" || name === "then") return undefined;
      if (!known.has(name)) throw missing(name);
      return known.get(name);
    },
  });
  for (const [name, run] of known) if (!(name in globalThis)) globalThis[name] = run;
  // Runs the function that a program exports by default, as if it were a module.
  globalThis.exports = {};
  globalThis.require = (name) => {
    const instead = known.has("read_file") ? ", such as tools.read_file" : "";
    throw new Error(
      "A program cannot import '" + name + "'. All that it can use is in `tools`" + instead + ".",
    );
  };
  const shownAs = (value) => {
    if (value instanceof Map)
      return [...value.keys()].every((key) => typeof key === "string")
        ? Object.fromEntries(value)
        : [...value];
    if (value instanceof Set || (ArrayBuffer.isView(value) && value.length >= 0)) return [...value];
    if (value instanceof Error) return { name: value.name, message: value.message };
    if (value instanceof Promise) return "[a promise that was not awaited]";
    return value instanceof RegExp ? String(value) : value;
  };
  const toJson = (value) => {
    const open = [];
    return stringify(value, function (_, member) {
      while (open.length > 0 && open[open.length - 1].shown !== this) open.pop();
      if (typeof member === "bigint" || (typeof member === "number" && !Number.isFinite(member)))
        return Number.isSafeInteger(Number(member)) ? Number(member) : String(member);
      if (typeof member !== "object" || member === null) return member;
      if (open.some((one) => one.member === member)) return "[circular]";
      const shown = shownAs(member);
      if (typeof shown === "object") open.push({ shown, member });
      return shown;
    });
  };
  const textOf = (value) => (typeof value === "string" ? value : (toJson(value) ?? String(value)));
  const print = (...values) => write(values.map(textOf).join(" "));
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print, table: print };
  // The engine knows no locales.
  const define = (type, method, valueOf) =>
    Object.defineProperty(type.prototype, method, {
      value(...args) {
        const { value, error } = parse(localize(type.name, method, stringify([valueOf(this), ...args])));
        if (error !== undefined) throw new RangeError(error);
        return value;
      },
      configurable: true,
      writable: true,
    });
  define(Number, "toLocaleString", Number);
  define(BigInt, "toLocaleString", String);
  for (const method of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"])
    define(Date, method, Number);
  const ranks = new Map([...order].map((character, rank) => [character, rank]));
  const compare = (left, right) => {
    const [a, b] = [left.toLowerCase(), right.toLowerCase()];
    for (let at = 0; at < a.length && at < b.length; at++)
      if (a[at] !== b[at]) return ranks.get(a[at]) < ranks.get(b[at]) ? -1 : 1;
    if (a.length !== b.length) return a.length < b.length ? -1 : 1;
    return left === right ? 0 : left > right ? -1 : 1;
  };
  for (const method of ["localeCompare", "toLocaleUpperCase", "toLocaleLowerCase"])
    define(String, method, String);
  // Sorting compares often, and each call of the host takes time.
  const slow = String.prototype.localeCompare;
  String.prototype.localeCompare = function (other, ...choices) {
    const [left, right] = [String(this), String(other)];
    const isPlain = choices.length === 0 && /^[ -~]*$/.test(left) && /^[ -~]*$/.test(right);
    return isPlain ? compare(left, right) : slow.call(left, right, ...choices);
  };
  const reasonOf = (error) =>
    error instanceof Error
      ? error.name + ": " + error.message + (error.stack ? "\n" + error.stack : "")
      : "The program threw " + textOf(error);
  const settled = async (value) => {
    if (Array.isArray(value) && value.some((one) => one instanceof Promise)) return Promise.all(value);
    for (const key of value && Object.getPrototypeOf(value) === Object.prototype ? Object.keys(value) : [])
      if (value[key] instanceof Promise) value[key] = await value[key];
    return value;
  };
  return (main, isScript) =>
    main
      .then((value) => (isScript ? value.value : value))
      .then((value) => (typeof exports.default === "function" ? exports.default() : value))
      .then(settled)
      .then((value) => toJson(value) ?? "null")
      .then(done, (error) => failed(reasonOf(error)));
});
