/** Copies the documentation here: VitePress finds its own packages for pages below its folder only. */
import { cp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
await rm(at("pages"), { recursive: true, force: true });
await cp(at("../docs"), at("pages"), { recursive: true });
