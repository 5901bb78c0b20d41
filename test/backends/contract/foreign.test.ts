import { dirname } from "node:path";
import { rgPath } from "@vscode/ripgrep";
import { runContract } from "./contract.ts";
import { FOREIGN_SUBJECTS } from "./foreign-subjects.ts";

// deepagents finds its ripgrep in PATH, and without one its search goes by other rules.
process.env["PATH"] = `${dirname(rgPath)}:${process.env["PATH"]}`;

for (const subject of FOREIGN_SUBJECTS) runContract(subject);
