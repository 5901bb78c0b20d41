/** Lists all commands. Each loads its code when it runs, because `serve` has to answer the handshake at once. */
import { defined } from "../core/unknown.ts";
import { CLIENT_NAMES } from "./clients/catalogue.ts";
import { type Action, type Command, flag, settingFlag } from "./command.ts";
import facts from "./commands.json" with { type: "json" };

const RUN: Readonly<Record<keyof typeof facts, Command["run"]>> = {
  serve: async (args) => (await import("./serve.ts")).runServe(args),
  acp: async (args) => (await import("./acp.ts")).runAcp(args),
  work: async (args) => (await import("./serve.ts")).runWork(args),
  run: async (args) => (await import("./run.ts")).runTask(args),
  runs: async (args) => (await import("./runs.ts")).runRuns(args),
  schedule: async (args) => (await import("./schedule.ts")).runSchedule(args),
  news: async (args) => (await import("./news.ts")).runNews(args),
  access: async (args) => (await import("./access.ts")).runAccess(args),
  owner: async (args) => (await import("./owner.ts")).runOwner(args),
  rules: async (args) => (await import("./rules.ts")).runRules(args),
  open: async (args) => (await import("./open.ts")).runOpen(args),
  demo: async (args) => (await import("./demo.ts")).runDemo(args),
  init: async (args) => (await import("./init.ts")).runInit(args),
  install: async (args) => (await import("./install.ts")).runInstall(args),
  uninstall: async (args) => (await import("./install.ts")).runUninstall(args),
  doctor: async (args) => (await import("./doctor.ts")).runDoctor(args),
  models: async (args) => (await import("./models.ts")).runModels(args),
  keys: async (args) => (await import("./keys.ts")).runKeys(args),
  login: async (args) => (await import("./login.ts")).runLogin(args),
  logout: async (args) => (await import("./login.ts")).runLogout(args),
  graph: async (args) => {
    const { withLocalRuns } = await import("./local-runs.ts");
    const { say } = await import("./output.ts");
    return withLocalRuns(args, false, async ({ runs }) => say((await runs.agents.drawing()).trimEnd()));
  },
  storage: async (args) => (await import("./storage.ts")).runStorage(args),
  completions: async (args) => (await import("./completions.ts")).runCompletions(args, COMMANDS),
};

/** A command in `commands.json`. By default it takes the configuration flags and no others. */
interface CommandFacts extends Pick<Command, "summary" | "examples"> {
  /** Default: the name alone. */
  usage?: string;
  settings?: string;
  configurable?: boolean;
  /** `any`: the command itself reports those that it cannot use, or takes all. */
  positionals?: number | string;
  /** By name, with the words after it: `answer RUN [REQUEST]`. */
  actions?: Readonly<Record<string, Pick<Action, "summary" | "examples"> & { flags?: string }>>;
  /** Help by label. Instead of a label the path of a setting, for its flag. */
  flags?: Readonly<Record<string, string>>;
}

const withClients = (text: string): string => text.replace("{clients}", CLIENT_NAMES.join(", "));

/** In the order that help lists them. */
export const COMMANDS: readonly Command[] = Object.entries<CommandFacts>(facts).map(([name, command]) => {
  const { usage = name, summary, settings, configurable = true, positionals, examples, actions } = command;
  return {
    name,
    usage,
    summary: withClients(summary),
    configurable,
    flags: Object.entries(command.flags ?? {}).map(([label, help]) =>
      label.startsWith("-") ? flag(label, withClients(help)) : settingFlag(label),
    ),
    ...defined({
      examples,
      settings: settings?.split(" "),
      positionals: typeof positionals === "string" ? Infinity : positionals,
      actions:
        actions &&
        Object.entries(actions).map(([action, { flags = "", ...rest }]): Action => {
          const [first = "", ...words] = action.split(" ");
          return { ...rest, name: first, words: words.join(" "), flags: flags.match(/\S+/g) ?? [] };
        }),
    }),
    run: RUN[name as keyof typeof facts], // its own names
  };
});
