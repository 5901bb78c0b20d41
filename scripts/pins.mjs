/** Finds what a build or a workflow would load by a name that can be given to something else. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const COMMIT = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/;
const DIGEST = /@sha256:[0-9a-f]{64}$/;
const WORKFLOWS = ".github/workflows";

/** One sentence for each use that is not pinned, in the project at `root`. */
export function unpinnedUses(root) {
  const read = (name) => readFileSync(join(root, name), "utf8");
  return [
    ...readdirSync(join(root, WORKFLOWS)).flatMap((name) =>
      unpinnedActions(read(join(WORKFLOWS, name))).map((use) =>
        problem(join(WORKFLOWS, name), use, "commit"),
      ),
    ),
    ...unpinnedBases(read("Dockerfile")).map((use) => problem("Dockerfile", use, "digest")),
    ...unpinnedImages(read("compose.yaml")).map((use) => problem("compose.yaml", use, "digest")),
  ];
}

const problem = (file, use, by) => `${file} uses ${use}, which is not pinned by its ${by}.`;

/** Actions of a workflow without a whole commit, or without a comment that says its version. Local ones are ours. */
const unpinnedActions = (workflow) =>
  [...workflow.matchAll(/^[\s-]*["']?uses["']?:\s*(.*)$/gm)].flatMap(([, value]) => {
    const [, use = "", version] = /^["']?([^"'\s#]*)["']?\s*(?:#\s*(v\d\S*))?/.exec(value) ?? [];
    const isPinned = use.startsWith("./") || (COMMIT.test(use) && version !== undefined);
    return isPinned ? [] : [use || value];
  });

/** Base images of a Dockerfile without a digest; a variable stands for its default. Its own stages have names. */
function unpinnedBases(dockerfile) {
  const defaults = new Map(
    [...dockerfile.matchAll(/^ARG\s+(\w+)=(\S+)/gim)].map(([, name, value]) => [name, value]),
  );
  const resolved = (image) =>
    image.replaceAll(/\$\{?(\w+)\}?/g, (whole, name) => defaults.get(name) ?? whole).replaceAll(/["']/g, "");
  const bases = [...dockerfile.matchAll(/^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/gim)];
  const copied = [...dockerfile.matchAll(/^(?:COPY|ADD|RUN)\s.*?--(?:from=|mount=\S*from=)([^\s,]+)/gim)];
  const stages = new Set(bases.flatMap(([, , name]) => (name === undefined ? [] : [name])));
  return [...bases, ...copied]
    .map(([, image]) => resolved(image))
    .filter((image) => !stages.has(image) && image !== "scratch" && !/^\d+$/.test(image))
    .filter((image) => !DIGEST.test(image));
}

/** Images of services without a digest. One that the operator names with a variable is theirs. */
const unpinnedImages = (compose) =>
  [...compose.matchAll(/^\s*image:\s*["']?([^"'\s#]+)/gm)]
    .map(([, image]) => image)
    .filter((image) => !image.startsWith("${") && !DIGEST.test(image));
