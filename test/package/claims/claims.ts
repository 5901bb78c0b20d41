/**
 * A reason why a sentence has no test: `advice` asks the reader to do something, `policy` says how we treat reports and
 * releases, `definition` names an attacker or what is worth protecting, and `outside` is a fact about people or other
 * software that this program cannot change.
 */
type NotAClaim = "advice" | "policy" | "definition" | "outside";

/** The titles of tests by their file, each of which fails if the sentence, or a part of it, is false. */
type Tests = Readonly<Record<string, readonly string[]>>;

/** The sentences of SECURITY.md and of the safety section of README.md, as `sentences` writes them. */
export const CLAIMS: Readonly<Record<string, Tests | NotAClaim>> = {
  "Please do not open a public issue for it.": "advice",
  "Describe what an attacker can do and from which position (the threat model names them), how to reproduce it (version, operating system, client, configuration without keys), and the output of `deepagent-mcp doctor`.":
    "advice",
  "Use the offline model or a scripted one if you can.": "advice",
  "We answer whether we can reproduce it, then publish a fix with an entry in CHANGELOG.md, and credit if you want it.":
    "policy",
  "A model that is misled into asking for something harmful is not a vulnerability by itself; approvals exist for that case.":
    "policy",
  "It is a vulnerability if something happens without a required approval, if the approved call differs from what was shown, or if data leaves by a way that this page calls closed.":
    "policy",
  "newest release: yes": "policy",
  "older releases: no: update": "policy",
  "The program has its JavaScript packages inside (050), so a vulnerability in one of them is fixed by a release of ours.":
    {
      "test/package/package.test.ts": ["brings at most two packages with it, and asks for no other"],
      "test/package/audit.test.ts": ["has a bill of materials with exactly the packages that are bundled"],
    },
  "`dist/sbom.cdx.json` in the package and the image lists them with versions and licences, in CycloneDX, because scanners do not see into a bundle.":
    {
      "test/package/audit.test.ts": ["has a bill of materials with exactly the packages that are bundled"],
      "test/package/package.test.ts": ["holds what runs and what a reader needs, and no sources or tests"],
      "test/package/containers.test.ts": ["what the Dockerfile copies is there, and is sent to the builder"],
    },
  "A workflow runs `npm audit --omit=dev` every day and opens an issue for a finding in a bundled package, or in one that npm installs with ours.":
    {
      "test/package/workflows.test.ts": ["the audit runs every day, and opens an issue for what it finds"],
      "test/package/audit.test.ts": [
        "names vulnerable packages with their advisories",
        "npm counts the packages in the bundle as those of users, and no others",
      ],
    },
  "The promise, counted from the day on which the package has a fixed version: a patch release within 7 days for a finding that is high or critical, and within 30 days for any other.":
    "policy",
  "If there is no fixed version after 7 days, the issue says whether the program is affected, and how to avoid it.":
    "policy",
  "Files and programs of the machine outside the workspace, and files in the workspace from changes that nobody approved.":
    "definition",
  "The decision: only a person approves, and only what they were shown.": "definition",
  "Secrets: keys of models and other MCP servers, tokens, `state.key`, the password of Postgres.":
    "definition",
  "Runs: tasks, conversations, answers, journals, memories and thread files of each principal.": "definition",
  "The service: that other runs continue, and that acknowledged work is not lost or done twice.":
    "definition",
  "the person at the machine, by `open`, `run`, `runs` or a client's form: everything with runs of the data directory: start, decide, read, delete":
    {
      "test/commands/runs/runs.test.ts": [
        "list has the newest first, and show tells what an open approval would do",
        "an answer is stored, and the run goes on with it",
        "old runs are forgotten as configured, and none without a limit",
      ],
      "test/server/page/page-server.test.ts": [
        "a person starts one, tells it something, cancels it and goes on with it",
        "files are read, and memories found, changed and deleted by a person",
      ],
    },
  "the model of the client: start, look at, message and cancel runs of its principal; not decide, unless `approvals.allowModelAnswers` says so":
    {
      "test/server/tools/handlers.test.ts": [
        "%s: a model may not answer unless the user allows it",
        "%s: a run of someone else looks like one that does not exist",
      ],
      "test/server/tools/listing.test.ts": [
        "answer_deep_agent is listed in %j only where models may pass answers on",
      ],
    },
  "the agent's model: call its tools: read and plan freely, write scratch files and memories, ask a person for the rest":
    {
      "test/commands/compose/write-gates.test.ts": [
        "asks for changes in the workspace and in folders on other servers, and for nothing else",
        "asks for %j",
        "does not ask for %j",
      ],
    },
  "a token over HTTP: what its scopes say (`run`, `approve`, `read`), for its principal only": {
    "test/server/auth/scopes.test.ts": ["%s: a token can do what its scopes say, and no more"],
    "test/server/auth/isolation.test.ts": [
      "runs, threads, files and memories of a principal do not exist for another",
    ],
  },
  "a browser with a link that a model has seen: look at one run": {
    "test/server/page/page-server.test.ts": [
      "a link from a tool result shows the call and cannot decide",
      "a link that only looks starts nothing, and a session of one run sees no other screen",
    ],
  },
  "the operator (configuration, environment, data directory, database): everything": "definition",
  "The agent's model is malicious or was misled, and makes any calls it likes.": "definition",
  "Changes in the workspace, commands, and tools of other servers not marked read-only wait for a person.": {
    "test/commands/compose/write-gates.test.ts": [
      "asks for changes in the workspace and in folders on other servers, and for nothing else",
      "asks for %j",
      "asks for every command that has no sandbox, whatever is configured",
    ],
    "test/agent/mcp-tools/mcp-tools.test.ts": ["run free when they only read, and after approval when not"],
    "test/runs/approvals.test.ts": [
      "a gated call waits as an approval without holding a slot, and runs once it is approved",
    ],
  },
  "Nothing is approved by waiting, by a closed form or by an error.": {
    "test/runs/deadline.test.ts": [
      "what nobody decides in time is denied, the model is told, and the run goes on",
    ],
    "test/server/delivery/approvals.test.ts": [
      "%s: a closed form is asked again by the next check",
      "%s: nonsense in a form decides nothing",
    ],
    "test/agent/calls/approvals/gates.test.ts": [
      "of a preview that fails is that of the arguments, and what failed is logged",
    ],
  },
  "The calling model has no tool to decide with, and a link that it is given opens a page that cannot.": {
    "test/server/tools/listing.test.ts": [
      "answer_deep_agent is listed in %j only where models may pass answers on",
    ],
    "test/server/page/page-server.test.ts": ["a link from a tool result shows the call and cannot decide"],
  },
  "An approval holds for the digest of what was shown; if the file, the arguments or a link on the path differ, it is asked again.":
    {
      "test/agent/calls/approvals/bound.test.ts": [
        "of a file that changed meanwhile is not made: the person is asked again with the new diff",
        "through a link that leads elsewhere by now is asked about again",
        "is not made for another call than the one that was shown",
      ],
    },
  '"The same for this run" is never broader than the same path, the same arguments or, for pages of the web, the same host.':
    {
      "test/agent/calls/same-calls.test.ts": [
        "a command is the same only with every argument, and under the same confinement",
        "changes of a file are the same by their normalised path",
        "different arguments of other tools are never the same",
      ],
      "test/runs/web.test.ts": [
        "a host that was approved for the run is not asked about again, also after the server was killed",
      ],
    },
  "Only a surface that shows the whole call approves it: a form, a report or a page that shows a part offers no approval, and the server refuses one that comes from there.":
    {
      "test/server/delivery/too-long-for-a-form.test.ts": [
        "%s: a form too small for the call approves nothing",
        "%s: a model approves nothing that its report does not show whole",
      ],
      "test/server/page/whole-call.test.ts": [
        "is approved only by the form below all of it",
        "the proof of one session is worth nothing in another, nor for another call",
      ],
    },
  "The page and the terminal show everything.": {
    "test/server/page/whole-call.test.ts": ["a session that only looks sees all of it and has no form"],
    "test/commands/terminal/approval.test.ts": [
      "is shown whole in a terminal, with its destination",
      "leaves nothing of a text out, and is never wider than the terminal",
    ],
  },
  "What is shown is what is bound, to the byte: line ends, byte order marks, hidden characters, long runs of blanks and blanks at the ends of lines and names have visible marks; the file that links lead to has a line of its own, in full.":
    {
      "test/core/text.test.ts": [
        "nothing in a shown text is hidden, pushes what follows out of sight or ends a line unseen",
      ],
      "test/tools/diff-preview.test.ts": [
        "a change of line ends is a change of each line, and is counted",
        "no change of bytes is shown as none, and none has the same effect as another",
      ],
      "test/tools/call-preview.test.ts": [
        "a change through a link with a long name names the file that changes, on a line of its own",
      ],
    },
  "Names, tasks, paths and titles of models and other servers stand in forms and reports as plain text: no link, image or emphasis of theirs is live.":
    {
      "test/server/quoting.test.ts": [
        "no text of others becomes Markdown inside of a sentence",
        "a block of text of others is one code block, whatever is in it",
      ],
    },
  "The name that the operator gave a server comes before the texts of that server.": {
    "test/server/question-form.test.ts": [
      "the form of another MCP server is named as its own, whatever its texts say",
    ],
  },
  "Paths, patterns and links stay in the workspace; data directory, configuration and own code are hidden in it.":
    {
      "test/backends/filesystem/filesystem-links.test.ts": ["to the outside are refused by every method: %s"],
      "test/backends/filesystem/filesystem-race.test.ts": ["give nothing away"],
      "test/backends/glob/glob.test.ts": ["refuses to climb with %j"],
      "test/e2e/hidden-data.test.ts": [
        "neither the agent nor a client reads the data directory and the configuration below the workspace",
        "a command in the sandbox finds an empty folder in their place",
      ],
      "test/config/load.test.ts": [
        "finds what of this program no agent may see: data, compiled code, the file it is configured by",
      ],
    },
  "`files.hide`, `files.readOnly` and `permissions` hold for the path of a call and for the place that links on it lead to, in every file tool, on the page, in resources and for subagents.":
    {
      "test/e2e/settings.test.ts": [
        "hidden and read-only files, and rules for paths: the agent, resources and commands keep to them",
      ],
      "test/backends/policy/policy-links.property.test.ts": [
        "what can be read, listed and found is what no rule hides, by name and by place",
        "no change reaches a hidden or read-only file, whatever path it takes",
      ],
      "test/agent/calls/permissions.test.ts": [
        "deny by the place too, without asking anybody",
        "of a subagent hold for the place as well",
      ],
      "test/commands/compose/file-tree.test.ts": [
        "keeps links of the workspace from leading around the rules for files",
      ],
    },
  "A link to a hidden file does not exist.": {
    "test/backends/policy/policy-links.test.ts": ["hide links to hidden files, with descriptor paths: %s"],
  },
  "A hard link to a hidden file cannot be read or changed, and is left out of the copy in which a run proposes its changes; one to a read-only file cannot be changed.":
    {
      "test/backends/policy/policy-links.test.ts": [
        "do not have to be links: a second name of a hidden file cannot be read either",
        "a hard link to a file that may not be changed is left alone, and another one is changed under both names",
      ],
      "test/proposals/copies.test.ts": [
        "holds for other names of a file in the copy, also for those that come later",
        "keeps a review from giving the agent such a file, and from showing it",
        "applies nothing to another name of a file that may not be changed",
      ],
    },
  "A file of a proposed change is applied only in the version that was shown, and a long one only after it was read to the end.":
    {
      "test/commands/runs/review.test.ts": [
        "by %s exactly that change is applied, and no other one",
        "a long file is applied once it was shown to its end",
      ],
      "test/server/page/page-proposed.test.ts": [
        "makes the form stale: nothing is applied, the other choices stay, and the conflict is shown",
        "is not chosen before it was read to its end, and is not taken either",
      ],
    },
  "Making a branch of a proposed change runs no program that the repository names: no filter, driver, hook, monitor, signing or credential program, editor, alias or program of a remote.":
    {
      "test/proposals/git-programs.test.ts": ["%s is not run for a branch"],
    },
  "Git sees the objects and refs of the repository from a Git directory of its own.": {
    "test/proposals/git-programs.test.ts": [
      "%s is not run for a branch",
      "makes a branch of a linked working tree, of packed refs and of a split index",
    ],
  },
  "A file that needs a filter program is not changed on a branch.": {
    "test/proposals/git-programs.test.ts": [
      "leaves what a filter made of a file as it is, and refuses to change such a file",
    ],
  },
  "No command runs in the workspace while such a rule is set.": {
    "test/e2e/safety.test.ts": ["no command runs in a workspace whose files a rule hides or protects"],
  },
  "Commands run in Bubblewrap (Linux) or Seatbelt (macOS) without network, other files and the server's environment.":
    {
      "test/backends/sandbox/bubblewrap.test.ts": [
        "has no network, not even to this machine",
        "shows no files of users and of the system's secrets",
        "has an environment without the server's variables",
      ],
      "test/backends/sandbox/seatbelt.test.ts": [
        "forbids everything that no rule allows, network above all",
        "lets commands read programs, the folder and what is given, and no homes",
      ],
    },
  "Bubblewrap adds a filter of system calls and limits of memory and processes.": {
    "test/backends/sandbox/bubblewrap.test.ts": [
      "makes no refused call (needs perl)",
      "limits memory, scratch space and files of dying programs",
      "limits the number of processes${limitReason}",
    ],
  },
  "Commands read the system's programs: `/usr`, `/nix/store`, and a fixed list of `/etc`.": {
    "test/backends/sandbox/program-folders.test.ts": [
      "leaves the folders of the system alone, and takes parts of /usr/local",
    ],
    "test/backends/sandbox/bubblewrap.test.ts": ["shows no files of users and of the system's secrets"],
  },
  "Of other packages (`/opt`, `/usr/local`, Homebrew, version managers) they read the parts that programs on the search path need, such as `bin`, `lib` and `share`, and no `etc`, `conf`, `var`, `data` or unknown folder.":
    {
      "test/backends/sandbox/program-folders.test.ts": [
        "shows what %s needs, and neither its settings nor its data",
        "a program of /opt works, and no settings or data of /opt and /usr/local are seen",
      ],
      "test/backends/sandbox/seatbelt.test.ts": [
        "lets commands read added packages as far as their programs need them",
      ],
    },
  "A version manager with shims (asdf, mise, nodenv, pyenv, rbenv, Volta, rustup) is shown with all versions that it has installed, each folder whole, with settings and data in it.":
    {
      "test/backends/sandbox/program-folders.test.ts": [
        "knows %s",
        "lets commands find the programs, and nothing beside them",
      ],
    },
  "They never see the home folder, nor what lies beside the programs in `~/.local` and `~/.cargo`.": {
    "test/backends/sandbox/program-folders.test.ts": [
      "knows %s",
      "lets commands find the programs, and nothing beside them",
    ],
  },
  "Files that start programs later (hooks and settings of Git, settings of editors and agents) cannot be changed by a sandboxed command that nobody approved, and are asked about even with `approvals.write: none`.":
    {
      "test/backends/sandbox/starters.test.ts": ["cannot change %s"],
      "test/commands/compose/run-gates.test.ts": ["asks about %s"],
    },
  "Sandboxed commands see Git's folder of a worktree's repository and can change it, but never its hooks and settings, not even if a person approved the command.":
    {
      "test/backends/sandbox/git-view.test.ts": [
        "commits in a worktree, as the person",
        "cannot change the repository's settings (approved: %s)",
      ],
    },
  "In a folder inside a repository they can read Git's folder and change nothing in it.": {
    "test/backends/sandbox/git-view.test.ts": [
      "reads the history in a folder of a repository, and changes nothing of it",
    ],
  },
  "A file `.git` that the agent wrote leads nowhere, because the repository has to name the worktree, too.": {
    "test/backends/sandbox/git-view.test.ts": [
      "gitView follows no file of an agent to a folder that does not name the worktree",
    ],
  },
  "Neither is visible with `workspaceFolder`.": {
    "test/e2e/safety.test.ts": ["commands in a folder of a principal see no repository around it"],
  },
  "`web_fetch` reaches the public internet only: addresses are judged on the socket and at each redirect, and it sends no credentials or cookies.":
    {
      "test/web/page-reader.test.ts": [
        "no redirect and no name leads to a private address",
        "a name that is looked up again is judged again, and the socket uses what was judged",
        "a request names the program and carries nothing else",
      ],
    },
  "A person approves each host, unless `web.mode` says otherwise, and a redirect to another host ends the call.":
    {
      "test/agent/layers/web.test.ts": [
        "a person is asked about a page, and sees its host and its whole address",
        "a redirect to another host is left to the next call where a person is asked, and followed otherwise",
      ],
      "test/e2e/web.test.ts": ["a person approves a host once, in the form of their client"],
    },
  "Limits on tokens, money, time and steps end a run, subagents included.": {
    "test/agent/budget/limits.test.ts": [
      "at its limit of money, by the price of the model that answered",
      "when more tool calls are asked for than its limit; those beyond do not run",
      "when its time is over, also in the middle of a model call",
      "what a subagent uses counts for the run, while it works",
    ],
    "test/agent/budget/limits/parallel-budget.test.ts": ["is exceeded by at most one reply: %d tokens"],
  },
  "A call with an outside effect is not repeated after a crash.": {
    "test/runs/effects.test.ts": ["is not made again if it %ss: the model is told"],
  },
  "Reading needs no approval.": {
    "test/commands/compose/write-gates.test.ts": [
      "asks for changes in the workspace and in folders on other servers, and for nothing else",
    ],
  },
  "Everything in the workspace can reach the provider of the model, and every MCP server that may be called unasked.":
    {
      "test/commands/compose/write-gates.test.ts": [
        "asks for changes in the workspace and in folders on other servers, and for nothing else",
      ],
      "test/agent/mcp-tools/mcp-tools.test.ts": ["run free when they only read, and after approval when not"],
    },
  "Give the agent a folder without secrets.": "advice",
  "A request to a host tells that host its address.": "outside",
  'After "approve for this run" for a host the model can tell it anything that it knows, and with `web.mode: allow` any host of the internet; a search tells the configured provider its query.':
    {
      "test/runs/web.test.ts": [
        "a host that was approved for the run is not asked about again, also after the server was killed",
      ],
      "test/agent/layers/web.test.ts": [
        "a redirect to another host is left to the next call where a person is asked, and followed otherwise",
      ],
      "test/web/search.test.ts": ["Tavily is asked with its key and gives pages in our form"],
    },
  "Behind a proxy (`NODE_USE_ENV_PROXY`), the proxy decides which addresses are reached.": {
    "test/web/proxy.test.ts": ["a proxy connects to public names, to its own, and to no private one"],
  },
  "A hidden file under another name that no link explains: a copy, or the target of a link with a hidden name deep in the tree (`x/.env -> ../plain.txt` hides the link, not `plain.txt`).":
    {
      "test/e2e/safety.test.ts": [
        "a copy of a hidden file can be read, and the target of a deep link with a hidden name",
      ],
    },
  "The name of a hard link is listed.": {
    "test/e2e/safety.test.ts": ["the name of a hard link to a hidden file is listed"],
  },
  "A file outside the workspace that has a hard link in it, or that is mounted into it: a change in the workspace changes it.":
    {
      "test/backends/filesystem/filesystem.test.ts": [
        "changes a file with several names under all of them, and gives those that it finds",
      ],
    },
  "The file tools make no hard links, and the question about a change says that the file has other names.": {
    "test/agent/calls/approvals/bound.test.ts": ["with several names says so, before and after"],
    "test/e2e/safety.test.ts": ["the file tools make no hard links"],
  },
  "Rules in a sandbox of `execute.sandbox`: its file tools judge paths there by name.": {
    "test/e2e/safety.test.ts": ["rules in a sandbox judge paths by name"],
  },
  "A person who approves without reading.": "outside",
  "`run --yes`, `runs answer --approve`, `demo --yes`, and `runs apply ID` in a script without a review before it, approve everything unseen.":
    {
      "test/commands/runs/review.test.ts": [
        "a script applies a change that was not shown here only if it names the run by its id",
      ],
      "test/commands/run/run.test.ts": [
        "--yes works to the end; a pipe gets the answer, and standard error the rest",
      ],
      "test/commands/demo/demo.test.ts": ["works on the folder itself with --yes"],
      "test/commands/runs/runs.test.ts": ["an answer is stored, and the run goes on with it"],
    },
  "Letters that look like others, such as Cyrillic ones in a Latin name.": {
    "test/e2e/safety.test.ts": ["letters that look like others are shown as they are"],
  },
  "Only what cannot be seen at all is marked.": {
    "test/core/text.test.ts": [
      "nothing in a shown text is hidden, pushes what follows out of sight or ends a line unseen",
      "the name %j is shown as %s",
    ],
    "test/e2e/safety.test.ts": ["letters that look like others are shown as they are"],
  },
  "Commands without a sandbox: they have all rights of the user, and can read the server's environment through `/proc` and the data directory.":
    {
      "test/e2e/safety.test.ts": [
        "commands without a sandbox read what the user may read, and the environment of the server",
      ],
    },
  "Each one is asked about; `--execute sandbox` or `off` rules them out.": {
    "test/commands/compose/write-gates.test.ts": [
      "asks for every command that has no sandbox, whatever is configured",
    ],
    "test/e2e/commands.test.ts": [
      "each needs a person, whatever is configured",
      "%j: there is no tool for them",
    ],
  },
  "What a command leaves in the workspace and a person runs later, such as a changed script, a new repository in a new folder, or anything that an approved command wrote.":
    { "test/backends/sandbox/starters.test.ts": ["may change all of it once a person approved it"] },
  "A model that misreports in words what it did.": "outside",
  "The journal and the approvals are the record.": {
    "test/runs/store.property.test.ts": [
      "the database itself refuses to rewrite the journal, an end or a decision",
    ],
    "test/server/page/page-steps.test.ts": ["tells what a person changed from what the agent wrote"],
  },
  "A file of the workspace, a page of the web, an answer of another MCP server or an output of a command holds instructions for the model, markup, control characters, or is very large.":
    "definition",
  "Instructions can only lead to calls, and the section above bounds those.": {
    "test/e2e/safety.test.ts": ["texts that look like calls, decisions or messages do nothing by themselves"],
    "test/agent/templates.property.test.ts": [
      "in results of tools reaches the model as it is",
      "stays inside its slot of the system prompt, and changes nothing around it",
    ],
    "test/agent/calls/approvals.property.test.ts": [
      "hold for any batch, any tree of subagents, answers in any order, and processes that end anywhere",
    ],
  },
  "Page and MCP App write HTML through one template that escapes.": {
    "test/server/page/html.test.ts": ["no text becomes markup, in content or in an attribute"],
    "test/server/page/render.test.ts": [
      "text of models, files, tools and people is shown as it is and is never markup",
    ],
    "test/server/app/run-app.test.ts": ["a refusal is told, and text of a model is not run"],
  },
  "The browser formats Markdown: HTML in it is text, and links lead to the web and to mailboxes only.": {
    "test/server/content/markdown.test.ts": [
      "%j gives nothing but our elements",
      "so does any mixture of attacks and marks",
    ],
  },
  "Control characters and overrides of the writing direction are taken out, and shown as escapes in Markdown and in the terminal.":
    {
      "test/server/page/html.test.ts": [
        "characters that turn the writing direction around are left out, absent parts are empty",
      ],
      "test/server/content/markdown.test.ts": ["code keeps its line breaks and shows what hides in it"],
      "test/commands/terminal/printer.test.ts": [
        "nothing in a text of others steers the terminal, also inside a style of ours",
        "no command writes past the printer",
      ],
      "test/commands/terminal/hostile-texts.test.ts": ["no command lets a text of others steer the terminal"],
    },
  "HTML is parsed in a thread without an environment, with bounds of time and heap.": {
    "test/web/pdf.test.ts": ["the thread of HTML has no environment, and ends at its time and its memory"],
    "test/web/page-reader.test.ts": [
      "bombs, endless bodies and giant pages are cut, and slow ones end",
      "a page that cannot be turned into Markdown in bounds is plain text",
    ],
  },
  "PDFs are read in a process without an environment that is killed at its time limit and at 512 MB of memory in all, and that unpacks no stream beyond 100 MB.":
    {
      "test/web/pdf.test.ts": [
        "the thread of a process has its input and no environment",
        "the process of a PDF gets no variable of this one",
        "%s count against the memory of a process",
        "a process that has not ended in its time is killed, and nothing of its document is read",
        "a stream that unpacks to 300 MB is not read to its end",
        "nor are the streams of a page that unpack to more together",
        "a process whose thread is busy ends with its parent",
      ],
    },
  "Bodies are bounded after decompression.": {
    "test/web/page-reader.test.ts": [
      "bombs, endless bodies and giant pages are cut, and slow ones end",
      "compressed pages are read, in two layers at most",
    ],
  },
  "The text of a page stands in a block that it cannot end, with its address.": {
    "test/agent/layers/web.test.ts": [
      "an approved page is quoted with its address, title and day, and cannot end the quotation",
    ],
  },
  "What is rendered, searched, compared and parsed is bounded before it is looked at, and read in work that is linear in its length (robots.txt, `.gitignore`, patterns, front matter, JSON, messages), so one text cannot hold up the server.":
    {
      "test/core/linear-parsers.test.ts": [
        "take work in proportion to their number",
        "a pattern of many %s judges a name with few looks",
      ],
      "test/core/linear-expressions.test.ts": [
        "take linear time, whatever text they meet",
        "are refused when they are quadratic",
      ],
      "test/server/content/highlight.test.ts": ["what is too long stays plain"],
      "test/server/content/markdown.test.ts": [
        "what is too long, or nests so deeply that a part would be left out, is shown as it was written",
      ],
      "test/agent/mcp-tools/hostile.test.ts": [
        "cannot make the check of arguments and answers take for ever by a pattern",
      ],
      "test/tools/diff-preview.test.ts": ["long lines and long diffs are cut, which they say"],
    },
  "Files of the workspace have no powers of the operator: a subagent file chooses its model only among those that the operator named, and all skills and subagents together have 8,000 characters of the prompt, the operator's first.":
    {
      "test/commands/compose/subagent-tools.test.ts": [
        "subagents of files use models that the operator named, and the run tells once which others they asked for",
      ],
      "test/agent/layers/listing.test.ts": [
        "of %d with descriptions of %d characters have their room together",
        "have those of earlier sources first, and a long one leaves room for the others",
      ],
    },
  "`install`, `uninstall` and `init` follow no link out of a project.": {
    "test/commands/install/install.test.ts": ["%s is neither read nor written (%s)"],
  },
  "Questions of other MCP servers are shown to a person under the name that the operator gave the server, and approve nothing; their requests for a model are refused.":
    {
      "test/agent/mcp-tools/elicitation.test.ts": [
        "a server of 2026 asks a person; the call is made again with the answer, after a restart too",
        "a person may decline what a server asks",
      ],
      "test/agent/mcp-tools/hostile.test.ts": [
        "is refused what it asks of a model or the machine in the middle of a call, and of a person where nobody can be asked",
      ],
    },
  "A server can ask at most 5 questions in a call and 20 in a run; then the call fails.": {
    "test/agent/mcp-tools/questions-without-end.test.ts": [
      "a call that asks again and again fails, the same question: %s",
      "calls at once and one after the other have the limit of their run, across a restart too",
      "a flood of questions in the middle of a call ends it, withdraws them, and is one message of news",
    ],
  },
  "The secrets that such a server was given in `env` and `headers`, and the tokens and client secret of a log-in, are blacked out in all that it sends: results, errors, descriptions, links, questions with their forms and addresses, and output that is logged.":
    {
      "test/agent/mcp-tools/answers.test.ts": [
        "is quoted with what does not fit, never as having refused, and without its secrets",
      ],
      "test/agent/mcp-tools/mcp-tools.test.ts": [
        "gets a clean environment and what is configured, which nobody is shown",
      ],
      "test/agent/mcp-tools/redactor.test.ts": [
        "values of JSON are redacted in names, texts and numbers, and nothing else changes",
        "secrets that are added are hidden, and short ones are words",
      ],
    },
  "They are found as they are, escaped (JSON, addresses, HTML), in base64 at any alignment, in hexadecimal digits and in UTF-16.":
    {
      "test/agent/mcp-tools/redactor.test.ts": [
        "is hidden, and the text around it stays",
        "media stay as they are, unless a secret is among their bytes",
      ],
    },
  "A secret that another MCP server sends in several pieces, compressed, encrypted, or inside the pixels of an image is not found.":
    "outside",
  "Secrets shorter than 6 characters, and plain words and paths under harmless names, do not count.": {
    "test/agent/mcp-tools/names.test.ts": [
      "values of a server count as secrets, except plain words and paths under harmless names",
    ],
    "test/agent/mcp-tools/redactor.test.ts": ["secrets that are added are hidden, and short ones are words"],
  },
  "Memories need no approval: an instruction that gets into one is read again in later conversations.": {
    "test/commands/compose/write-gates.test.ts": [
      "asks for changes in the workspace and in folders on other servers, and for nothing else",
    ],
    "test/agent/layers/memory.test.ts": [
      "keeps its bytes during a run, whoever changes it, and is read anew by the next one",
    ],
  },
  "The page lists and deletes them.": {
    "test/server/page/page-server.test.ts": [
      "files are read, and memories found, changed and deleted by a person",
    ],
  },
  "Skills, subagents and commands in the workspace and in the folders of its repository above it (`skills/`, `.claude/`, `.github/`, `.deepagent/` and others) are instructions of that workspace.":
    {
      "test/commands/compose/agent-files.test.ts": [
        "the agent delegates to a subagent that a file of the workspace describes",
      ],
      "test/e2e/settings.test.ts": [
        "instructions from a setting and a file, skills of the workspace and of the user",
      ],
    },
  "In a folder of a stranger they are a stranger's; their calls are asked about like all others.": {
    "test/commands/compose/agent-files.test.ts": [
      "files of the workspace give themselves no rights: their calls are asked about like all others",
    ],
  },
  "A workspace skill replaces one of yours with the same name.": {
    "test/e2e/safety.test.ts": ["a skill of the workspace replaces one of the person with the same name"],
  },
  "A server that marks a tool read-only is believed.": {
    "test/agent/mcp-tools/mcp-tools.test.ts": ["run free when they only read, and after approval when not"],
  },
  '`"approve": "all"` asks about each of its calls.': {
    "test/agent/mcp-tools/mcp-tools.test.ts": ["are gated, and chosen, as configured"],
  },
  "An answer may hold links.": { "test/server/content/markdown.test.ts": ["%j"] },
  "The page loads nothing from them, but a person can follow one, and a client that shows pictures of Markdown may load them.":
    {
      "test/server/page/page-server.test.ts": [
        "every answer forbids frames, foreign and inline content, and copies",
      ],
      "test/server/content/markdown.test.ts": ["%j gives nothing but our elements"],
    },
  "A page in the person's browser sends requests to this machine.": "definition",
  "The page: exact `Host` and `Origin`, no frames, no referrer, a content policy without anything inline or from elsewhere.":
    {
      "test/server/page/page-server.test.ts": [
        "%s is refused",
        "every answer forbids frames, foreign and inline content, and copies",
      ],
      "test/server/page/page-browser.test.ts": [
        "another site can neither frame the page nor decide from its own forms",
      ],
    },
  "A link works once.": {
    "test/server/page/page-server.test.ts": [
      "looking at a link uses nothing up, opening it does, and then it opens nothing more",
    ],
  },
  "The page on this machine has no cookie.": {
    "test/server/page/page-server.test.ts": [
      "the code stands where no server and no referrer sees it, and nothing sets a cookie",
    ],
  },
  "Its tab has a secret, which its script sends in a header to its own port.": {
    "test/server/page/page-server.test.ts": [
      "a decision without origin, without the tab's secret or not as a form is refused",
    ],
  },
  "Documents of other sites and of other ports cannot send that header, and a link that leads to them takes nothing along.":
    {
      "test/server/page/page-session.test.ts": [
        "a link in an answer to another port of this machine takes nothing along",
      ],
      "test/server/page/page-browser.test.ts": [
        "another site can neither frame the page nor decide from its own forms",
      ],
    },
  "The page over HTTPS has a `__Host-` cookie, which counts only together with the header that other sites cannot send.":
    {
      "test/server/page/log-in.test.ts": [
        "over HTTPS the session is a cookie of this host alone, which ends and does not show the token",
        "forms of other sites change nothing: %s",
      ],
    },
  "MCP over HTTP: unknown `Host` names (DNS rebinding) and foreign `Origin`s get 403; only `http.allowedOrigins` may read answers.":
    {
      "test/server/http/http.test.ts": ["answers %s with 403 and the setting %s before anything else"],
      "test/server/http/robustness.test.ts": [
        "may read answers when they are configured, after asking without a token",
        "are not let in from %s",
      ],
    },
  "Does not protect: any program on this machine can serve a page with a loopback origin, which may send requests to a server without tokens.":
    { "test/server/http/http.test.ts": ["accepts loopback and configured hosts and origins with any port"] },
  "If a model controls a browser in which a person has opened a link that can approve, the model can press its buttons.":
    "outside",
  "A server writes nothing more, and takes no other key, when a link on the way to its data directory is changed; it says so, and continues when the link is restored or after a restart.":
    {
      "test/crash/disk.test.ts": [
        "a link to the data directory that is turned to %s: nothing more is written until it is back or the server restarts",
      ],
      "test/storage/database.test.ts": ["writes nothing while a link on the path leads to %s"],
      "test/server/state-key.test.ts": [
        "a server takes no key from a folder that a link leads to since it was started",
      ],
    },
  "Data directory, databases, `state.key` and notes are made for their owner alone (0700, 0600); compiled code and locks are not kept where others can put theirs.":
    {
      "test/storage/database.test.ts": [
        "makes a private file in private folders, with a private log",
        "takes the rights of others away from an existing file",
      ],
      "test/e2e/safety.test.ts": ["the note of a page's address is for its owner alone"],
      "test/server/state-key.test.ts": ["only the owner may read it, also when it was open before"],
      "test/backends/filesystem/process-lock.test.ts": ["does without where no private directory can be had"],
    },
  "The page needs a link with 32 random bytes, or a proof that one can read the key.": {
    "test/server/page/page-server.test.ts": [
      "a code of another server, a changed or an old one opens nothing",
      "whoever has the key of the data folder is given a link, once for each proof, and nobody else",
    ],
    "test/e2e/safety.test.ts": ["the code of a link to the page has 32 random bytes"],
  },
  "Links and secrets of the page end with the server that made them.": {
    "test/server/page/page-server.test.ts": [
      "sessions end with their server, and a changed secret opens nothing",
    ],
    "test/server/page/log-in.test.ts": ["secrets of tabs end with their server, and are no cookies"],
  },
  "A program that listens on another port, or on the same port after the server has ended, gets nothing that any server accepts, also with a page of its own there.":
    {
      "test/server/page/page-session.test.ts": [
        "another program at its port gets nothing of use, and nothing that it answers is shown",
        "a page of another program at its port finds nothing that a later server takes",
      ],
      "test/server/page/page-server.test.ts": [
        "a proof that another listener got at its port before is worth nothing to it",
      ],
    },
  "The open page shows nothing that such a program answers, and sends it nothing that was typed.": {
    "test/server/page/page-session.test.ts": [
      "another server at its port refuses it: the page says how to go on, and keeps what is typed",
      "another program at its port gets nothing of use, and nothing that it answers is shown",
    ],
  },
  "A shared link is good at the port of its server only, for at most seven days, and shows one run without anything that it only read: no results of calls, no unchanged lines of files.":
    {
      "test/server/page/page-shared-reads.test.ts": [
        "no screen, export or stream of a shared link has a text that agents only read",
        "a diff keeps its changed lines with their numbers, and none around them",
      ],
      "test/server/page/page-shared.test.ts": [
        "an expired, revoked, forged, cut or unknown link gets one clear page, and open pages end with it",
        "there are not more links than one can look through, and none for ever",
        "links are of one run and its owner: another principal makes none, and none outlives the run",
        "whoever follows a link sees what the run changed, and no file as it is",
      ],
    },
  "A caller can add supervision to its run and not remove it: a client's model, or a person with a token, cannot choose `direct` where the operator set `changes: \"propose\"`, raise a limit, or name another model than the operator's.":
    {
      "test/server/supervision.property.test.ts": [
        "every argument of every tool that begins or steers a run has a row",
        "whatever a caller chooses, its run is at least as supervised as the operator wants it",
      ],
    },
  "A proof for a link is good once, for one port, and only at a server that had the port before the proof was made.":
    {
      "test/server/page/page-server.test.ts": [
        "whoever has the key of the data folder is given a link, once for each proof, and nobody else",
        "a proof that another listener got at its port before is worth nothing to it",
      ],
    },
  "`serve --http` without tokens listens on loopback for everyone on the machine: any user and any program there may use the agent as its owner.":
    {
      "test/server/http/http.test.ts": [
        "accepts loopback and configured hosts and origins with any port",
        "does not start on %s",
      ],
    },
  "On a shared machine configure `http.tokens`.": "advice",
  "`serve --http` has a fixed port.": {
    "test/server/http/http.test.ts": ["says which port is taken"],
    "test/e2e/safety.test.ts": ["the port of `serve --http` is a setting with a default"],
  },
  "While the server is down, another user can listen there and show a log-in of their own; they get the token that somebody types into it, and a script that their page leaves in the browser for that address (a service worker) stays there.":
    "outside",
  "On a shared machine serve it over HTTPS, whose certificate they do not have.": "advice",
  "Arguments of a process can be seen by others.": "outside",
  "Keys belong into the environment, not into flags.": "advice",
  "Root, and programs of the same user outside the sandbox: they read the data directory and the key, decide, and change the database.":
    "outside",
  "An agent of the client that has a shell of its own is such a program.": "outside",
  "Nothing is encrypted on disk.": {
    "test/e2e/safety.test.ts": ["what a run says is in the files of the data directory as text"],
  },
  "Use an encrypted disk.": "advice",
  "On Windows there are no modes: files have the rights of the folder they are in.": "outside",
  "The default is below the profile of the user; another `--data-dir` has whatever rights that folder gives.":
    { "test/config/load.test.ts": ["keeps data where %s programs do, with %j"] },
  "Every look-up carries the principal; what belongs to another does not exist, with the same answer.": {
    "test/server/auth/foreign.test.ts": [
      "what is said about somebody's own is, to the byte, what is said about nothing",
      "lists, searches, numbers and repeated keys show nothing of anybody else",
    ],
    "test/server/auth/isolation.test.ts": [
      "runs, threads, files and memories of a principal do not exist for another",
    ],
  },
  "Scopes are checked in one place around the service, sessions belong to principal and scopes.": {
    "test/runs/scopes.test.ts": [
      "every method of a handle has its scopes, and nothing else is on it",
      "needs its scope",
    ],
    "test/server/auth/scopes.test.ts": ["%s: a token can do what its scopes say, and no more"],
    "test/server/auth/tokens.test.ts": [
      "a session answers the token that opened it; every other gets what an unknown session gives",
      "owners differ by principal and by scopes, not by their order",
    ],
  },
  "Row-level security of Postgres confines each principal once more (`storageRole`); a server refuses to start if it does not hold.":
    {
      "test/storage/postgres-wall.test.ts": [
        "a statement that forgets its principal sees and changes nothing of others",
        "a role that the policies do not bind is refused, a missing one is named",
      ],
    },
  "Without tokens or OAuth nothing but loopback is listened on.": {
    "test/server/http/http.test.ts": ["does not start on %s"],
    "test/commands/cli.test.ts": ["refuses an address that other machines reach"],
  },
  "Signature, kind, issuer, audience and expiry of OAuth tokens are checked.": {
    "test/server/auth/oauth.test.ts": [
      "%s is refused with the way to a better one",
      "a signed token without expiry is refused",
      "a signed token of the kind %j is refused, because it was issued for another use",
      "a token that was signed by someone else, or by nobody, is refused",
    ],
  },
  "Configured tokens are kept as digests only.": {
    "test/server/auth/tokens.test.ts": [
      "the principal and scopes are those of the entry whose hash matches, of no other",
      "what is passed on about a request does not hold its token",
    ],
    "test/server/auth/command.test.ts": ["a token in the wrong form ends the start, and is not repeated"],
  },
  "A token that introspection finds revoked ends all of that within about 5 seconds, and is refused in new requests after at most 30.":
    {
      "test/server/auth/introspection.test.ts": [
        "what stays open with a token ends within 5 seconds, for one question in that time",
        "open streams of a token are checked together, by one question that no earlier answer replaces",
        "an answer holds for a short time: one question for many requests, also at once",
      ],
    },
  "A token that is taken out of the configuration ends within seconds with all that is open and with the links and subscriptions that it made.":
    {
      "test/server/auth/made-with.test.ts": [
        "a link ends with the token of the person who made it, and no other",
        "a subscription ends with the token of its client, and is revoked on the page",
      ],
      "test/server/auth/streams.test.ts": [
        "a running server follows its configuration: a token that is taken out ends its streams",
        "all that is open with it ends, and nothing else",
      ],
    },
  "Links and subscriptions never outlive their token.": {
    "test/server/auth/made-with.test.ts": [
      "what is made with a signed token ends when that expires",
      "a token of an authorization server holds until that says otherwise, at every server with the key",
    ],
  },
  "Refused tokens are counted by address, requests by principal; runs take turns.": {
    "test/server/auth/refusals.test.ts": [
      "gets 429, and the authorization server is left alone; good tokens go on being accepted",
    ],
    "test/server/http/operations.test.ts": ["one principal's requests leave those of another alone"],
    "test/runs/queue.test.ts": [
      "the turn goes to the principal with the least at work, then to whose last turn was longest ago, then in order",
    ],
  },
  "A stolen token is its principal until it expires or is taken away: tokens are bearer tokens.": {
    "test/server/auth/tokens.test.ts": [
      "the principal and scopes are those of the entry whose hash matches, of no other",
      "with %s get 401 and a challenge, whatever they ask for",
    ],
  },
  "Give each one the scopes it needs.": "advice",
  "The workspace, configured skills and other MCP servers are shared by all principals, unless `workspaceFolder` and `prefix` give each their own.":
    {
      "test/commands/compose/file-tree.test.ts": [
        "has workspace, memories and skills, with the thread's files around them",
        "gives each principal a workspace of its own, when that is configured",
        "is a folder of its own for every principal, wherever the files are",
      ],
    },
  "Commands without a sandbox see the folders of all.": {
    "test/e2e/safety.test.ts": [
      "commands without a sandbox read what the user may read, and the environment of the server",
    ],
  },
  "Without `storageRole`, only our queries separate principals.": {
    "test/storage/postgres-wall.test.ts": ["without a role nothing is confined, and there are no policies"],
  },
  "Row-level security protects against mistakes in these queries, not against injected statements.": {
    "test/storage/postgres-wall.test.ts": [
      "a statement that forgets its principal sees and changes nothing of others",
    ],
  },
  "It does not cover sessions, limits and the queue.": {
    "test/storage/postgres-wall.test.ts": ["sessions, limits and the queue have no policies"],
  },
  "The program speaks plain HTTP: TLS is the proxy's task.": {
    "test/server/auth/proxy.test.ts": ["%s works through a proxy that is set up as the guide says"],
  },
  "Metrics cover all principals; keep them private.": {
    "test/server/http/operations.test.ts": ["show runs, approvals, requests, sessions and memory"],
    "test/runs/statistics.test.ts": ["counts the runs of all principals and what waits for a person"],
  },
  "The operators of the server, its database and its bucket can read everything.": "outside",
  "A program that speaks MCP sends damaged, huge, forged or endless messages, or never reads its answers.":
    "definition",
  "Sizes, depths, headers, lines and times are bounded before anything is parsed; the table in http.md has the limits.":
    {
      "test/server/http/robustness.test.ts": [
        "%s is cut off, and others are served meanwhile",
        "headers without limit gets 431",
      ],
      "test/core/json-shape.test.ts": [
        "a message is too deep exactly when it has more levels than the limit",
        "a message has too many values exactly when it has more than the limit",
      ],
      "test/core/message-lines.test.ts": ["of a line without an end no more than the limit is held"],
      "test/server/http-hostile/http.test.ts": ["${COUNT} hostile messages over HTTP are refused"],
    },
  "Questions that a client carries are signed, for one principal, expire after a day, are accepted once, and each answer is bound to the digest of what was shown.":
    {
      "test/server/delivery/request-state.test.ts": [
        "a forged, damaged or foreign state is refused by the protocol",
        "an answer counts once, whichever process it comes to, and the journal tells of a replay",
        "changed arguments, or another run, make the answers void",
      ],
      "test/server/auth/state.test.ts": [
        "%s is refused and logged, without the state",
        "a state expires after a day",
      ],
    },
  "A reader that does not keep up costs nobody else anything, and is cut on HTTP.": {
    "test/server/http/slow-readers.test.ts": [
      "who reads nothing for too long loses the connection, and gets the answer on the next",
      "%s: a late reader is told the newest progress and the answer",
    ],
    "test/server/stdio-output.test.ts": [
      "requests of a client that does not read its answers wait, and are all answered when it does",
    ],
    "test/e2e/slow-readers.test.ts": ["a run goes on past clients that do not read, and tells them its end"],
  },
  "The same task sent again joins its run; a decision is stored once.": {
    "test/runs/retries.test.ts": [
      "the same task joins the run of a call that was not answered, also after a restart",
    ],
    "test/runs/approvals.test.ts": ["a repeated answer changes nothing and says so"],
  },
  "Does not protect: a client acts for the person.": "outside",
  "A client that fills in its own forms can approve anything, and the server cannot detect that; give it a token without the scope `approve` to prevent it.":
    {
      "test/server/auth/scopes.test.ts": ["%s: a token can do what its scopes say, and no more"],
      "test/server/delivery/approvals.test.ts": [
        "%s: an approved call runs once, in the run that the call started",
      ],
    },
  "On stdio, the program that starts the server is its owner and sets its flags.": "outside",
  '`model: "client"` gives the conversation to the client and trusts its replies (023).': {
    "test/commands/compose/client-model.test.ts": [
      "a server whose model is `client` works with that of its client",
    ],
    "test/server/delivery/lend.test.ts": ["a run works with the client's model"],
  },
  "Windows: No sandbox, so no commands but those of `execute.sandbox`; no modes of files.": {
    "test/commands/platforms.test.ts": ["are not run on Windows, but for those of a container or provider"],
  },
  "Windows: Paths are compared by name before and after they are opened, not walked by descriptors, so somebody who turns links at the right moment is not shut out.":
    {
      "test/commands/platforms.test.ts": ["are opened by descriptor on Linux only"],
      "test/backends/filesystem/filesystem-race.test.ts": ["links swapped in while a method runs"],
    },
  "Windows: Untried, as macOS: platforms.md.": "definition",
  "macOS: Seatbelt has no limits of memory and processes, and no filter of system calls; paths as on Windows.":
    { "test/commands/platforms.test.ts": ["says what is not isolated, and nothing on Linux"] },
  "macOS: A background process that leaves its group is not found again.": "outside",
  "in a container: No Bubblewrap, so the files that come with the project let commands run only where `execute.sandbox` says (045).":
    {
      "test/package/containers.test.ts": [
        "the files that come with the project let commands run only where `execute.sandbox` says",
      ],
    },
  "as root: The kernel does not count the processes of root; a server that runs as root makes a control group where it may.":
    {
      "test/backends/sandbox/process-cgroup.test.ts": ["is $name", "is not made where this process may not"],
      "test/backends/sandbox/bubblewrap.test.ts": ["limits the number of processes${limitReason}"],
    },
  "as root: Run it as another user (012).": "advice",
  "Linux on other processors than x64 and arm64: The sandbox has no filter of system calls; `doctor` says so.":
    {
      "test/backends/sandbox/system-call-filter.test.ts": [
        "is not there for a processor whose numbers are not known",
      ],
      "test/e2e/safety.test.ts": ["a sandbox without the filter of system calls is named as such"],
    },
  'library: `FilesystemBackend` has its jail unless `containment: "none"` is given; `LocalShellBackend` isolates nothing.':
    {
      "test/backends/filesystem/filesystem.test.ts": [
        "does not leave the root all the same",
        "leaves it when containment is switched off",
      ],
      "test/e2e/safety.test.ts": [
        "commands without a sandbox read what the user may read, and the environment of the server",
      ],
    },
  "library: Approvals are what `interruptOn` says.": {
    "test/agent/calls/gate.test.ts": ["has to be of the form that the gate says, also in a subagent"],
    "test/agent/build/cowork.test.ts": [
      "tells tokens and events, waits for a person, and goes on with a list of decisions",
    ],
  },
  "`deepagent-mcp doctor` says which of these protections work on the machine it runs on.": {
    "test/e2e/safety.test.ts": ["a sandbox without the filter of system calls is named as such"],
    "test/commands/doctor/doctor.test.ts": [
      "finds what would fail later",
      "finds nothing where all of it is there",
    ],
    "test/commands/platforms.test.ts": ["says what is not isolated, and nothing on Linux"],
  },
  "Only a person decides.": {
    "test/server/tools/handlers.test.ts": ["%s: a model may not answer unless the user allows it"],
    "test/server/delivery/hostile.property.test.ts": [
      "no behaviour of a client hangs a call, approves by itself, runs something twice or loses a run",
    ],
  },
  "By default, a model cannot approve its own steps.": {
    "test/server/tools/handlers.test.ts": ["%s: a model may not answer unless the user allows it"],
    "test/server/tools/listing.test.ts": [
      "answer_deep_agent is listed in %j only where models may pass answers on",
    ],
  },
  "No time-out approves anything, and a link that a model has seen cannot approve either.": {
    "test/runs/deadline.test.ts": [
      "what nobody decides in time is denied, the model is told, and the run goes on",
    ],
    "test/server/page/page-server.test.ts": ["a link from a tool result shows the call and cannot decide"],
  },
  "Every change below `/workspace/` and every command needs its own approval.": {
    "test/commands/compose/write-gates.test.ts": [
      "asks for changes in the workspace and in folders on other servers, and for nothing else",
      "asks for everything below the workspace, however it is written",
      "asks for every command unless the configuration lets sandboxed ones run",
    ],
  },
  "docs/approvals.md says how to change that.": "definition",
  "An approval is valid only for what you were shown.": {
    "test/agent/calls/approvals/bound.test.ts": [
      "is not made for another call than the one that was shown",
      "of a file that changed meanwhile is not made: the person is asked again with the new diff",
    ],
  },
  "If the file has changed since, nothing is done and you are asked again.": {
    "test/agent/calls/approvals/bound.test.ts": [
      "of a file that changed meanwhile is not made: the person is asked again with the new diff",
    ],
    "test/e2e/bound-approvals.test.ts": [
      "an approved edit of a file that changed under the form is asked about again",
    ],
  },
  "The file tools cannot leave the workspace, by any path, pattern or link.": {
    "test/backends/filesystem/filesystem-links.test.ts": ["to the outside are refused by every method: %s"],
    "test/backends/filesystem/filesystem-race.test.ts": [
      "give nothing away",
      "let nothing be changed outside",
    ],
    "test/backends/glob/glob.test.ts": ["refuses to climb with %j"],
  },
  "Commands run in a sandbox where one is available (Bubblewrap on Linux, Seatbelt on macOS): no network, no keys, and of your files only the workspace.":
    {
      "test/backends/sandbox/bubblewrap.test.ts": [
        "has no network, not even to this machine",
        "shows no files of users and of the system's secrets",
        "has an environment without the server's variables",
      ],
      "test/backends/sandbox/seatbelt.test.ts": ["forbids everything that no rule allows, network above all"],
      "test/commands/platforms.test.ts": ["have the sandbox of their own system only"],
    },
  "They also read the system's programs, and of other packages, such as those in `/opt`, what programs on the search path need, without settings and data.":
    {
      "test/backends/sandbox/program-folders.test.ts": [
        "leaves the folders of the system alone, and takes parts of /usr/local",
        "shows what %s needs, and neither its settings nor its data",
        "a program of /opt works, and no settings or data of /opt and /usr/local are seen",
      ],
    },
  "The versions that a version manager with shims has installed are shown whole.": {
    "test/backends/sandbox/program-folders.test.ts": [
      "knows %s",
      "lets commands find the programs, and nothing beside them",
    ],
  },
  "Without a sandbox they run with your rights, each one approved; on Windows they do not run at all (docs/platforms.md).":
    {
      "test/commands/compose/write-gates.test.ts": [
        "asks for every command that has no sandbox, whatever is configured",
      ],
      "test/commands/platforms.test.ts": ["are not run on Windows, but for those of a container or provider"],
      "test/e2e/safety.test.ts": [
        "commands without a sandbox read what the user may read, and the environment of the server",
      ],
    },
  "`--execute off` switches commands off.": {
    "test/e2e/commands.test.ts": ["%j: there is no tool for them"],
  },
  "Over HTTP, each user sees only their own runs and memories; the workspace is shared unless you set `workspaceFolder`.":
    {
      "test/server/auth/isolation.test.ts": [
        "runs, threads, files and memories of a principal do not exist for another",
      ],
      "test/commands/compose/file-tree.test.ts": [
        "keeps each principal's memories apart",
        "gives each principal a workspace of its own, when that is configured",
      ],
    },
  "Without tokens or a login the server listens on loopback only.": {
    "test/server/http/http.test.ts": ["does not start on %s"],
    "test/commands/cli.test.ts": ["refuses an address that other machines reach"],
  },
  "Text in your files can try to mislead the model (prompt injection).": "outside",
  "That is why approvals show the exact call: read them.": {
    "test/commands/terminal/approval.test.ts": ["is shown whole in a terminal, with its destination"],
    "test/server/delivery/too-long-for-a-form.test.ts": [
      "%s: a form too small for the call approves nothing",
    ],
  },
  "Nothing is sent to us: no telemetry, no account, no check for updates.": {
    "test/e2e/safety.test.ts": ["a run with the offline model connects to nothing"],
  },
  "`deepagent-mcp doctor` lists the protections that work on your machine; SECURITY.md has the threat model.":
    {
      "test/e2e/safety.test.ts": ["a sandbox without the filter of system calls is named as such"],
      "test/commands/doctor/doctor.test.ts": [
        "finds what would fail later",
        "finds nothing where all of it is there",
      ],
    },
};
