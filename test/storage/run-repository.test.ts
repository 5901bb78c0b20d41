import { databaseFile, connect } from "../runs/support.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { runRepositoryContract } from "./run-repository.contract.ts";

runRepositoryContract("SQLite", async () => {
  const file = databaseFile();
  return { connect: async () => sqliteRuns(connect(file)), close: async () => undefined };
});
