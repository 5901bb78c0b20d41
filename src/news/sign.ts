/** Signs by the package of Standard Webhooks. Its names do not reach an `import()` in all builds, but an import. */
import { Webhook } from "standardwebhooks";

/** The signature header of a message. @throws for a secret that is not base64 */
export const sign = (id: string, time: Date, body: string, secret: string): string =>
  new Webhook(secret).sign(id, time, body);
