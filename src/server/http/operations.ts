import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { RunStatistics } from "../../runs/ports.ts";
import { allows } from "../auth/scopes.ts";
import { type Counter, METRICS_TYPE, gauge, metricsText, processMetrics, runMetrics } from "./metrics.ts";
import type { AuthenticatedRequest } from "./modern.ts";
import { sendError } from "./request.ts";

/** How long an answer of `/readyz` holds. */
const READY_MS = 1000;
export const METRICS_PATH = "/metrics";

export interface OperationsOptions {
  /** Absent: there are no numbers of runs. */
  statistics: (() => Promise<RunStatistics>) | undefined;
  /** Opens runs and storage; fails unless runs can be stored. Absent: the server is always ready. */
  assertReady: (() => Promise<void>) | undefined;
  clock: Clock;
  requests: Counter;
  refusals: Counter;
  readersCut: Counter;
  /** Sessions open now. */
  sessions: () => number;
  logger: Logger;
}

/** Answers operators: whether the server lives, whether it can work, and its numbers. */
export class Operations {
  readonly #options: OperationsOptions;
  #closing = false;
  #asked: { at: number; ready: Promise<boolean> } | undefined;

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** Reports the server as not ready from now on, so that load balancers send nothing more. */
  closing(): void {
    this.#closing = true;
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  /**
   * Answers `/healthz` and `/readyz`, or returns false. They come before every check, because probes name the
   * server by its address and have no token; so the answers are only yes or no.
   */
  async probe(request: AuthenticatedRequest, response: ServerResponse, path: string): Promise<boolean> {
    if (path !== "/healthz" && path !== "/readyz") return false;
    if (!isRead(request, response)) return true;
    const fine = path === "/healthz" || (await this.#ready());
    sendText(response, fine ? 200 : 503, fine ? "ok\n" : "not ready\n", "text/plain; charset=utf-8");
    return true;
  }

  /** Answers `/metrics`, to whoever may read. */
  async metrics(request: AuthenticatedRequest, response: ServerResponse): Promise<void> {
    if (!isRead(request, response)) return;
    if (!allows(request.auth, "read")) {
      return sendError(response, 403, -32000, "Metrics need a token with the scope read");
    }
    const { statistics, requests, refusals, readersCut, sessions } = this.#options;
    const metrics = [
      ...(statistics === undefined ? [] : runMetrics(await statistics())),
      requests.metric(),
      refusals.metric(),
      readersCut.metric(),
      gauge("deepagent_http_sessions", "Open sessions of 2025-era clients.", sessions()),
      ...processMetrics(),
    ];
    sendText(response, 200, metricsText(metrics), METRICS_TYPE);
  }

  async #ready(): Promise<boolean> {
    if (this.#closing) return false;
    const now = this.#options.clock();
    // Caches the answer briefly, because anyone may ask as often as they like.
    if (this.#asked === undefined || now - this.#asked.at >= READY_MS) {
      this.#asked = { at: now, ready: this.#checkStorage() };
    }
    return this.#asked.ready;
  }

  async #checkStorage(): Promise<boolean> {
    try {
      await this.#options.assertReady?.();
      return true;
    } catch (error) {
      this.#options.logger.warn("http.not_ready", { error });
      return false;
    }
  }
}

function isRead({ method }: AuthenticatedRequest, response: ServerResponse): boolean {
  if (method === "GET" || method === "HEAD") return true;
  response.setHeader("allow", "GET, HEAD");
  sendError(response, 405, -32000, "Method not allowed");
  return false;
}

function sendText(response: ServerResponse, status: number, text: string, type: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
  response.end(text);
}
