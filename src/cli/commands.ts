/** Lists all commands. Each loads its code when it runs, because `serve` has to answer the handshake at once. */
import { ACCESS_ACTIONS, NEWS_ACTIONS, RUN_ACTIONS, SCHEDULE_ACTIONS } from "./actions.ts";
import { CLIENT_NAMES } from "./clients/catalogue.ts";
import { COMMON, type Command, action, flag, settingFlag } from "./command.ts";
import { CHOICE_FLAGS, REMOVAL_FLAGS } from "./schedule-choices.ts";

const PROJECT = flag(
  "--project",
  "Change the configuration of the project in the current folder instead of your own; for claude-code, cursor, vscode, opencode and gemini.",
);

/** Commands. By default they take the configuration flags and no others. A usage begins with the name. */
const PARTS: readonly (Omit<Command, "name" | "flags" | "configurable"> & Partial<Command>)[] = [
  {
    usage: "serve",
    summary:
      "Serve MCP over stdio, or over Streamable HTTP with --http (other machines need a token). The default.",
    settings: [...COMMON, "http.host", "http.port"],
    flags: [
      flag("--http", "Listen on --host and --port instead of stdio."),
      flag("--no-work", "Take requests only; other processes work on the runs."),
    ],
    run: async (args) => (await import("./serve.ts")).runServe(args),
  },
  {
    usage: "acp",
    summary: "Act as an agent in your editor (Zed, JetBrains, Neovim) over the Agent Client Protocol.",
    settings: ["model", "dataDir", "approvals.write", "approvals.execute"],
    run: async (args) => (await import("./acp.ts")).runAcp(args),
  },
  {
    usage: "work",
    summary: "Work on the runs of servers that share this storage, without serving requests.",
    settings: ["workspace", "model", "dataDir", "storage", "http.host", "http.port"],
    flags: [flag("--http", "Answer probes and /metrics on --host and --port.")],
    run: async (args) => (await import("./serve.ts")).runWork(args),
  },
  {
    usage: 'run ["TASK" | -]',
    summary:
      "Work on a task in this terminal, with a live tree of agents, approvals, questions and follow-up tasks.",
    examples: ['run "Summarize the notes in this folder"', "run - --yes < task.md", "run --resume last"],
    positionals: 1,
    flags: [
      flag("--resume RUN", "Continue this run instead of starting one."),
      flag(
        "--thread THREAD",
        "Continue this conversation, even while it works. THREAD@N (see runs points) starts a new one from there.",
      ),
      flag("--goal CRITERION…", "Have a judge check this before the run ends. Repeat it for more criteria."),
      flag("-y, --yes", "Approve everything without asking."),
      flag("--json", "Write events and the run as JSON lines."),
      flag("-q, --quiet", "Print only the answer and failures."),
    ],
    run: async (args) => (await import("./run.ts")).runTask(args),
  },
  {
    usage: "runs ACTION [RUN]",
    summary:
      "View runs and decide on them, even while a server is running. RUN is an id, the beginning of one, or last.",
    settings: ["dataDir", "storage", "proposals.folder"],
    positionals: 3,
    examples: ["runs list", "runs show last", "runs answer last --approve"],
    actions: RUN_ACTIONS,
    flags: [
      flag("--json", "Write JSON."),
      flag("--all-principals", "As the operator, include runs of people with tokens."),
      flag("--limit N", "Number of runs to list. Default 20."),
      flag("--tree", "List the background tasks of each run below it."),
      flag("--approve", "Approve; without REQUEST, all open ones."),
      flag("--approve-same", "Approve it, and the same calls for the rest of the run."),
      flag("--reject", "Reject."),
      flag("--edit JSON", "Run REQUEST with these arguments."),
      flag("--message TEXT", "Reason; the agent reads that of a refusal."),
      flag(
        "--value TEXT",
        "Answer a question that has one field, or none. JSON objects and lists are read as JSON.",
      ),
      flag("--field NAME=VALUE…", "Answer one field of a question."),
      flag("--opened", "Say that you have opened the address."),
      flag("--decline", "Decline to answer; without REQUEST, all open questions."),
      flag(
        "--file FILE…",
        "Show or apply this file; FILE#1,2 only these places of it. Default: all that nothing is in the way of.",
      ),
      flag("--digest DIGEST", "Apply only the change that the review with this digest showed."),
      flag("--over FILE…", "Apply this file, also where the folder was changed since the copy was made."),
      flag("--fit FILE…", "Let the agent fit its change to what the folder has by now."),
      flag("--refuse FILE…", "Do not apply this file, and tell the agent so."),
      flag("--branch NAME", "Make a Git branch of it, and leave the folder as it is."),
      flag("--worktree", "Check the branch out into a folder of its own."),
      flag("--dry-run", "Only report what would be deleted."),
      flag("--orphans", "Also delete threads that belong to no run."),
      flag("--no-browser", "Only print the link."),
    ],
    run: async (args) => (await import("./runs.ts")).runRuns(args),
  },
  {
    usage: "schedule ACTION [SCHEDULE]",
    summary:
      "Start runs automatically while a server is running. SCHEDULE is a name, an id, or the beginning of one.",
    settings: ["workspace", "dataDir", "storage"],
    // An expression without quotes gets a message of its own.
    positionals: Infinity,
    examples: ['schedule add "0 7 * * 1-5" "Summarize the news"', "schedule list", "schedule remove news"],
    actions: SCHEDULE_ACTIONS,
    flags: [
      flag("--json", "Write JSON."),
      flag("--all-principals", "As the operator, include schedules of people with tokens."),
      flag("--cron EXPRESSION", "For edit: another cron expression."),
      flag("--task TASK", "For edit: another task."),
      flag("--name NAME", "Its name. Default: the beginning of the task."),
      flag("--time-zone ZONE", "Time zone, such as Europe/Berlin. Default: this machine's."),
      flag(
        "--catch-up skip|one|all",
        "Runs to start that were missed while no server worked: none, the newest one, or all, one after the other. Default one.",
      ),
      flag("--catch-up-limit N", "Most missed runs of --catch-up all. Default 10."),
      flag("--overlap", "Start a run even if an earlier one has not ended."),
      flag("--no-overlap", "For edit: start no run while an earlier one has not ended."),
      ...CHOICE_FLAGS,
      ...REMOVAL_FLAGS,
    ],
    run: async (args) => (await import("./schedule.ts")).runSchedule(args),
  },
  {
    usage: "news [ACTION] [NUMBER…]",
    summary: "List undelivered messages about runs, and retry or drop them.",
    settings: ["dataDir", "storage"],
    positionals: Infinity,
    examples: ["news list", "news retry --all"],
    actions: NEWS_ACTIONS,
    flags: [flag("--json", "Write JSON."), flag("--all", "All messages that were given up.")],
    run: async (args) => (await import("./news.ts")).runNews(args),
  },
  {
    usage: "access [ACTION] [ID…]",
    summary: "List and revoke the links and subscriptions by which others learn of runs without a token.",
    settings: ["dataDir", "storage"],
    positionals: Infinity,
    examples: ["access list", "access revoke ID"],
    actions: ACCESS_ACTIONS,
    flags: [flag("--json", "Write JSON.")],
    run: async (args) => (await import("./access.ts")).runAccess(args),
  },
  {
    usage: "open",
    summary: "Open the page of all runs in the browser to view, start, decide and continue.",
    settings: ["dataDir", "storage"],
    flags: [
      flag("--no-browser", "Only print the link."),
      flag("--serve", "Serve the page here, even if a server has one."),
    ],
    run: async (args) => (await import("./open.ts")).runOpen(args),
  },
  {
    usage: 'demo ["TASK"]',
    examples: ["demo", 'demo --workspace . "Where are the slow tests?"'],
    summary:
      "Watch a complete run in the terminal, with a live tree of agents: on a sample, or on your folder.",
    positionals: 1,
    flags: [flag("-y, --yes", "Approve everything without asking.")],
    run: async (args) => (await import("./demo.ts")).runDemo(args),
  },
  {
    usage: "init",
    summary:
      "Set up this server by answering five questions: client, folder, model and key, approvals, sandbox.",
    examples: ["init", "init --client cursor --workspace . --model offline --yes"],
    configurable: false,
    flags: [
      flag("--client CLIENT", `One of ${CLIENT_NAMES.join(", ")}.`),
      flag("--workspace DIR", "The folder the agent works in."),
      flag("--model VALUE", "`provider:model`, `offline` or `client`."),
      flag(
        "--key WHERE",
        "Place for the model's key from this environment: client (its configuration), keychain (of the system) or environment (unchanged).",
      ),
      flag(
        "--approvals WHAT",
        "Calls that you approve: usual (changes in the folder, all commands), all (other changes too), files (changes, and commands outside a sandbox) or none (only commands outside a sandbox).",
      ),
      flag(
        "--sandbox HOW",
        "How commands run: auto (in a sandbox if available, otherwise each approved), only (in a sandbox) or off.",
      ),
      flag("-y, --yes", "Don't prompt; use the detected defaults."),
    ],
    run: async (args) => (await import("./init.ts")).runInit(args),
  },
  {
    usage: "install CLIENT",
    summary: `Add this server to a client's configuration: ${CLIENT_NAMES.join(", ")}.`,
    configurable: false,
    positionals: 1,
    flags: [
      flag("--workspace DIR", "The folder the agent works in."),
      flag("--model VALUE", "`provider:model`, `offline` or `client`."),
      flag(
        "--env KEY[=VALUE]…",
        "A variable for the server, such as the model's key. Without VALUE it is copied from this environment, unless the client can ask for it or refer to it. May be repeated.",
      ),
      ...["approvals.write", "approvals.execute", "execute.mode"].map(settingFlag),
      PROJECT,
      flag("-y, --yes", "Don't prompt."),
      flag("--print", "Show the change without writing it."),
    ],
    run: async (args) => (await import("./install.ts")).runInstall(args),
  },
  {
    usage: "uninstall CLIENT",
    summary: "Remove this server from a client's configuration, and change nothing else.",
    configurable: false,
    positionals: 1,
    flags: [PROJECT],
    run: async (args) => (await import("./install.ts")).runUninstall(args),
  },
  {
    usage: "doctor",
    summary: "Check everything that a run needs, and send one request to the model's provider.",
    examples: ["doctor", "doctor --offline"],
    flags: [
      flag(
        "--offline",
        "Skip requests to the model's provider, to folders on other servers and to the OAuth issuer.",
      ),
    ],
    run: async (args) => (await import("./doctor.ts")).runDoctor(args),
  },
  {
    usage: "models ACTION",
    summary: "List model providers, and add the package of one to this program.",
    settings: ["dataDir"],
    positionals: 2,
    actions: [
      action("list", "List providers, whether they are built in or installed, and the key each needs.", {
        examples: ["models list"],
      }),
      action("add PROVIDER", "Install the package of a provider into the data folder, with npm.", {
        examples: ["models add bedrock"],
      }),
    ],
    run: async (args) => (await import("./models.ts")).runModels(args),
  },
  {
    usage: "keys [ACTION]",
    summary: "List, store or delete provider keys in the keychain of this system.",
    configurable: false,
    // A key passed as an argument is refused, and the message does not repeat it.
    positionals: Infinity,
    actions: [
      action("list", "List the names of stored keys, one per line.", {
        examples: ["keys list"],
      }),
      action("set KEY", "Store a key: asks for it without showing it, or reads it from standard input.", {
        examples: ["keys set ANTHROPIC_API_KEY", "keys set OPENAI_API_KEY < key.txt"],
      }),
      action("forget KEY", "Delete a key from the keychain.", {
        examples: ["keys forget ANTHROPIC_API_KEY"],
      }),
    ],
    run: async (args) => (await import("./keys.ts")).runKeys(args),
  },
  {
    usage: "login SERVER",
    summary: "Log in to another MCP server in the browser; the agent may use its tools.",
    examples: ["login linear", 'login linear --scope "read write"'],
    settings: ["mcpServers", "dataDir"],
    positionals: 1,
    flags: [
      flag(
        "--scope SCOPES",
        "Permissions to ask for, separated by blanks. Default: those that the server asks for.",
      ),
      flag("--no-browser", "Only print the address."),
    ],
    run: async (args) => (await import("./login.ts")).runLogin(args),
  },
  {
    usage: "logout SERVER",
    summary: "Delete the log-in for another MCP server, and revoke it there.",
    settings: ["dataDir"],
    positionals: 1,
    run: async (args) => (await import("./login.ts")).runLogout(args),
  },
  {
    usage: "graph",
    summary: "Print the agent graph as a Mermaid diagram.",
    settings: ["workspace", "execute.mode"],
    run: async (args) => {
      const { withLocalRuns } = await import("./local-runs.ts");
      const { say } = await import("./output.ts");
      return withLocalRuns(args, false, async ({ runs }) => say((await runs.agents.drawing()).trimEnd()));
    },
  },
  {
    usage: "storage copy",
    summary: "Copy runs, conversations and memories from the data folder to the Postgres of --storage.",
    settings: ["dataDir", "storage", "storageSchema"],
    positionals: 1,
    run: async (args) => (await import("./storage.ts")).runStorage(args),
  },
  {
    usage: "completions SHELL",
    summary: "Print a script that completes commands, flags and runs in bash, zsh, fish or powershell.",
    examples: ["completions bash", "completions zsh", "completions fish", "completions powershell"],
    configurable: false,
    // The scripts pass all words of a line.
    positionals: Infinity,
    run: async (args) => (await import("./completions.ts")).runCompletions(args, COMMANDS),
  },
];

/** In the order that help lists them. */
export const COMMANDS: readonly Command[] = PARTS.map((parts) => ({
  name: parts.usage.split(" ", 1).join(),
  flags: [],
  configurable: true,
  ...parts,
}));
