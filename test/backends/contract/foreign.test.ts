import { runContract } from "./contract.ts";
import { FOREIGN_SUBJECTS } from "./foreign-subjects.ts";
import { SUITES } from "./suites.ts";

for (const subject of FOREIGN_SUBJECTS) runContract(subject, SUITES);
