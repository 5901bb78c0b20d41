import { S3Backend, type S3BackendOptions } from "../../../src/backends/stores/s3.ts";
import { BUCKET, type S3Server, startMoto, startS3rver } from "../../support/s3-servers.ts";
import type { Subject } from "../contract/contract.ts";

/** One server and one bucket for all cases, a prefix for each. */
function onServer(
  name: string,
  startServer: () => Promise<S3Server>,
  options: Partial<S3BackendOptions> & Pick<Subject, "tag" | "skip">,
): Subject {
  let server: S3Server | undefined;
  let cases = 0;
  const { tag, skip, ...given } = options;
  return {
    name: `S3Backend, ${name}`,
    keepsFilesInState: false,
    ...(tag === undefined ? {} : { tag }),
    ...(skip === undefined ? {} : { skip }),
    start: async () => {
      const started = (server = await startServer());
      return () => started.stop();
    },
    make: () => {
      if (server === undefined) throw new Error("the server was not started");
      const { endpoint, credentials } = server;
      const prefix = `case-${++cases}`;
      const backend = new S3Backend({ bucket: BUCKET, prefix, endpoint, credentials, ...given });
      return { backend, dispose: () => backend.close() };
    },
  };
}

const NAMES = ["names: any name works in every method", "names: any name works for a directory"];

export const s3LastWriterWins = onServer("last writer wins", startS3rver, {
  conditionalWrites: false,
  skip: [{ reason: "s3rver keeps no names of more than 241 bytes", cases: NAMES }],
});

export const s3 = onServer("conditional writes", startMoto, {
  tag: "moto",
  skip: [{ reason: "moto finds no names with a line break", cases: NAMES }],
});
