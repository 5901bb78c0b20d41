/** In whose name statements are carried out: the server's own, or a principal's behind the second wall. */
import type { Pool } from "pg";

/** Connections, and how transactions on them are confined. Without a role nobody is. */
export class Access {
  readonly pool: Pool;
  /** The statement that confines a transaction, once it has begun. Absent: this access is the server's own. */
  readonly confinement: string | undefined;
  readonly #role: string | undefined;

  constructor(pool: Pool, role?: string, confinement?: string) {
    this.pool = pool;
    this.#role = role;
    this.confinement = confinement;
  }

  /** Sees and changes runs and threads of the principal alone. */
  of(principal: string): Access {
    return this.#where("principal", principal);
  }

  /** Sees and changes memories at and below the encoded namespace alone. */
  within(namespace: string): Access {
    return this.#where("namespace", namespace);
  }

  #where(setting: string, value: string): Access {
    if (this.#role === undefined) return this;
    // A hexadecimal value, because it has to be a part of the text: parameters need a statement of their own.
    const hex = Buffer.from(value.replaceAll("\0", "\ufffd")).toString("hex");
    const text = `convert_from(decode('${hex}', 'hex'), 'UTF8')`;
    const confinement = `SELECT set_config('role', '${this.#role}', true), set_config('deepagent.${setting}', ${text}, true)`;
    return new Access(this.pool, this.#role, confinement);
  }
}
