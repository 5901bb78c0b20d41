import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import {
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo } from "node:net";

interface Execution {
  child: ChildProcess;
  chunks: Record<"stdout" | "stderr", Buffer[]>;
  exit: Promise<unknown>;
  exitStatus?: number;
}

/** Runloop's service as its client speaks to it, over HTTP/2; devboxes are shells of this machine. */
export class RunloopService {
  readonly requests: string[] = [];
  readonly running = new Set<string>();
  readonly #executions: Execution[] = [];
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.on("session", (session) => void this.#sessions.add(session));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo; // it listens on TCP
    return `http://127.0.0.1:${port}`;
  }

  close(): void {
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
    for (const { child } of this.#executions) child.kill("SIGKILL");
  }

  async #answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    this.requests.push(`${request.method} ${pathname.replace(/executions\/\d+/, "executions/N")}`);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(Buffer.from(piece));
    const body = Buffer.concat(pieces);
    if (request.headers.authorization !== `Bearer ${this.#key}`) return send(response, 401, {});
    const [, id = "", action = "", number = "", sub = ""] =
      /^\/v1\/devboxes\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? [];
    if (id === "create_and_await_running") {
      const made = `dbx_${this.running.size}`;
      this.running.add(made);
      return send(response, 200, { id: made, status: "running" });
    }
    if (!this.running.has(id)) return send(response, 404, { message: "no such devbox" });
    if (action === "executions") return this.#execution(response, Number(number), sub);
    return this.#devbox(response, id, action, { body, type: request.headers["content-type"] ?? "" });
  }

  async #devbox(
    response: Http2ServerResponse,
    id: string,
    action: string,
    { body, type }: { body: Buffer; type: string },
  ): Promise<void> {
    switch (action) {
      case "":
        return send(response, 200, { id, status: "running" });
      case "shutdown":
        this.running.delete(id);
        return send(response, 200, { id, status: "shutdown" });
      case "execute_async":
        return send(response, 200, { execution_id: `${this.#start(fieldsOf(body)["command"] ?? "")}` });
      case "upload_file": {
        const form = await new Response(new Uint8Array(body), {
          headers: { "content-type": type },
        }).formData();
        const [path, file] = [form.get("path"), form.get("file")];
        if (typeof path !== "string" || !(file instanceof File)) return send(response, 400, {});
        await writeFile(path, new Uint8Array(await file.arrayBuffer()));
        return send(response, 200, {});
      }
      case "download_file":
        response.writeHead(200, { "content-type": "application/octet-stream" });
        return void response.end(await readFile(fieldsOf(body)["path"] ?? ""));
      default:
        return send(response, 404, {});
    }
  }

  #start(command: string): number {
    const child = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
    const execution: Execution = { child, chunks: { stdout: [], stderr: [] }, exit: once(child, "exit") };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].on("data", (chunk: Buffer) => execution.chunks[stream].push(chunk));
    }
    child.once("exit", (code) => (execution.exitStatus = code ?? 137));
    return this.#executions.push(execution) - 1;
  }

  async #execution(response: Http2ServerResponse, number: number, action: string): Promise<void> {
    const execution = this.#executions[number];
    if (execution === undefined) return send(response, 404, {});
    if (action === "wait_for_status") {
      // Like the service, which lets nobody wait for long, only sooner.
      const patience = new Promise((resolve) => setTimeout(resolve, 100));
      await Promise.race([execution.exit, patience]);
      if (execution.exitStatus === undefined) return send(response, 408, { message: "not yet" });
      return send(response, 200, { status: "completed", exit_status: execution.exitStatus });
    }
    const stream = action === "stream_stdout_updates" ? "stdout" : "stderr";
    response.writeHead(200, { "content-type": "text/event-stream" });
    let offset = 0;
    const write = (chunk: Buffer): void => {
      offset += chunk.length;
      response.write(`data: ${JSON.stringify({ output: chunk.toString("utf8"), offset })}\n\n`);
    };
    for (const chunk of execution.chunks[stream]) write(chunk);
    const source = execution.child[stream];
    source?.on("data", write);
    if (source?.readableEnded === false) await Promise.race([once(source, "end"), once(response, "close")]);
    source?.off("data", write);
    response.end();
  }
}

function send(response: Http2ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** The fields of a JSON body, all of them texts here. */
const fieldsOf = (body: Buffer): Record<string, string> =>
  JSON.parse(body.toString("utf8")) as Record<string, string>;
