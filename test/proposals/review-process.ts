import { WorkspaceProposals } from "../../src/proposals/proposals.ts";

/** Applies all that the copies in the folder of the first argument propose, after it has said that it begins. */
const [, , dir = "", threadId = ""] = process.argv;
const proposals = new WorkspaceProposals({ dir, without: [], maxBytes: 1e8 });
const run = { threadId, task: "Do it" };
const { files } = (await proposals.change(run)) ?? { files: [] };
const shown = Object.fromEntries(files.map(({ path, version }) => [path, version]));
const apply = Object.fromEntries(files.map(({ path }) => [path, "all" as const]));
process.stdout.write("begins\n");
await proposals.review(run, { apply }, { id: "review_1", by: "test", shown });
