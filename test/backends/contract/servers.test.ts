import { runContract } from "./contract.ts";
import { SERVER_SUBJECTS } from "./subjects.ts";
import { SUITES } from "./suites.ts";

for (const subject of SERVER_SUBJECTS) runContract(subject, SUITES);
