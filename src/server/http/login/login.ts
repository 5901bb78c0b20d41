/** Lets people log in at this server and grant access to clients: its own authorization server. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { InteractionResults, Provider } from "oidc-provider";
import { memoized } from "../../../core/concurrency.ts";
import { memberOf, parsedUrl, textMemberOf } from "../../../core/unknown.ts";
import { storedId } from "../../../runs/logins.ts";
import { type Principal, SCOPES } from "../../../runs/run.ts";
import type { Tokens } from "../../auth/auth.ts";
import { Reply, SECURITY_HEADERS, readForm } from "../../page/responses.ts";
import problems from "../../page/sign-in-problems.json" with { type: "json" };
import type { Html } from "../../views/html.ts";
import { STYLED, renderNotice } from "../../views/room/shell.ts";
import { pathOf, readJsonBody, sendJson } from "../request.ts";
import { isKnownDocument, isKnownRedirect } from "./clients.ts";
import { type ConnectingClient, askConsent, askPerson, redirectPlace } from "./consent.ts";
import { type LogInOptions, createProvider } from "./provider.ts";
import texts from "./texts.json" with { type: "json" };

const PATHS = ["/oauth/", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

/**
 * The page's headers, but for two: with `no-referrer`, browsers send `Origin: null` with a form, and with `form-action`
 * Chromium does not follow the redirect to the client.
 */
const HEADERS = { ...SECURITY_HEADERS, ...texts.headers };
const show = (reply: Reply, status: number, title: string, text: Html | string, form?: Html): void =>
  reply.html(status, renderNotice(title, text, form, STYLED), HEADERS);

export class LoginServer {
  readonly #options: LogInOptions;
  readonly #tokens: Tokens;
  /** Path of the public address. */
  readonly #base: string;
  readonly #provider: () => Promise<Provider>;
  /** Answers a request to the library, which composes its steps each time that it is asked for this. */
  readonly #answer = memoized(async () => (await this.#provider()).callback());

  constructor(options: LogInOptions, tokens: Tokens) {
    const { pathname } = new URL(options.issuer);
    const base = pathname === "/" ? "" : pathname;
    [this.#options, this.#tokens, this.#base] = [options, tokens, base];
    this.#provider = memoized(() =>
      createProvider(options, {
        base,
        renderError: (ctx, { error, error_description: reason = "" }) => {
          ctx.respond = false;
          const reply = new Reply(ctx.req, ctx.res, base);
          show(reply, ctx.status, "You cannot log in this way", `${error}: ${reason}`);
        },
      }),
    );
  }

  isFor(request: IncomingMessage): boolean {
    return PATHS.some((beginning) => pathOf(request).startsWith(beginning));
  }

  /** Answers a request whose host has been checked. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path, wait] = [pathOf(request), this.#tokens.visit(request)];
    if (wait > 0) {
      response.setHeader("retry-after", String(wait));
      return sendJson(response, 429, { error: "temporarily_unavailable" });
    }
    const { host, protocol } = new URL(this.#options.issuer);
    // The library takes its addresses from the request, so neither a client nor a proxy may choose them.
    for (const name of Object.keys(request.headers))
      if (name.startsWith("x-forwarded-") || name === "forwarded") delete request.headers[name];
    Object.assign(request.headers, { host, "x-forwarded-proto": protocol.slice(0, -1) });
    if (path.startsWith("/.well-known/"))
      return this.#pass(request, response, "/.well-known/openid-configuration");
    if (path === "/oauth/register" && request.method === "POST") return this.#register(request, response);
    if (path.startsWith("/oauth/consent/")) return this.#ask(new Reply(request, response, this.#base));
    const query = new URLSearchParams(request.url?.split("?")[1]);
    if (path === "/oauth/authorize") {
      // Few clients can ask for more later, so the page offers all scopes; it grants those that a person ticks.
      const asked = (query.get("scope") ?? "").split(" ");
      query.set("scope", [...new Set([...SCOPES, ...asked])].join(" ").trim());
    }
    return this.#pass(request, response, `${path}?${query.toString()}`);
  }

  /** For the page: lets a person in, with a token, and ends that. */
  readonly forPage = {
    logIn: async (request: IncomingMessage, form: URLSearchParams): Promise<string | undefined> => {
      const person = await this.#person(request, form);
      return person && (await this.#options.logins()).openPage(person, `${this.#options.issuer}/mcp`);
    },
    logOut: async (token: string): Promise<void> => {
      const uid = storedId("AccessToken", token);
      await (await this.#options.logins()).rows.change("leave page", { uid });
    },
  };

  /** Checks name, password and code in a form. A wrong one counts as a refused token of the address. */
  async #person(request: IncomingMessage, form: URLSearchParams | undefined): Promise<Principal | undefined> {
    const tokens = this.#tokens;
    if (tokens.wait(request) > 0) return undefined;
    const read = (field: string): string => (form?.get(field) ?? "").slice(0, 1000);
    const principal = read("name").trim();
    const logins = await this.#options.logins();
    const isRight = await logins.check(principal, read("password"), read("code"));
    // A refused name is not logged, because people type a password there by mistake.
    this.#options.logger.info(
      isRight ? "login.person" : "login.person_refused",
      isRight ? { principal } : {},
    );
    if (!isRight) tokens.refuse(request);
    return isRight ? principal : undefined;
  }

  async #pass(request: IncomingMessage, response: ServerResponse, address: string): Promise<void> {
    const answer = await this.#answer();
    // The library finds the path below which it is mounted by comparing the two.
    Object.assign(request, { url: address, originalUrl: this.#base + address });
    await answer(request, response);
  }

  /** Keeps name and callbacks of a registration, because the library refuses other members that clients send. */
  async #register(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const read = await readJsonBody(request);
    const body = read.ok ? read.value : undefined;
    const given = memberOf(body, "redirect_uris");
    const uris = Array.isArray(given) && given.length <= 10 ? given : [];
    if (uris.length === 0 || !uris.every((uri) => isKnownRedirect(uri, this.#options.redirects))) {
      this.#options.logger.info("login.refused", { at: "registration", error: "invalid_redirect_uri" });
      const problem = { error: "invalid_redirect_uri", error_description: texts.redirects };
      return sendJson(response, 400, problem);
    }
    await (await this.#options.logins()).rows.change("make room", {});
    const client_name = textMemberOf(body, "client_name")?.slice(0, 80) || "A program without a name";
    Object.assign(request, {
      body: { client_name, redirect_uris: uris, token_endpoint_auth_method: "none" },
    });
    return this.#pass(request, response, "/oauth/register");
  }

  /** Shows the pages of a log-in, and takes their forms. The library knows the browser that began it. */
  async #ask(reply: Reply): Promise<void> {
    const { request, response } = reply;
    const provider = await this.#provider();
    const step = await provider.interactionDetails(request, response).catch(() => undefined);
    const client = step && (await provider.Client.find(String(step.params["client_id"])));
    if (!step || !client) return show(reply, 400, "This log-in has expired", texts.expired);
    const { clientId, clientName: name = clientId } = client;
    const knownBy = isKnownDocument(clientId) ? parsedUrl(clientId)?.host : undefined;
    const asking: ConnectingClient = {
      name,
      knownBy,
      place: redirectPlace(String(step.params["redirect_uri"])),
    };
    const isLogIn = step.prompt.name === "login";
    const person = step.session?.accountId ?? "";
    if (request.method !== "POST")
      return isLogIn
        ? show(reply, 200, "Log in", ...askPerson(asking))
        : show(reply, 200, "Connect", ...askConsent(asking, person));
    if (request.headers.origin !== new URL(this.#options.issuer).origin)
      return show(reply, 403, "Refused", texts.foreign);
    const form = await readForm(request, 64 * 1024);
    const finish = (result: InteractionResults): Promise<void> =>
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission: !isLogIn });
    if (isLogIn) {
      const accountId = await this.#person(request, form);
      const { status, text } = problems.wrong_person;
      if (accountId === undefined) return show(reply, status, "Log in", ...askPerson(asking, text));
      return finish({ login: { accountId, remember: false } });
    }
    const granted = SCOPES.filter((scope) => form?.getAll("scope").includes(scope));
    if (form?.get("do") !== "connect" || granted.length === 0)
      return finish({ error: "access_denied", error_description: "The person refused" });
    const grant = new provider.Grant({ accountId: person, clientId });
    grant.addOIDCScope("openid offline_access");
    // By the address that the client named, of those which this server has.
    for (const resource of Object.keys(step.prompt.details["missingResourceScopes"] ?? {})) {
      grant.addResourceScope(resource, granted.join(" "));
      const refused = SCOPES.filter((scope) => !granted.includes(scope));
      if (refused.length > 0) grant.rejectResourceScope(resource, refused.join(" "));
    }
    const grantId = await grant.save();
    const { rows, clock } = await this.#options.logins();
    const about = { name: name.slice(0, 80), host: asking.place, scopes: granted.join(" ") };
    await rows.change("describe grant", { id: grantId, ...about, now: clock() });
    this.#options.logger.info("login.granted", { principal: person, scopes: granted, place: asking.place });
    return finish({ consent: { grantId } });
  }
}
