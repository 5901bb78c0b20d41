/** The table of providers and model families, and the profile of one model. */
import { defined, parsedUrl } from "../../../core/unknown.ts";
import { findModel } from "../../../core/model-names.ts";
import limits from "./limits.json" with { type: "json" };
import table from "./profiles.json" with { type: "json" };
import type { Family, Provider, RequestRules } from "./schema.ts";

// `profile.test.ts` checks the file against the schema.
export const PROVIDERS = table.providers as Readonly<Record<string, Provider>>;
const FAMILIES = (table.families as readonly Family[]).map((family) => ({
  family,
  pattern: new RegExp(family.match),
}));

/** Windows and output limits of models that differ from their family's. */
const MODEL_LIMITS = new Map<string, Partial<Pick<Family, "window" | "output">>>(
  Object.entries(limits.models),
);

/** A model at a place, with all that is known of it in advance. */
export interface Profile {
  /** The service, by its name or its address. */
  provider?: string;
  family?: Family;
  /** Tokens of a request and of an answer at the vendor's own service. */
  window?: number;
  output?: number;
  /** `host:port/path` of the address, where requests go to one. */
  place: string;
  model: string;
  isLocal: boolean;
  rules: RequestRules;
}

/** The family that a model's name mentions first after its last slash: a distilled model names its teacher, too. */
export function findFamily(model: string): Family | undefined {
  const own = model.toLowerCase().replace(/^.*\//, "");
  return FAMILIES.map(({ family, pattern }) => ({ family, at: own.search(pattern) }))
    .filter(({ at }) => at >= 0)
    .toSorted((one, other) => one.at - other.at)[0]?.family;
}

/** The rules of all, the later before the earlier. Lists and records are joined. */
export function joinRules(...all: ReadonlyArray<RequestRules | undefined>): RequestRules {
  const given = all.filter((rules) => rules !== undefined);
  const joined: RequestRules = Object.assign({}, ...given);
  const drop = [...new Set(given.flatMap((rules) => rules.drop ?? []))];
  if (drop.length > 0) joined.drop = drop;
  for (const name of ["rename", "put", "most"] as const) {
    const records = given.flatMap((rules) => rules[name] ?? []);
    if (records.length > 0) Object.assign(joined, { [name]: Object.assign({}, ...records) });
  }
  // A name that goes one way by a later rule does not go back by an earlier one.
  const last = given.findLast(({ rename }) => rename !== undefined)?.rename ?? {};
  for (const [from, to] of Object.entries(last))
    if (joined.rename?.[to] === from) {
      const { [to]: _earlier, ...others } = joined.rename;
      joined.rename = others;
    }
  return joined;
}

/** The profile of a model. `provider`: the one that it was chosen with. `own`: the rules that a person set. */
export function buildProfile(
  model: string,
  { provider, address = "", own }: { provider?: string; address?: string; own?: RequestRules } = {},
): Profile {
  const family = findFamily(model);
  const { window = family?.window, output = family?.output } = findModel(MODEL_LIMITS, model) ?? {};
  // Any server may speak the protocol of OpenAI or Anthropic.
  const isGeneral = provider === "openai" || provider === "anthropic";
  const url = parsedUrl(address);
  const isAt = (end: string): boolean =>
    end.includes(":") ? url?.host === end : `.${url?.hostname}`.endsWith(`.${end}`) && url?.port === "";
  const named = Object.entries(PROVIDERS).find(([, { hosts = [] }]) => hosts.some(isAt))?.[0];
  const service = isGeneral && address !== "" ? named : provider;
  const facts = service === undefined ? undefined : PROVIDERS[service];
  return {
    ...defined({ provider: service, family, window, output }),
    place: url === undefined ? (provider ?? "") : url.host + url.pathname.replace(/\/$/, ""),
    model,
    isLocal: facts?.local === true || (url !== undefined && OWN_NETWORK.test(url.hostname)),
    rules: joinRules(facts?.request, family?.request, own),
  };
}

/** A window for a server on one's own machine or network, where nothing else is known. */
const OWN_SERVER = 32_000;

/** The window by the table: that of the vendor, which a server of one's own may not have memory for. */
export const knownWindow = ({ family, window, isLocal }: Profile): number | undefined =>
  isLocal && family?.open !== false ? Math.min(window ?? OWN_SERVER, OWN_SERVER) : window;

const OWN_NETWORK =
  /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[(?:::1|f[cd])|host\.docker\.internal$)|\.(?:local|lan|internal|localhost)$/;
