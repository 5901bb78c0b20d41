/** Answers those who operate the server: whether it lives, whether it can work, and its numbers. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { RunStatistics } from "../../runs/ports.ts";
import { allows } from "../../runs/scopes.ts";
import type { AuthenticatedRequest } from "./stateless.ts";
import { hasMethod, sendError } from "./request.ts";

export interface OperationsOptions {
  /** Absent: there are no numbers of runs. */
  statistics: (() => Promise<RunStatistics>) | undefined;
  /** Opens runs and storage; fails unless runs can be stored. Absent: the server is always ready. */
  assertReady: (() => Promise<void>) | undefined;
  clock: Clock;
  sessions: () => number;
  logger: Logger;
}

/** Answers `/healthz`, `/readyz` and `/metrics`, and keeps the counters. */
export class Operations {
  readonly requests = new Counter("requests_total", "Answered HTTP requests by status code.", "code");
  readonly refusals = new Counter(
    "auth_refusals_total",
    "Requests that authentication or a missing scope refused, by reason.",
  );
  readonly readersCut = new Counter(
    "readers_cut_total",
    "Connections closed because their client did not read, by reason.",
  );
  readonly #options: OperationsOptions;
  #asked: { at: number; ready: Promise<boolean> } | undefined;
  /** True: reports the server as not ready, so that load balancers send nothing more, and answers what still comes. */
  isLeaving = false;
  /** True: reports the server as not ready. */
  isClosing = false;

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /**
   * Answers `/healthz` and `/readyz`, or returns false. They come before every check, because probes name the
   * server by its address and have no token; so the answers are only yes or no.
   */
  async probe(request: AuthenticatedRequest, response: ServerResponse, path: string): Promise<boolean> {
    if (path !== "/healthz" && path !== "/readyz") return false;
    if (!hasMethod(request, response, "GET", "HEAD")) return true;
    const fine = path === "/healthz" || (await this.#ready());
    sendText(response, fine ? 200 : 503, fine ? "ok\n" : "not ready\n", "text/plain; charset=utf-8");
    return true;
  }

  /** Answers `/metrics`, to whoever may read. */
  async metrics(request: AuthenticatedRequest, response: ServerResponse): Promise<void> {
    if (!hasMethod(request, response, "GET", "HEAD")) return;
    if (!allows(request.auth, "read"))
      return sendError(response, 403, -32000, "Metrics need a token with the scope read");
    const { statistics, sessions } = this.#options;
    const { rss, heapUsed } = process.memoryUsage();
    const begun = Date.now() / 1000 - process.uptime();
    const metrics = [
      ...(statistics === undefined ? [] : runMetrics(await statistics(), Date.now())),
      ...[this.requests, this.refusals, this.readersCut].map((counter) => counter.metric()),
      gauge("deepagent_http_sessions", "Open sessions of 2025-era clients.", sessions()),
      // Named as Prometheus' own client libraries name them.
      gauge("process_resident_memory_bytes", "Resident memory size in bytes.", rss),
      gauge("nodejs_heap_size_used_bytes", "Process heap size used from Node.js in bytes.", heapUsed),
      gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", begun),
    ];
    sendText(response, 200, metricsText(metrics), "text/plain; version=0.0.4; charset=utf-8");
  }

  async #ready(): Promise<boolean> {
    if (this.isClosing || this.isLeaving) return false;
    const { clock, assertReady, logger } = this.#options;
    const now = clock();
    // Caches the answer briefly, because anyone may ask as often as they like.
    if (this.#asked === undefined || now - this.#asked.at >= 1000) {
      const checked = Promise.resolve(assertReady?.()).then(() => true);
      const ready = checked.catch((error: unknown) => {
        logger.warn("http.not_ready", { error });
        return false;
      });
      this.#asked = { at: now, ready };
    }
    return this.#asked.ready;
  }
}

function sendText(response: ServerResponse, status: number, text: string, type: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
  response.end(text);
}

/** One metric in Prometheus' text format: name, meaning, and a value for each set of labels. */
interface Metric {
  name: string;
  help: string;
  type: "counter" | "gauge";
  values: readonly { labels?: Readonly<Record<string, string>>; value: number }[];
}

/** Counts by the values of one label. `name`: without the beginning that all of them have. */
export class Counter {
  readonly #counts = new Map<string, number>();
  readonly #about: [name: string, help: string, label: string];

  constructor(name: string, help: string, label = "reason") {
    this.#about = [`deepagent_http_${name}`, help, label];
  }

  count(value: string): void {
    this.#counts.set(value, (this.#counts.get(value) ?? 0) + 1);
  }

  metric(): Metric {
    const [name, help, label] = this.#about;
    const counts = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    const values = counts.map(([value, count]) => ({ labels: { [label]: value }, value: count }));
    return { name, help, type: "counter", values };
  }
}

function runMetrics(statistics: RunStatistics, now: number): Metric[] {
  const { runs, pendingApprovals, waiting, waitingSince = now, atWork, newsLagMs } = statistics;
  const oldest = Math.max(0, now - waitingSince) / 1000;
  return [
    {
      name: "deepagent_runs",
      help: "Runs in the storage by status.",
      type: "gauge",
      values: Object.entries(runs).map(([status, value]) => ({ labels: { status }, value })),
    },
    gauge("deepagent_approvals_pending", "Approvals that wait for a person.", pendingApprovals),
    gauge("deepagent_runs_waiting", "Runs that wait for a server.", waiting),
    gauge("deepagent_runs_waiting_oldest_seconds", "How long the first of them has waited.", oldest),
    gauge("deepagent_runs_at_work", "Runs that servers work on.", atWork),
    ...(newsLagMs === undefined
      ? []
      : [gauge("deepagent_news_lag_seconds", "How long changes take to be heard.", newsLagMs / 1000)]),
  ];
}

const gauge = (name: string, help: string, value: number): Metric => ({
  name,
  help,
  type: "gauge",
  values: [{ value }],
});

/** The text exposition format, version 0.0.4. */
export const metricsText = (metrics: readonly Metric[]): string =>
  metrics
    .flatMap(({ name, help, type, values }) => [
      `# HELP ${name} ${escaped(help)}`,
      `# TYPE ${name} ${type}`,
      ...values.map(({ labels = {}, value }) => {
        const pairs = Object.entries(labels).map(
          ([label, text]) => `${label}="${escaped(text).replaceAll('"', String.raw`\"`)}"`,
        );
        return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`;
      }),
    ])
    .map((line) => `${line}\n`)
    .join("");

const escaped = (text: string): string =>
  text.replaceAll("\\", String.raw`\\`).replaceAll("\n", String.raw`\n`);
