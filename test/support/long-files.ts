/**
 * Files of tests that start programs, databases or browsers again and again, or repeat one thing many times. `npm test`
 * leaves them out, so that it takes few minutes; `npm run test:long` and the name of a file or folder run them. For
 * each room the files that stay in `npm test` go through the same doors once.
 */
export const LONG_FILES: readonly string[] = [
  "test/agent/budget/limits/{open-approvals,repeated-calls,restarts}.test.ts",
  "test/agent/compaction/summaries.test.ts",
  "test/agent/layers/listing.test.ts",
  "test/agent/models/{cache-prefix,crashes-over-wire,joined-stream,large-messages-over-wire,offline,offline-workspace,served}.test.ts",
  "test/agent/{guide,whole-output}.test.ts",
  "test/agent/subagents/{direct-tasks,nested-files.property}.test.ts",
  "test/backends/filesystem/{filesystem-processes,filesystem-race}.test.ts",
  "test/backends/policy/policy-links.property.test.ts",
  "test/backends/sandbox/{namespace-bubblewrap,starters,stopping}.test.ts",
  "test/commands/completions.test.ts",
  "test/commands/{doctor/doctor,init/init,install/clients,install/install,keys/keys,models/models,news/news,runs/runs,schedule/schedule,login/login}.test.ts",
  "test/commands/run/{keychain,run}.test.ts",
  "test/evals/{approvals,evals,main-job}.test.ts",
  "test/commands/terminal/{hostile-texts,keyboard,pseudo-terminal,questions}.test.ts",
  "test/e2e/{safety,commands,delegation,http-page,inherited-files,mounts,own-folders,postgres,stopping}.test.ts",
  "test/package/{public-types,published,release}.test.ts",
  "test/proposals/{kill,renames}.property.test.ts",
  "test/rules/shell/started-programs-long.test.ts",
  "test/runs/{background/budget,flat-cost,foreign-effects,foreign-lock,grants,history-once,lost-checkpoints,prune,shared-tail,storage-failures,two-servers}.test.ts",
  "test/server/auth/{foreign,introspection,isolation,proxy,scopes,streams}.test.ts",
  "test/server/{content/highlight,http-hostile/stdio}.test.ts",
  "test/server/delivery/{answers-at-once,lend,page-requests,retries,too-long-for-a-form}.test.ts",
  "test/server/http/{shared-sessions,slow-readers}.test.ts",
  "test/server/page/{log-in-browser,page-editor,page-files,page-killed,page-lines,page-run-menu,page-schedules,page-screens,page-search,page-servers,page-session,page-settings,page-states,page-steps,page-tabs,page-texts,page-work,whole-call}.test.ts",
  "test/server/resources/updates.test.ts",
  "test/storage/{node-driver,postgres-objects,postgres-runs}.test.ts",
];
