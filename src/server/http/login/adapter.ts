/** Stores codes, tokens, grants, sessions and clients of the authorization server. */
import { type Adapter, errors } from "oidc-provider";
import { type Logins, storedId } from "../../../runs/logins.ts";
import { defined, recordOf } from "../../../core/unknown.ts";

/** A refresh token counts as unused for so long after its use: the answer may be lost, or two processes may share it. */
const GRACE_MS = 30_000;
/** Lifetime of a grant after its last use, and of a registered client with which somebody logged in. */
const KEPT_MS = 90 * 24 * 3_600_000;

export const adapterFor =
  ({ rows, clock }: Pick<Logins, "rows" | "clock">) =>
  (model: string): Adapter => {
    const isClient = model === "Client";
    const graceMs = model === "RefreshToken" ? GRACE_MS : 0;
    const at = (id: string) => ({ model, id: storedId(model, id) });
    const read = async (query: string, values: Readonly<Record<string, string>>, jti?: string) => {
      const [row] = await rows.read<{ body: string; expires_at: number; used_at: number | null }>(query, {
        ...values,
        now: clock(),
      });
      if (row === undefined || isClient) return row && recordOf(JSON.parse(row.body));
      const isUsed = model !== "Grant" && row.used_at !== null && clock() - row.used_at >= graceMs;
      const exp = Math.floor(row.expires_at / 1000);
      return { ...recordOf(JSON.parse(row.body)), exp, ...defined({ jti, consumed: isUsed || undefined }) };
    };
    return {
      // A registered client, which has no lifetime, is soon removed if nobody logs in with it.
      upsert: async (id, { jti: _secret, ...body }, seconds = 3600) => {
        const {
          accountId: principal = null,
          grantId: grant = null,
          uid = null,
          clientId: client = "",
        } = body;
        const now = clock();
        const row = { ...at(id), principal, grant_id: grant, uid, body: JSON.stringify(body), now };
        await rows.change("put", { ...row, expires_at: now + seconds * 1000 });
        if (model === "RefreshToken")
          await rows.change("keep", { grant, client, now, expires_at: now + KEPT_MS });
      },
      find: (id) => read("find", at(id), id),
      findByUid: (uid) => read("find by uid", { model, uid }),
      findByUserCode: async () => undefined,
      // The library reads, waits, and then calls this: only an error makes one of several simultaneous uses the first.
      consume: async (id) => {
        const changed = await rows.change("use up", { ...at(id), now: clock(), since: clock() - graceMs });
        if (changed === 0) throw new errors.InvalidGrant("used before");
      },
      destroy: async (id) => void (await rows.change("remove", at(id))),
      revokeByGrantId: async (id) => void (await rows.change("revoke grant", { id })),
    };
  };
