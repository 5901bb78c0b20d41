/** Reads pages of the web as text: redirects, robots.txt, limits, and the form of each type of content. */
import type { IncomingMessage } from "node:http";
import { type Clock, systemClock } from "../core/clock.ts";
import { defined, parsedUrl } from "../core/unknown.ts";
import { NewestOf } from "../core/newest-of.ts";
import { headOf, oneLine } from "../core/text.ts";
import { type Body, ACCEPTED_CODINGS, readBody } from "./body.ts";
import { type Conversion, htmlToMarkdown, pdfToText } from "./convert.ts";
import failures from "./failures.json" with { type: "json" };
import { type Network, WebProblem, followRedirects, request, secondsToWait } from "./request.ts";
import { type RobotsRules, MAX_ROBOTS_BYTES, readRobots } from "./robots.ts";
import { MAX_URL, displayHost, urlProblem } from "./url.ts";
import { orElse } from "../core/errors.ts";

/** Bounds of reading one page. */
const WEB_LIMITS = {
  /** Bytes of a body, decompressed. */
  bytes: 10 * 1024 * 1024,
  /** Time for a page with all its redirects, in milliseconds. */
  timeMs: 30_000,
  redirects: 5,
  /** Time for turning a page into text, in milliseconds. */
  convertMs: 15_000,
  /** Characters of the text. */
  characters: 2_000_000,
};

export type WebLimits = typeof WEB_LIMITS;

export interface WebPage {
  /** Its address, after redirects. */
  url: string;
  title?: string;
  /** Milliseconds since the epoch. */
  retrieved: number;
  text: string;
  /** One sentence each: omissions. */
  notes: readonly string[];
}

/** Reads pages, and caches the rules of robots.txt for an hour. */
export class PageReader {
  readonly #network: Network;
  readonly #userAgent: string;
  readonly #limits: WebLimits;
  readonly #clock: Clock;
  readonly #robots = new NewestOf<{ rules: Promise<RobotsRules>; until: number }>(200);

  /** `userAgent`: name and version of this program. */
  constructor(
    options: { network: Network; userAgent: string } & { limits?: Partial<WebLimits>; clock?: Clock },
  ) {
    const { network, userAgent, limits, clock = systemClock } = options;
    this.#network = network;
    this.#userAgent = userAgent;
    this.#limits = { ...WEB_LIMITS, ...limits };
    this.#clock = clock;
  }

  /** Reads one page. @throws WebProblem */
  async read(
    url: URL,
    { signal, follows }: { signal: AbortSignal; follows: (to: URL) => boolean },
  ): Promise<WebPage> {
    const timed = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.timeMs)]);
    try {
      let [next, before]: [URL, URL?] = [url];
      for (let forwards = 0; ; forwards += 1) {
        const { at, incoming } = await followRedirects(
          next,
          this.#limits.redirects,
          async (to, from = before) => {
            if (from) refuseRedirect(to, from, urlProblem(to, this.#network.isNamed), follows(to));
            await this.#askRobots(to, timed);
            return this.#get(to, timed);
          },
        );
        const { forward, ...page } = await this.#readPage(at, incoming, signal);
        // Some pages only forward to another. Others reload themselves, or show a text first.
        const to = page.text.length < 1000 ? parsedUrl(forward ?? "") : undefined;
        if (to) to.hash = "";
        if (!to || to.href === at.href || forwards === this.#limits.redirects)
          return { url: at.href, retrieved: this.#clock(), ...page };
        [next, before] = [to, at];
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!timed.aborted) throw error;
      const seconds = this.#limits.timeMs / 1000;
      throw new WebProblem("timeout", `${displayHost(url)} did not send the page within ${seconds} s.`);
    }
  }

  /** Reads an answer. @throws WebProblem with the page that the server sends to explain a failure */
  async #readPage(at: URL, incoming: IncomingMessage, signal: AbortSignal) {
    const failure = statusProblem(incoming, at);
    // Media are refused by their type, before their bodies are read.
    const { kind, name } = readContentType(incoming.headers["content-type"], Buffer.alloc(0));
    if (kind === "other" || (failure && kind === "pdf")) {
      incoming.destroy();
      throw failure ?? otherType(at, name);
    }
    const limit = failure ? 256 * 1024 : this.#limits.bytes;
    const page = readBody(incoming, at, limit).then((body) => this.#convert(at, incoming, body, signal));
    if (!failure) return page;
    failure.explanation = headOf((await page.catch(() => undefined))?.text ?? "", 4000);
    throw failure;
  }

  #get(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const headers = {
      "user-agent": this.#userAgent,
      accept:
        "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, application/pdf;q=0.7, */*;q=0.1",
      "accept-encoding": ACCEPTED_CODINGS,
    };
    return request(url, { network: this.#network, headers, signal });
  }

  async #askRobots(url: URL, signal: AbortSignal): Promise<void> {
    const now = this.#clock();
    let known = this.#robots.get(url.origin);
    if (known === undefined || known.until <= now) {
      known = { rules: this.#readRobots(url), until: now + 3_600_000 };
      this.#robots.keep(url.origin, known);
    }
    const rules = await known.rules;
    signal.throwIfAborted();
    if (rules(url)) return;
    const message = `robots.txt of ${displayHost(url)} does not let programs read this page. Use another source.`;
    throw new WebProblem("robots", message);
  }

  /** Allows all where there is no robots.txt, or none that can be read in time. */
  async #readRobots(url: URL): Promise<RobotsRules> {
    const signal = AbortSignal.timeout(Math.min(5000, this.#limits.timeMs / 2));
    const first = new URL("/robots.txt", url);
    try {
      const { at, incoming } = await followRedirects(first, this.#limits.redirects, async (to) => {
        if (to.host !== first.host || urlProblem(to, this.#network.isNamed) !== undefined)
          throw new WebProblem("redirected", "robots.txt is elsewhere");
        return this.#get(to, signal);
      });
      const failure = statusProblem(incoming, at);
      if (failure) {
        incoming.destroy();
        throw failure;
      }
      const { bytes } = await readBody(incoming, at, MAX_ROBOTS_BYTES);
      const text = decodeBody({ bytes, isCut: true }, "utf-8", false);
      return readRobots(text, this.#userAgent.split("/", 1)[0] ?? "");
    } catch {
      // The request for the page itself will report a host that is private or cannot be reached.
      return () => true;
    }
  }

  async #convert(
    url: URL,
    { headers }: IncomingMessage,
    body: Body,
    signal: AbortSignal,
  ): Promise<Pick<WebPage, "title" | "text" | "notes"> & { forward?: string }> {
    const { bytes, isCut } = body;
    const { kind, charset, name } = readContentType(headers["content-type"], bytes);
    const { convertMs, characters } = this.#limits;
    const options = { timeMs: convertMs, signal };
    const mega = Math.floor(this.#limits.bytes / 2 ** 20);
    if (kind === "other") throw otherType(url, name);
    if (kind === "pdf" && isCut) throw new WebProblem("size", `The PDF is larger than ${mega} MB.`);
    const made: Conversion =
      kind === "pdf"
        ? await pdfToText(new Uint8Array(bytes), characters, options)
        : kind === "html"
          ? await htmlToMarkdown(decodeBody(body, charset, true), url.href, options)
          : { text: decodeBody(body, charset, /xml/.test(name)), notes: [] };
    if ("problem" in made)
      throw new WebProblem("content", `${shownUrl(url)} cannot be read. ${made.problem}`);
    const { length } = made.text;
    const cut = isCut ? [`Only its first ${mega} MB were read.`] : [];
    const long =
      length > characters ? [`Only the first ${characters} of its ${length} characters are here.`] : [];
    const title = oneLine(made.title ?? "", 300);
    return {
      ...(title === "" ? {} : { title }),
      ...defined({ forward: made.forward }),
      text: headOf(made.text, characters),
      notes: [...cut, ...made.notes, ...long],
    };
  }
}

const shownUrl = ({ href }: URL): string => oneLine(href, MAX_URL);

const otherType = (url: URL, name: string): WebProblem =>
  new WebProblem("type", `${shownUrl(url)} is ${name}, which is not read as text.`);

const FAILURES: ReadonlyMap<string, string> = new Map(Object.entries(failures));

/** @throws WebProblem if the redirect is not followed. */
function refuseRedirect(to: URL, from: URL, problem: string | undefined, follows: boolean): void {
  if (problem === undefined && follows) return;
  const where =
    problem === undefined
      ? `another host. If you need the page, call again with ${shownUrl(to)}`
      : `${shownUrl(to)}. ${problem}.`;
  throw new WebProblem("redirected", `${displayHost(from)} redirects to ${where}`);
}

/** The problem that the status of an answer stands for. */
function statusProblem({ statusCode: status = 0, headers }: IncomingMessage, url: URL) {
  if (status >= 200 && status < 300) return undefined;
  const what =
    FAILURES.get(String(status)) ?? (status >= 500 ? "has a problem of its own" : "did not send the page");
  const seconds = secondsToWait(headers["retry-after"]);
  const wait = seconds === undefined ? "" : ` Try again in ${seconds} s, or use another source.`;
  return new WebProblem("status", `${displayHost(url)} ${what} (HTTP ${status}).${wait}`);
}

export interface Content {
  kind: "html" | "pdf" | "text" | "other";
  charset?: string;
  /** Such as `text/html`, for people. */
  name: string;
}

/** Types that are text under another name than `text/…`. */
const TEXT_TYPES =
  /^(text\/.+|application\/(.+\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|x-sh|sql|graphql))$/;
/** Types that servers send for unknown files. */
const UNKNOWN_TYPES = ["", "application/octet-stream", "binary/octet-stream", "unknown/unknown"];

export function readContentType(header: string | undefined, bytes: Buffer): Content {
  const [type = "", ...parameters] = (header ?? "").split(";");
  const named = oneLine(type, 100).toLowerCase();
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  const found = {
    name: named === "" ? "of an unknown type" : named,
    ...(charset === undefined ? {} : { charset }),
  };
  const head = bytes.toString("latin1", 0, 4096);
  if (named === "application/pdf" || (UNKNOWN_TYPES.includes(named) && head.startsWith("%PDF-")))
    return { kind: "pdf", ...found };
  if (named === "text/html" || named === "application/xhtml+xml") return { kind: "html", ...found };
  if (!UNKNOWN_TYPES.includes(named)) return { kind: TEXT_TYPES.test(named) ? "text" : "other", ...found };
  if (/^\s*(<!--[\s\S]{0,1000}?-->\s*)?<(!doctype html|html|head|body)[\s>]/i.test(head))
    return { kind: "html", ...found };
  // oxlint-disable-next-line no-control-regex -- it matches control characters
  return { kind: /[\u0000-\u0008\u000e-\u001a]/.test(head) ? "other" : "text", ...found };
}

/** The text of a body. `named`: the charset of its content type; `isMarkup`: it may name one itself. */
export function decodeBody({ bytes, isCut }: Body, named: string | undefined, isMarkup: boolean): string {
  const head = bytes.toString("hex", 0, 3);
  const decoder =
    findDecoder(BYTE_ORDER_MARKS.find(([mark]) => head.startsWith(mark))?.[1]) ??
    findDecoder(named) ??
    (isMarkup ? findDecoder(declaredCharset(bytes)) : undefined) ??
    orElse(() => {
      new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
      return new TextDecoder("utf-8");
    }, new TextDecoder("windows-1252"));
  // Node 20 reads windows-1252 as Latin-1, without its curly quotes, unless it is a stream. A body that was cut may end
  // inside a character, which is then left out.
  const text = decoder.decode(bytes, { stream: true }) + (isCut ? "" : decoder.decode());
  return text.replaceAll("\0", "");
}

/** Encodings by the mark at the beginning in hexadecimal digits. It counts before all else. */
const BYTE_ORDER_MARKS = [
  ["efbbbf", "utf-8"],
  ["feff", "utf-16be"],
  ["fffe", "utf-16le"],
] as const;

/** Returns undefined for a name that is not an encoding. */
const findDecoder = (label: string | undefined): InstanceType<typeof TextDecoder> | undefined =>
  label === undefined ? undefined : orElse(() => new TextDecoder(label), undefined);

function declaredCharset(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 1024);
  const [, label] =
    /<meta\s[^<>]{0,500}?charset\s*=[\s"']*([\w.:-]+)/i.exec(head) ??
    /^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)/i.exec(head) ??
    [];
  // It could not have been read if it were true.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}
