/**
 * A reason why a sentence has no test: `advice` asks the reader to do something, `policy` says how we treat reports and
 * releases, `definition` names an attacker or what is worth protecting, and `outside` is a fact about people or other
 * software that this program cannot change.
 */
type NotAClaim = "advice" | "policy" | "definition" | "outside";

/** The titles of tests by their file, each of which fails if the sentence, or a part of it, is false. */
type Tests = Readonly<Record<string, readonly string[]>>;

/** The sentences of SECURITY.md and of the safety section of README.md, as `sentences` writes them. */
export const CLAIMS: Readonly<Record<string, Tests | NotAClaim>> = {};
