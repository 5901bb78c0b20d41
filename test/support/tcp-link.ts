import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

interface Pair {
  near: Socket;
  far: Socket;
}

/** The network between a process and a server: a port whose connections go to another port. */
export class TcpLink {
  readonly port: number;
  /** Where connections go that are made from now on. */
  target: number;
  /** By how much everything is late that passes, in milliseconds. */
  lateMs = 0;
  readonly #pairs = new Set<Pair>();
  /** Connections that were made while the link was cut. */
  readonly #refused = new Set<Socket>();
  readonly #lost = new Set<Pair>();
  /** What was sent last to each socket, until it is there. */
  readonly #underWay = new Map<Socket, Promise<void>>();
  readonly #change: (sent: Buffer) => Buffer;
  readonly #close: () => void;
  #isCut = false;

  private constructor(port: number, target: number, change: (sent: Buffer) => Buffer, close: () => void) {
    this.port = port;
    this.target = target;
    this.#change = change;
    this.#close = close;
  }

  /** `change` gets what is sent to the server, and gives what comes there. */
  static async open(target: number, change = (sent: Buffer): Buffer => sent): Promise<TcpLink> {
    const server = createServer((near) => link.#join(near));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // it listens on TCP
    const link = new TcpLink(port, target, change, () => void server.close());
    return link;
  }

  /** `url`, an address of the server, by way of this link. */
  to(url: string): string {
    return url.replace(/:\d+(?=\/|$)/, `:${this.port}`);
  }

  /** Breaks connections, by default all. */
  breakConnections(isBroken: () => boolean = () => true): void {
    for (const { near, far } of this.#pairs) {
      if (!isBroken()) continue;
      near.resetAndDestroy();
      far.destroy();
    }
  }

  /**
   * Lets nothing pass until `mend`, and tells nobody. `held`: it passes then, as packets that are sent again.
   * `lost`: the connections of now stay silent for ever.
   */
  cut(how: "held" | "lost"): void {
    this.#isCut = true;
    for (const pair of this.#pairs) {
      pair.near.pause();
      pair.far.pause();
      if (how === "held") continue;
      this.#pairs.delete(pair);
      this.#lost.add(pair);
      // Nobody hears that the other one has gone.
      for (const socket of [pair.near, pair.far]) socket.removeAllListeners("close");
    }
  }

  mend(): void {
    this.#isCut = false;
    for (const socket of this.#refused) socket.destroy();
    this.#refused.clear();
    for (const { far } of this.#lost) far.destroy();
    for (const { near, far } of this.#pairs) {
      near.resume();
      far.resume();
    }
  }

  close(): void {
    this.#close();
    this.mend();
    this.breakConnections();
    for (const { near } of this.#lost) near.destroy();
  }

  #join(near: Socket): void {
    near.on("error", () => undefined);
    if (this.#isCut) {
      this.#refused.add(near);
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    // A link that is only slow sends each packet when it comes.
    near.setNoDelay(true);
    far.setNoDelay(true);
    far.on("error", () => undefined);
    const pair = { near, far };
    this.#pairs.add(pair);
    near.on("data", (chunk) => this.#pass(far, this.#change(chunk)));
    far.on("data", (chunk) => this.#pass(near, chunk));
    const end = (): void => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    near.on("close", end);
    far.on("close", end);
  }

  /** Nothing overtakes what was sent before it, also when the link becomes faster. */
  #pass(to: Socket, chunk: Buffer): void {
    const before = this.#underWay.get(to);
    if (this.lateMs === 0 && before === undefined) return void to.write(chunk);
    const pass = async (): Promise<void> => {
      await Promise.all([delay(this.lateMs), before]);
      to.write(chunk);
      if (this.#underWay.get(to) === passed) this.#underWay.delete(to);
    };
    const passed = pass();
    this.#underWay.set(to, passed);
  }
}
