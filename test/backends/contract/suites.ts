import { concurrencySuite } from "./concurrency.ts";
import type { Suite } from "./contract.ts";
import { deleteSuite } from "./delete.ts";
import { downloadFilesSuite } from "./download-files.ts";
import { editSuite } from "./edit.ts";
import { globSuite } from "./glob.ts";
import { grepSuite } from "./grep.ts";
import { lsSuite } from "./ls.ts";
import { namesSuite } from "./names.ts";
import { pathsSuite } from "./paths.ts";
import { readRawSuite } from "./read-raw.ts";
import { readSuite } from "./read.ts";
import { uploadFilesSuite } from "./upload-files.ts";
import { writeSuite } from "./write.ts";

/** The whole contract: one suite a port method, then what concerns several. */
export const SUITES: readonly Suite[] = [
  lsSuite,
  readSuite,
  readRawSuite,
  grepSuite,
  globSuite,
  writeSuite,
  editSuite,
  deleteSuite,
  uploadFilesSuite,
  downloadFilesSuite,
  namesSuite,
  pathsSuite,
  concurrencySuite,
];
