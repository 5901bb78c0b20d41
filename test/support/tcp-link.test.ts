import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { TcpLink } from "./tcp-link.ts";

test("what is sent arrives in its order, also when the link becomes faster", async () => {
  const received: string[] = [];
  const server = createServer((socket) => socket.on("data", (chunk) => received.push(String(chunk))));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const link = await TcpLink.open((server.address() as AddressInfo).port);
  const client = connect(link.port, "127.0.0.1");
  await once(client, "connect");
  for (const [at, lateMs] of [60, 20, 0, 0].entries()) {
    link.lateMs = lateMs;
    client.write(`${at} `);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await expect.poll(() => received.join("")).toBe("0 1 2 3 ");
  client.destroy();
  link.close();
  server.close();
});
