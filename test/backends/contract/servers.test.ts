// @module-tag long
// It starts servers of S3 and Postgres, and runs the whole contract over each.
import { runContract } from "./contract.ts";
import { SERVER_SUBJECTS } from "./subjects.ts";

for (const subject of SERVER_SUBJECTS) runContract(subject);
