import { runContract } from "./contract.ts";
import { SERVER_SUBJECTS } from "./subjects.ts";

for (const subject of SERVER_SUBJECTS) runContract(subject);
