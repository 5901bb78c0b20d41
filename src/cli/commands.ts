import { RUN_ACTIONS, NEWS_ACTIONS, SCHEDULE_ACTIONS } from "./actions.ts";
import { CLIENT_NAMES } from "./clients/catalogue.ts";
import { type Command, type Flag, settingFlag } from "./command.ts";
import { CHOICE_FLAGS, REMOVAL_FLAGS } from "./schedule-choices.ts";

/** Lists all commands. Each loads its code when it runs, because `serve` has to answer the handshake at once. */

const serve: Command = {
  name: "serve",
  usage: "serve",
  summary:
    "Serve MCP over stdio, or over Streamable HTTP with --http (other machines need a token). The default.",
  configurable: true,
  settings: [
    "workspace",
    "model",
    "dataDir",
    "approvals.write",
    "approvals.execute",
    "http.host",
    "http.port",
  ],
  flags: [
    { name: "http", kind: "boolean", help: "Listen on --host and --port instead of stdio." },
    { name: "no-work", kind: "boolean", help: "Take requests only; other processes work on the runs." },
  ],
  run: async (args) => (await import("./serve.ts")).runServe(args),
};

const acp: Command = {
  name: "acp",
  usage: "acp",
  summary: "Be an agent of your editor (Zed, JetBrains, Neovim) over the Agent Client Protocol.",
  configurable: true,
  settings: ["model", "dataDir", "approvals.write", "approvals.execute"],
  flags: [],
  run: async (args) => (await import("./acp.ts")).runAcp(args),
};

const work: Command = {
  name: "work",
  usage: "work",
  summary: "Work on the runs of servers that share this storage, without serving requests.",
  configurable: true,
  settings: ["workspace", "model", "dataDir", "storage", "http.host", "http.port"],
  flags: [{ name: "http", kind: "boolean", help: "Answer probes and /metrics on --host and --port." }],
  run: async (args) => (await import("./serve.ts")).runWork(args),
};

const run: Command = {
  name: "run",
  usage: 'run ["TASK" | -]',
  summary:
    "Work on a task in this terminal, with a live tree of agents, approvals, questions and follow-up tasks.",
  examples: ['run "Summarize the notes in this folder"', "run - --yes < task.md", "run --resume last"],
  configurable: true,
  positionals: 1,
  flags: [
    { name: "resume", kind: "text", hint: "RUN", help: "Continue this run instead of starting one." },
    {
      name: "thread",
      kind: "text",
      hint: "THREAD",
      help: "Continue this conversation, even while it works. THREAD@N (see runs points) starts a new one from there.",
    },
    {
      name: "goal",
      kind: "list",
      hint: "CRITERION",
      help: "Have a judge check this before the run ends. Repeat it for more criteria.",
    },
    { name: "yes", short: "y", kind: "boolean", help: "Approve everything without asking." },
    { name: "json", kind: "boolean", help: "Write events and the run as JSON lines." },
    { name: "quiet", short: "q", kind: "boolean", help: "Print only the answer and failures." },
  ],
  run: async (args) => (await import("./run.ts")).runTask(args),
};

const runs: Command = {
  name: "runs",
  usage: "runs ACTION [RUN]",
  summary:
    "View runs and decide on them, even while a server works. RUN is an id, the beginning of one, or last.",
  configurable: true,
  settings: ["dataDir", "storage", "proposals.folder"],
  positionals: 3,
  examples: ["runs list", "runs show last", "runs answer last --approve"],
  actions: RUN_ACTIONS,
  flags: [
    { name: "json", kind: "boolean", help: "Write JSON." },
    {
      name: "all-principals",
      kind: "boolean",
      help: "As the operator, include runs of people with tokens.",
    },
    { name: "limit", kind: "text", hint: "N", help: "Number of runs to list. Default 20." },
    { name: "tree", kind: "boolean", help: "List the background tasks of each run below it." },
    { name: "approve", kind: "boolean", help: "Approve; without REQUEST, all open ones." },
    {
      name: "approve-same",
      kind: "boolean",
      help: "Approve it, and the same calls for the rest of the run.",
    },
    { name: "reject", kind: "boolean", help: "Reject." },
    { name: "edit", kind: "text", hint: "JSON", help: "Run REQUEST with these arguments." },
    {
      name: "message",
      kind: "text",
      hint: "TEXT",
      help: "Reason; the agent reads that of a refusal.",
    },
    {
      name: "value",
      kind: "text",
      hint: "TEXT",
      help: "Answer a question that has one field, or none. JSON objects and lists are read as JSON.",
    },
    { name: "field", kind: "list", hint: "NAME=VALUE", help: "Answer one field of a question." },
    { name: "opened", kind: "boolean", help: "Say that you have opened the address." },
    { name: "decline", kind: "boolean", help: "Decline to answer; without REQUEST, all open questions." },
    {
      name: "file",
      kind: "list",
      hint: "FILE",
      help: "Apply this file; FILE#1,2 only these places of it. Default: all files that nothing is in the way of.",
    },
    {
      name: "over",
      kind: "list",
      hint: "FILE",
      help: "Apply this file, also where the folder was changed since the copy was made.",
    },
    {
      name: "fit",
      kind: "list",
      hint: "FILE",
      help: "Let the agent fit its change to what the folder has by now.",
    },
    { name: "refuse", kind: "list", hint: "FILE", help: "Do not apply this file, and tell the agent so." },
    {
      name: "branch",
      kind: "text",
      hint: "NAME",
      help: "Make a Git branch of it, and leave the folder as it is.",
    },
    { name: "worktree", kind: "boolean", help: "Check the branch out into a folder of its own." },
    { name: "dry-run", kind: "boolean", help: "Only report what would be deleted." },
    { name: "orphans", kind: "boolean", help: "Also delete threads that belong to no run." },
    { name: "no-browser", kind: "boolean", help: "Only print the link." },
  ],
  run: async (args) => (await import("./runs.ts")).runRuns(args),
};

const schedule: Command = {
  name: "schedule",
  usage: "schedule ACTION [SCHEDULE]",
  summary:
    "Let runs begin by themselves, while a server works. SCHEDULE is a name, an id, or the beginning of one.",
  configurable: true,
  settings: ["workspace", "dataDir", "storage"],
  // An expression without quotes is told as such.
  positionals: Infinity,
  examples: ['schedule add "0 7 * * 1-5" "Summarize the news"', "schedule list", "schedule remove news"],
  actions: SCHEDULE_ACTIONS,
  flags: [
    { name: "json", kind: "boolean", help: "Write JSON." },
    {
      name: "all-principals",
      kind: "boolean",
      help: "As the operator, include schedules of people with tokens.",
    },
    { name: "cron", kind: "text", hint: "EXPRESSION", help: "For edit: another cron expression." },
    { name: "task", kind: "text", hint: "TASK", help: "For edit: another task." },
    { name: "name", kind: "text", hint: "NAME", help: "Its name. Default: the beginning of the task." },
    {
      name: "time-zone",
      kind: "text",
      hint: "ZONE",
      help: "Time zone, such as Europe/Berlin. Default: this machine's.",
    },
    {
      name: "catch-up",
      kind: "text",
      hint: "skip|one|all",
      help: "Runs to start that were missed while no server worked: none, the newest one, or all, one after the other. Default one.",
    },
    {
      name: "catch-up-limit",
      kind: "text",
      hint: "N",
      help: "Most missed runs of --catch-up all. Default 10.",
    },
    { name: "overlap", kind: "boolean", help: "Start a run even if an earlier one has not ended." },
    {
      name: "no-overlap",
      kind: "boolean",
      help: "For edit: start no run while an earlier one has not ended.",
    },
    ...CHOICE_FLAGS,
    ...REMOVAL_FLAGS,
  ],
  run: async (args) => (await import("./schedule.ts")).runSchedule(args),
};

const news: Command = {
  name: "news",
  usage: "news [ACTION] [NUMBER…]",
  summary: "Show messages about runs that were not delivered yet, and send them again or drop them.",
  configurable: true,
  settings: ["dataDir", "storage"],
  positionals: Infinity,
  examples: ["news list", "news retry --all"],
  actions: NEWS_ACTIONS,
  flags: [
    { name: "json", kind: "boolean", help: "Write JSON." },
    { name: "all", kind: "boolean", help: "All messages that were given up." },
  ],
  run: async (args) => (await import("./news.ts")).runNews(args),
};

const open: Command = {
  name: "open",
  usage: "open",
  summary: "Open the page of all runs in the browser to view, start, decide and continue.",
  configurable: true,
  settings: ["dataDir", "storage"],
  flags: [
    { name: "no-browser", kind: "boolean", help: "Only print the link." },
    { name: "serve", kind: "boolean", help: "Serve the page here, even if a server has one." },
  ],
  run: async (args) => (await import("./open.ts")).runOpen(args),
};

const demo: Command = {
  name: "demo",
  usage: 'demo ["TASK"]',
  examples: ["demo", 'demo --workspace . "Where are the slow tests?"'],
  summary:
    "Watch a complete run in the terminal, with a live tree of agents: on a sample, or on your folder.",
  configurable: true,
  positionals: 1,
  flags: [{ name: "yes", short: "y", kind: "boolean", help: "Approve everything without asking." }],
  run: async (args) => (await import("./demo.ts")).runDemo(args),
};

const PROJECT: Flag = {
  name: "project",
  kind: "boolean",
  help: "Change the configuration of the project in the current folder instead of your own; for claude-code, cursor, vscode, opencode and gemini.",
};

const storage: Command = {
  name: "storage",
  usage: "storage copy",
  summary: "Copy runs, conversations and memories from the data folder to the Postgres of --storage.",
  configurable: true,
  settings: ["dataDir", "storage", "storageSchema"],
  positionals: 1,
  flags: [],
  run: async (args) => (await import("./storage.ts")).runStorage(args),
};

const init: Command = {
  name: "init",
  usage: "init",
  summary: "Set this server up with five questions: client, folder, model and its key, approvals, sandbox.",
  examples: ["init", "init --client cursor --workspace . --model offline --yes"],
  configurable: false,
  flags: [
    { name: "client", kind: "text", hint: "CLIENT", help: `One of ${CLIENT_NAMES.join(", ")}.` },
    { name: "workspace", kind: "text", hint: "DIR", help: "The folder the agent works in." },
    { name: "model", kind: "text", hint: "VALUE", help: "`provider:model`, `offline` or `client`." },
    {
      name: "key",
      kind: "text",
      hint: "WHERE",
      help: "Place for the model's key from this environment: client (its configuration), keychain (of the system) or environment (unchanged).",
    },
    {
      name: "approvals",
      kind: "text",
      hint: "WHAT",
      help: "Calls that you approve: usual (changes in the folder, all commands), all (other changes too), files (changes, and commands outside a sandbox) or none (only commands outside a sandbox).",
    },
    {
      name: "sandbox",
      kind: "text",
      hint: "HOW",
      help: "How commands run: auto (in a sandbox if available, otherwise each approved), only (in a sandbox) or off.",
    },
    { name: "yes", short: "y", kind: "boolean", help: "Don't prompt; use the detected defaults." },
  ],
  run: async (args) => (await import("./init.ts")).runInit(args),
};

const install: Command = {
  name: "install",
  usage: "install CLIENT",
  summary: `Add this server to a client's configuration: ${CLIENT_NAMES.join(", ")}.`,
  configurable: false,
  positionals: 1,
  flags: [
    { name: "workspace", kind: "text", hint: "DIR", help: "The folder the agent works in." },
    { name: "model", kind: "text", hint: "VALUE", help: "`provider:model`, `offline` or `client`." },
    {
      name: "env",
      kind: "list",
      hint: "KEY[=VALUE]",
      help: "A variable for the server, such as the model's key. Without VALUE it is copied from this environment, unless the client can ask for it or refer to it. May be repeated.",
    },
    ...["approvals.write", "approvals.execute", "execute.mode"].map(settingFlag),
    PROJECT,
    { name: "yes", short: "y", kind: "boolean", help: "Don't prompt." },
    { name: "print", kind: "boolean", help: "Show the change without writing it." },
  ],
  run: async (args) => (await import("./install.ts")).runInstall(args),
};

const uninstall: Command = {
  name: "uninstall",
  usage: "uninstall CLIENT",
  summary: "Remove this server from a client's configuration, and change nothing else.",
  configurable: false,
  positionals: 1,
  flags: [PROJECT],
  run: async (args) => (await import("./install.ts")).runUninstall(args),
};

const login: Command = {
  name: "login",
  usage: "login SERVER",
  summary: "Log in with the browser at another MCP server, whose tools the agent may use.",
  examples: ["login linear", 'login linear --scope "read write"'],
  configurable: true,
  settings: ["mcpServers", "dataDir"],
  positionals: 1,
  flags: [
    {
      name: "scope",
      kind: "text",
      hint: "SCOPES",
      help: "Permissions to ask for, separated by blanks. Default: those that the server asks for.",
    },
    { name: "no-browser", kind: "boolean", help: "Only print the address." },
  ],
  run: async (args) => (await import("./login.ts")).runLogin(args),
};

const logout: Command = {
  name: "logout",
  usage: "logout SERVER",
  summary: "Forget the log-in at another MCP server, and end it there.",
  configurable: true,
  settings: ["dataDir"],
  positionals: 1,
  flags: [],
  run: async (args) => (await import("./login.ts")).runLogout(args),
};

const doctor: Command = {
  name: "doctor",
  usage: "doctor",
  summary: "Check everything that a run needs, and ask the provider of the model for one answer.",
  examples: ["doctor", "doctor --offline"],
  configurable: true,
  flags: [
    {
      name: "offline",
      kind: "boolean",
      help: "Leave out requests to the model's provider, to folders on other servers and to the OAuth issuer.",
    },
  ],
  run: async (args) => (await import("./doctor.ts")).runDoctor(args),
};

const models: Command = {
  name: "models",
  usage: "models ACTION",
  summary: "List model providers, and add the package of one to this program.",
  configurable: true,
  settings: ["dataDir"],
  positionals: 2,
  actions: [
    {
      name: "list",
      words: "",
      summary: "List providers, whether their packages are installed, and the key each needs.",
      flags: [],
      examples: ["models list"],
    },
    {
      name: "add",
      words: "PROVIDER",
      summary: "Install the package of a provider into the data folder, with npm.",
      flags: [],
      examples: ["models add mistralai"],
    },
  ],
  flags: [],
  run: async (args) => (await import("./models.ts")).runModels(args),
};

const keys: Command = {
  name: "keys",
  usage: "keys [ACTION]",
  summary: "List, store or delete provider keys in the keychain of this system.",
  configurable: false,
  // A key given as an argument is refused, and the message does not repeat it.
  positionals: Infinity,
  actions: [
    {
      name: "list",
      words: "",
      summary: "List the names of stored keys, one per line.",
      flags: [],
      examples: ["keys list"],
    },
    {
      name: "set",
      words: "KEY",
      summary: "Store a key: asks for it without showing it, or reads it from standard input.",
      flags: [],
      examples: ["keys set ANTHROPIC_API_KEY", "keys set OPENAI_API_KEY < key.txt"],
    },
    {
      name: "forget",
      words: "KEY",
      summary: "Delete a key from the keychain.",
      flags: [],
      examples: ["keys forget ANTHROPIC_API_KEY"],
    },
  ],
  flags: [],
  run: async (args) => (await import("./keys.ts")).runKeys(args),
};

const graph: Command = {
  name: "graph",
  usage: "graph",
  summary: "Print the agent graph as a Mermaid diagram.",
  configurable: true,
  settings: ["workspace", "execute.mode"],
  flags: [],
  run: async (args) => {
    const { LOCAL, withLocalRuns } = await import("./local-runs.ts");
    return withLocalRuns(args, false, async ({ runs }) => {
      process.stdout.write(`${(await runs.drawing(LOCAL)).trimEnd()}\n`);
      return 0;
    });
  },
};

const completions: Command = {
  name: "completions",
  usage: "completions SHELL",
  summary: "Print a script that completes commands, flags and runs in bash, zsh, fish or powershell.",
  examples: ["completions bash", "completions zsh", "completions fish", "completions powershell"],
  configurable: false,
  // The scripts pass all words of a line.
  positionals: Infinity,
  flags: [],
  run: async (args) => (await import("./completions.ts")).runCompletions(args, COMMANDS),
};

/** In the order that help lists them. */
export const COMMANDS: readonly Command[] = [
  serve,
  acp,
  work,
  run,
  runs,
  schedule,
  news,
  open,
  demo,
  init,
  install,
  uninstall,
  doctor,
  models,
  keys,
  login,
  logout,
  graph,
  storage,
  completions,
];
