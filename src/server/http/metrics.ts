import type { RunStatistics } from "../../runs/ports.ts";

/** One metric in Prometheus' text format: name, meaning, and a value for each set of labels. */
export interface Metric {
  name: string;
  help: string;
  type: "counter" | "gauge";
  values: readonly { labels?: Readonly<Record<string, string>>; value: number }[];
}

/** Counts by the values of one label. */
export class Counter {
  readonly #about: { name: string; help: string; label: string };
  readonly #counts = new Map<string, number>();

  constructor(about: { name: string; help: string; label: string }) {
    this.#about = about;
  }

  count(value: string): void {
    this.#counts.set(value, (this.#counts.get(value) ?? 0) + 1);
  }

  metric(): Metric {
    const { label, ...about } = this.#about;
    const counts = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    const values = counts.map(([value, count]) => ({ labels: { [label]: value }, value: count }));
    return { ...about, type: "counter", values };
  }
}

/** Counts answers of the HTTP server. */
export const requestCounter = (): Counter =>
  new Counter({
    name: "deepagent_http_requests_total",
    help: "Answered HTTP requests by status code.",
    label: "code",
  });

/** Counts requests that were refused for their credentials. */
export const refusalCounter = (): Counter =>
  new Counter({
    name: "deepagent_http_auth_refusals_total",
    help: "Requests that authentication or a missing scope refused, by reason.",
    label: "reason",
  });

export function runMetrics({ runs, pendingApprovals }: RunStatistics): Metric[] {
  return [
    {
      name: "deepagent_runs",
      help: "Runs in the data directory by status.",
      type: "gauge",
      values: Object.entries(runs).map(([status, value]) => ({ labels: { status }, value })),
    },
    gauge("deepagent_approvals_pending", "Approvals that wait for a person.", pendingApprovals),
  ];
}

/** Named as Prometheus' own client libraries name them. */
export function processMetrics(): Metric[] {
  const { rss, heapUsed } = process.memoryUsage();
  const startedAt = Date.now() / 1000 - process.uptime();
  return [
    gauge("process_resident_memory_bytes", "Resident memory size in bytes.", rss),
    gauge("nodejs_heap_size_used_bytes", "Process heap size used from Node.js in bytes.", heapUsed),
    gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", startedAt),
  ];
}

export function gauge(name: string, help: string, value: number): Metric {
  return { name, help, type: "gauge", values: [{ value }] };
}

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The text exposition format, version 0.0.4. */
export function metricsText(metrics: readonly Metric[]): string {
  return metrics
    .flatMap(({ name, help, type, values }) => [
      `# HELP ${name} ${help.replaceAll("\\", String.raw`\\`).replaceAll("\n", String.raw`\n`)}`,
      `# TYPE ${name} ${type}`,
      ...values.map(({ labels = {}, value }) => `${name}${labelText(labels)} ${value}`),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string =>
  value
    .replaceAll("\\", String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll("\n", String.raw`\n`);
