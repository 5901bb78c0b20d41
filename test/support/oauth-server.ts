/** An authorization server of another project, an MCP server that wants its tokens, and a person with a browser. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { Provider } from "oidc-provider";
import { refuse, sloppyHttp } from "./sloppy-mcp-server.ts";
import { addressOf } from "./http-address.ts";

export interface ProtectedServer {
  /** Address of the MCP server. */
  url: string;
  issuer: string;
  /** Requests of the MCP server by method of the protocol. */
  seen: string[];
  /** Number of requests for tokens that the authorization server got. */
  grants(): number;
  /** Ends every access token: the server refuses all that it gave until now. */
  expire(): void;
  /** From now on the authorization server refuses to renew tokens. */
  forget(): void;
  /** The next requests for tokens get this status. */
  breakTokens(status: number | undefined): void;
  /** From now on the MCP server wants this permission for calls. */
  require(scope: string): void;
}

export interface Look {
  /** Clients that are registered already. Default: clients register themselves. */
  clients?: Array<{ client_id: string; client_secret?: string; redirect_uris: string[] }>;
  /** Seconds that an access token counts. Default 3600. */
  lifetime?: number;
}

export async function protectedServer({ clients, lifetime = 3600 }: Look = {}): Promise<ProtectedServer> {
  let [grants, made, bornAfter, isForgetful] = [0, 0, 0, false];
  let broken: number | undefined;
  let required: string | undefined;
  const server = createServer();
  const issuer = await addressOf(server);
  /** The number of each access token. */
  const births = new Map<string, number>();
  const mcp = await sloppyHttp(({ message, request, response }) => {
    if (request.url?.startsWith("/.well-known/oauth-protected-resource"))
      return answer(response, {
        resource: mcp.url,
        authorization_servers: [issuer],
        scopes_supported: ["notes"],
      });
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    if ((births.get(token) ?? 0) <= bornAfter)
      return refuseWith(
        response,
        401,
        `Bearer resource_metadata="${new URL("/.well-known/oauth-protected-resource/mcp", mcp.url).href}", scope="notes"`,
      );
    if (required !== undefined && message.method === "tools/call")
      return refuseWith(response, 403, `Bearer error="insufficient_scope", scope="${required}"`);
    return undefined;
  });
  const provider = new Provider(issuer, {
    ...(clients === undefined
      ? {}
      : {
          clients: clients.map((client) => ({
            ...client,
            token_endpoint_auth_method: client.client_secret ? "client_secret_basic" : "none",
            grant_types: ["authorization_code", "refresh_token"],
          })),
        }),
    scopes: ["openid", "offline_access", "notes"],
    clientDefaults: { grant_types: ["authorization_code", "refresh_token"] },
    features: {
      registration: { enabled: clients === undefined },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: "notes more",
          accessTokenFormat: "opaque",
          accessTokenTTL: lifetime,
        }),
        useGrantedResource: () => true,
      },
    },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    cookies: { keys: ["test"] },
    ttl: { AccessToken: lifetime, RefreshToken: 86_400, Session: 3600, Interaction: 600, Grant: 86_400 },
  });
  const handle = provider.callback();
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === "/token") {
      if (broken !== undefined) return void response.writeHead(broken).end("broken");
      grants += 1;
      if (isForgetful)
        return void response
          .writeHead(400, { "content-type": "application/json" })
          .end(JSON.stringify({ error: "invalid_grant" }));
    }
    void handle(request, response);
  });
  provider.on("access_token.saved", ({ jti }: { jti: string }) => void births.set(jti, (made += 1)));
  return {
    url: mcp.url,
    issuer,
    seen: mcp.seen,
    grants: () => grants,
    expire: () => void (bornAfter = made),
    forget: () => void (isForgetful = true),
    breakTokens: (status) => void (broken = status),
    require: (scope) => void (required = scope),
  };
}

function answer(response: ServerResponse, body: object): true {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  return true;
}

function refuseWith(response: ServerResponse, status: number, challenge: string): true {
  response.setHeader("www-authenticate", challenge);
  return refuse(response, status);
}

/** Opens an address as a person does who logs in and agrees. Gives the address at which the browser comes back. */
export async function logInAs(person: string, address: string, redirectUrl: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let next: { url: string; form?: URLSearchParams } = { url: address };
  for (let step = 0; step < 20; step += 1) {
    if (next.url.startsWith(redirectUrl)) return new URL(next.url);
    const response = await fetch(next.url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(next.form === undefined ? {} : { method: "POST", body: next.form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const body = await response.text();
    const location = response.headers.get("location");
    if (location !== null) next = { url: new URL(location, next.url).href };
    else {
      const prompt = /name="prompt" value="(\w+)"/.exec(body)?.[1];
      const action = /action="([^"]+)"/.exec(body)?.[1];
      if (prompt === undefined || action === undefined) throw new Error(`No form: ${body.slice(0, 500)}`);
      const form = new URLSearchParams({
        prompt,
        ...(prompt === "login" ? { login: person, password: "x" } : {}),
      });
      next = { url: new URL(action, next.url).href, form };
    }
  }
  throw new Error("The log-in goes in circles.");
}
