import type { Backend } from "../../backends/backend.ts";
import { PostgresBackend } from "../../backends/stores/postgres.ts";
import { S3Backend } from "../../backends/stores/s3.ts";
import type { MountsConfig } from "../../config/mounts-schema.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The configured folders on other servers, by path. Nothing is connected before it is used. */
export interface ServerMounts {
  routes: Readonly<Record<string, Backend>>;
  close(): Promise<void>;
}

export function openServerMounts(mounts: MountsConfig, env: Environment): ServerMounts {
  const opened = Object.entries(mounts).map(([path, mount]) => ({ path, backend: openMount(mount, env) }));
  return {
    routes: Object.fromEntries(opened.map(({ path, backend }) => [path, backend])),
    close: async () => {
      await Promise.all(opened.map(({ backend }) => backend.close()));
    },
  };
}

function openMount({ s3, postgres }: MountsConfig[string], env: Environment): S3Backend | PostgresBackend {
  if (s3 === undefined) {
    const { connectionStringVariable: variable, ...options } = postgres ?? {};
    return new PostgresBackend({ ...options, connectionString: variable && env[variable] });
  }
  const { accessKeyIdVariable: id, secretAccessKeyVariable: secret, ...options } = s3;
  const [accessKeyId, secretAccessKey] = [id && env[id], secret && env[secret]];
  const isGiven = accessKeyId !== undefined && secretAccessKey !== undefined;
  return new S3Backend({ ...options, ...(isGiven ? { credentials: { accessKeyId, secretAccessKey } } : {}) });
}
