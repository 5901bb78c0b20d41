import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { S3Files, S3Backend, type S3BackendOptions } from "../../../src/backends/stores/s3.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { freePort } from "../../support/free-port.ts";
import { BUCKET, type S3Server, startMoto, startS3rver } from "../../support/s3-servers.ts";

const at = "2026-01-01T00:00:00.000Z";
const text = (content: string) => ({ content, mimeType: "text/plain", created_at: at, modified_at: at });

describe("S3Backend", () => {
  let server: S3Server;
  let client: S3Client;
  beforeAll(async () => {
    server = await startS3rver();
    const { endpoint, credentials } = server;
    client = new S3Client({ endpoint, credentials, region: "us-east-1", forcePathStyle: true });
  });
  afterAll(async () => {
    client.destroy();
    await server.stop();
  });

  const open = (options: Partial<S3BackendOptions> = {}): S3Backend => {
    const { endpoint, credentials } = server;
    return new S3Backend({ bucket: BUCKET, endpoint, credentials, conditionalWrites: false, ...options });
  };
  const put = (Key: string, Body = "") =>
    client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body, ContentLength: Body.length }));
  const keys = async (Prefix: string) => {
    const listed = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix }));
    return (listed.Contents ?? []).map(({ Key }) => Key);
  };

  /** The failure of a write with these options. */
  const failure = async (options: Partial<S3BackendOptions>): Promise<unknown> => {
    const backend = open(options);
    const { error, code, cause } = await backend.write("/a.txt", "a");
    await backend.close();
    expect(code).toBe("backend_error");
    expect(cause).toBeInstanceOf(Error);
    return error;
  };

  it("declares what happens when two write", () => {
    expect(open().capabilities).toMatchObject({ writes: "last-writer-wins", lifetime: "persistent" });
    expect(open({ conditionalWrites: true }).capabilities?.writes).toBe("compare-and-set");
  });

  it("keeps files under keys that others can read", async () => {
    await open({ prefix: "team-a/" }).write("/notes/a.md", "a");
    expect(await keys("team-a")).toEqual(["team-a/notes/a.md"]);
    expect((await open({ prefix: "/team-a" }).read("/notes/a.md")).content).toBe("a");
    expect((await open({ prefix: "team" }).ls("/")).files).toEqual([]);
  });

  it("shows objects that others put there, and passes over keys that are no paths", async () => {
    await put("found/folder/");
    await put("found/a\\b.txt", "x");
    await put("found/c.txt", "needle");
    const backend = open({ prefix: "found" });
    expect((await backend.glob("**")).files?.map(({ path }) => path)).toEqual(["/c.txt"]);
    expect((await backend.readRaw("/c.txt")).data).toMatchObject({ content: "needle" });
  });

  it("does not write where conditions are ignored, unless the last writer may win", async () => {
    const backend = open({ prefix: "unsafe", conditionalWrites: true });
    expect((await backend.write("/a.txt", "a")).error).toBe(
      "'/a.txt' could not be accessed: the S3 server ignores conditional writes, so two writers could overwrite each other unnoticed; nothing was written. Set conditionalWrites to false if the last writer may win",
    );
    expect(await keys("unsafe")).toEqual([]);
    expect((await open({ prefix: "unsafe" }).write("/a.txt", "a")).error).toBeUndefined();
  });

  it("refuses files over the limit and passes them over in searches", async () => {
    await put("large/large.txt", "needle".padEnd(1_500_000, "."));
    const backend = open({ prefix: "large", maxFileSizeMb: 1 });
    expect(await backend.read("/large.txt")).toMatchObject({ code: "too_large" });
    expect(await backend.write("/b.txt", "x".repeat(1_500_000))).toMatchObject({ code: "too_large" });
    expect(await backend.grep("needle")).toMatchObject({ matches: [], skipped: 1 });
    expect((await backend.ls("/large.txt")).files).toMatchObject([{ size: 1_500_000 }]);
  });

  it("says what is wrong with the connection, without secrets", async () => {
    const credentials = { accessKeyId: "N0BODY", secretAccessKey: "wr0ng-secret" };
    expect(await failure({ credentials })).toBe(
      "'/a.txt' could not be accessed: the S3 server denies access to the bucket; check the credentials and their permissions",
    );
    expect(await failure({ bucket: "nowhere" })).toBe(
      "'/a.txt' could not be accessed: the bucket does not exist; create it or choose another",
    );
    const endpoint = `http://127.0.0.1:${await freePort()}`;
    expect(await failure({ endpoint })).toBe(
      "'/a.txt' could not be accessed: the S3 server cannot be reached (ECONNREFUSED); check that it runs and that endpoint and region are right",
    );
  });

  it("names the missing package, and works once it is there", async () => {
    const require = createRequire(import.meta.url);
    const { version } = require("@aws-sdk/client-s3/package.json") as { version: string };
    let isInstalled = false;
    const load = (name: string): Promise<unknown> =>
      isInstalled ? import(name) : Promise.reject(new Error(`Cannot find package '${name}'`));
    const backend = open({ prefix: "mended", load });
    expect((await backend.write("/a.txt", "a")).error).toBe(
      `'/a.txt' could not be accessed: S3Backend needs the package @aws-sdk/client-s3, which is not installed: run npm install @aws-sdk/client-s3@${version}`,
    );
    isInstalled = true;
    expect((await backend.write("/a.txt", "a")).error).toBeUndefined();
    await backend.close();
  });

  it.each<[string, Partial<S3BackendOptions>]>([
    ["an empty bucket", { bucket: "" }],
    ["a bucket that is an address", { bucket: "https://bucket.example" }],
    ["an endpoint without protocol", { endpoint: "localhost:9000" }],
    ["a prefix that climbs", { prefix: "../other" }],
    ["a limit of nothing", { maxFileSizeMb: 0 }],
  ])("refuses %s", (_what, options) => {
    expect(() => open(options)).toThrow(ConfigurationError);
  });
});

describe("S3Backend on a server that keeps conditions", { tags: "moto" }, () => {
  it("stores a file only over what was expected", async () => {
    const { endpoint, credentials, stop } = await startMoto();
    const place = { bucket: BUCKET, prefix: "", endpoint, credentials };
    const [ours, theirs] = [1, 2].map(
      () => new S3Files({ ...place, conditionalWrites: true, maxBytes: 1000 }),
    ) as [S3Files, S3Files]; // two numbers make two
    try {
      expect(await ours.put("/a", text("one"), "absent")).toBe(true);
      expect(await theirs.put("/a", text("two"), "absent")).toBe(false);
      const { version = "" } = (await theirs.get("/a")) ?? {};
      expect(await ours.put("/a", text("three"), { version })).toBe(true);
      expect(await theirs.put("/a", text("four"), { version })).toBe(false);
      const last = (await theirs.get("/a"))?.version ?? "";
      await ours.remove("/a");
      expect(await theirs.put("/a", text("five"), { version: last })).toBe(false);
      expect(await ours.get("/a")).toBeUndefined();
    } finally {
      await Promise.all([ours.close(), theirs.close()]);
      await stop();
    }
  });
});

describe("a listing of several pages", () => {
  const KEYS = Array.from({ length: 5 }, (_, index) => `d/${index}.txt`);
  const asked: string[] = [];
  let server: Server;

  /** Answers listings only, two keys a page. */
  const answer = (query: URLSearchParams): string => {
    const token = query.get("continuation-token");
    asked.push(token ?? "begin");
    const from = Number(token ?? 0);
    const contents = KEYS.slice(from, from + 2).map(
      (key) =>
        `<Contents><Key>${key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`,
    );
    const isTruncated = from + 2 < KEYS.length;
    const next = isTruncated ? `<NextContinuationToken>${from + 2}</NextContinuationToken>` : "";
    return `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>${next}${contents.join("")}</ListBucketResult>`;
  };

  beforeAll(async () => {
    server = createServer((request, response) => {
      const url = new URL(request.url ?? "/", "http://localhost");
      const isListing = request.method === "GET" && url.searchParams.has("list-type");
      response.writeHead(isListing ? 200 : 404, { "content-type": "application/xml" });
      response.end(isListing ? answer(url.searchParams) : "");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => void server.close());

  it("is read to its end", async () => {
    const { port } = server.address() as AddressInfo; // of a server that listens on a port
    const backend = new S3Backend({
      bucket: BUCKET,
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: "k", secretAccessKey: "s" },
    });
    const { files } = await backend.glob("**/*.txt");
    expect(files?.map(({ path }) => path)).toEqual(KEYS.map((key) => `/${key}`));
    expect(asked).toEqual(["begin", "2", "4"]);
    await backend.close();
  });
});
