import { join } from "node:path";
import type { Node } from "typescript/unstable/ast";
import {
  isConstructorDeclaration,
  isExportDeclaration,
  isExportSpecifier,
  isIdentifier,
} from "typescript/unstable/ast/is";
import { API, type Checker, type Symbol as TypeSymbol, SymbolFlags } from "typescript/unstable/sync";
import { expect, it } from "vitest";
import { ROOT } from "../commands/built-bin.ts";

const DIST = join(ROOT, "dist");
/**
 * What has no name that anybody would write: a computation of types, classes that others only extend, and what a
 * connection to SQLite has, which is opened and passed on.
 */
const CLASSES = ["CheckedBackend", "Definition", "ShellBackend", "TreeBackend"];
/** Parts of a type that has a name, and what a private constructor takes. */
const PARTS = ["AgentEnd", "StepEvent", "OlderEncoding", "LeavingOut", "FoundSandbox"];
const INNER: ReadonlySet<string> = new Set(
  CLASSES.concat("Statement", "Transaction", "AnyFunction", ...PARTS),
);

/** The declaration behind a name, also behind imports and exports. */
const behind = (checker: Checker, symbol: TypeSymbol): TypeSymbol =>
  (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);

/** The names in a declaration; of a class that cannot be made by its users without its constructor. */
function namesIn(declared: TypeSymbol, isMade: boolean): Node[] {
  const names: Node[] = [];
  const look = (node: Node): void => {
    if (isConstructorDeclaration(node) && !isMade) return;
    if (isIdentifier(node)) names.push(node);
    node.forEachChild(look);
  };
  for (const declaration of declared.declarations) {
    const node = declaration.resolve();
    if (node) look(node);
  }
  return names;
}

/** Whether a name is exported with its value, and not as a type alone. */
function isValue(exported: TypeSymbol | undefined): boolean {
  const node = exported?.declarations[0]?.resolve();
  if (!node || !isExportSpecifier(node)) return true;
  const declaration = node.parent.parent;
  return !node.isTypeOnly && !(isExportDeclaration(declaration) && declaration.isTypeOnly);
}

it("every type in a public signature is exported", () => {
  const api = new API({ cwd: ROOT });
  try {
    const entry = join(DIST, "src/index.d.ts");
    const project = api.updateSnapshot({ openFiles: [entry] }).getDefaultProjectForFile(entry);
    const file = project?.program.getSourceFile(entry);
    const module = file && project?.checker.getSymbolAtLocation(file);
    if (!project || !module) throw new Error("the library is not built: npm run build");
    const { checker } = project;
    const exported = checker.getExportsOfModule(module);
    const targets = exported.map((symbol) => behind(checker, symbol));
    const known = new Set(targets.map(({ id }) => id));
    const missing = new Set<string>();
    let seen = 0;
    for (const [index, target] of targets.entries()) {
      const isMade = isValue(exported[index]);
      for (const symbol of checker.getSymbolAtLocation(namesIn(target, isMade))) {
        const used = symbol && behind(checker, symbol);
        if (!used || (used.flags & SymbolFlags.Type) === 0) continue;
        if ((used.flags & SymbolFlags.TypeParameter) !== 0) continue;
        const isOurs = used.declarations.some(({ path }) => path.startsWith(`${DIST}/`));
        seen += isOurs ? 1 : 0;
        if (isOurs && !known.has(used.id) && !INNER.has(used.name))
          missing.add(`${used.name} of ${target.name}`);
      }
    }
    expect(seen).toBeGreaterThan(500);
    expect([...missing].sort()).toEqual([]);
  } finally {
    api.close();
  }
});
