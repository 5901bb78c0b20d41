/** Logs a person in and out at other MCP servers, whose tools the agent may use. */
import { createInterface } from "node:readline/promises";
import { type LoginCallback, openLoginCallback } from "../app/login-callback.ts";
import { loginPlace, loginsOf } from "../app/logins.ts";
import { checkTools } from "../app/checks/servers.ts";
import { beginLogin, LoginFailed, revokeLogin } from "../agent/mcp-tools/authorize.ts";
import { loadConfig } from "../config/load.ts";
import { systemClock } from "../core/clock.ts";
import { defined, parsedUrl } from "../core/unknown.ts";
import { didYouMean } from "../core/options.ts";
import { openInBrowser } from "./browser.ts";
import { type CommandArguments, type ExitCode, textOf } from "./command.ts";
import { complain, say } from "./output.ts";

export async function runLogin({ flags, positionals, host }: CommandArguments): Promise<ExitCode> {
  const found = findPlace(positionals[0], { flags, host });
  if (typeof found === "string") return complain(found, 2);
  const { name, server, secrets, logins, config } = found;
  let callback: LoginCallback | undefined;
  try {
    callback = await openLoginCallback(server.oauth?.callbackPort, server.oauth?.callbackHost);
    const pending = await beginLogin({
      server,
      secrets,
      redirectUrl: callback.address,
      ...defined({ scope: textOf(flags["scope"]) }),
      fetch: logins.fetchFor(server.url),
      clock: systemClock,
    });
    say(`Log in at ${name} in your browser:\n\n${pending.address.href}\n`);
    if (flags["no-browser"] !== true) openInBrowser(pending.address.href);
    const login = await pending.finish(await answerFrom(callback.answerTo(pending.state)));
    await logins.store.change(name, async () => login);
  } catch (error) {
    if (error instanceof LoginFailed) return complain(`${name}: ${error.message}`);
    throw error;
  } finally {
    callback?.close();
  }
  const only = Object.entries(config.mcpServers).filter(([other]) => other === name);
  const alone = { ...config, mcpServers: Object.fromEntries(only), subagents: [], workspace: undefined };
  const [check] = await checkTools(alone, host.env);
  return say(`You are logged in at ${name}. ${check?.text ?? ""}`);
}

export async function runLogout({ flags, positionals, host }: CommandArguments): Promise<ExitCode> {
  const found = findPlace(positionals[0], { flags, host });
  if (typeof found === "string") return complain(found, 2);
  const { name, server, logins } = found;
  let told = "";
  let wasIn = false;
  await logins.store.change(name, async (login) => {
    wasIn = login !== undefined;
    if (login === undefined) return undefined;
    await revokeLogin(login, logins.fetchFor(server.url)).catch(() => {
      told = " Its authorization server could not be told; end the access there too.";
    });
    return undefined;
  });
  return say(wasIn ? `You are logged out at ${name}.${told}` : `You were not logged in at ${name}.`);
}

/** The server of a name, or the reason why nobody can log in there. */
function findPlace(name: string | undefined, { flags, host }: Pick<CommandArguments, "flags" | "host">) {
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return loaded.problems.join("\n");
  const { config } = loaded;
  const names = Object.entries(config.mcpServers).flatMap(([one, server]) => ("url" in server ? [one] : []));
  const known =
    names.length === 0
      ? "The configuration has no server with a url; add one to mcpServers."
      : `Servers with a url: ${names.join(", ")}.`;
  if (name === undefined) return `Name a server. ${known}`;
  const given = config.mcpServers[name];
  if (given === undefined)
    return `mcpServers has no server "${name}".${didYouMean(name, names) || ` ${known}`}`;
  const place = loginPlace(given, host.env);
  if (!place.ok) return `${name} ${place.problem}`;
  return { ...place, name, logins: loginsOf(config, host.env), config };
}

/** Waits for the browser, or at a terminal for the address at which a browser elsewhere ended. */
async function answerFrom(browser: Promise<URLSearchParams>): Promise<URLSearchParams> {
  if (!process.stdin.isTTY) return browser;
  say("If your browser is on another machine, it ends at an address that cannot be opened. Paste it here:");
  const lines = createInterface({ input: process.stdin });
  const pasted = new Promise<URLSearchParams>((resolve) => {
    lines.on("line", (line) => {
      const text = line.trim();
      const url = parsedUrl(text);
      if (url !== undefined) resolve(url.searchParams);
      else if (text !== "") say("This is not an address. Paste all of it, from http:// on:");
    });
  });
  try {
    return await Promise.race([browser, pasted]);
  } finally {
    lines.close();
  }
}
