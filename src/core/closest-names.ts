/**
 * Those of `names` that `name` was probably meant to be, the likeliest first: spelt nearly the same, or with
 * it as a part between underscores.
 */
export function closestNames(name: string, names: Iterable<string>, limit = 3): string[] {
  const wanted = name.toLowerCase();
  const found = [...names].flatMap((candidate) => {
    const known = candidate.toLowerCase();
    const distance = editDistance(wanted, known);
    if (distance <= Math.max(2, candidate.length / 4) && distance < candidate.length) {
      return [{ candidate, distance }];
    }
    return known.split(/_+/).includes(wanted) ? [{ candidate, distance: known.length }] : [];
  });
  return found
    .sort((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map(({ candidate }) => candidate);
}

/** The likeliest one. */
export const closestName = (name: string, names: Iterable<string>): string | undefined =>
  closestNames(name, names, 1)[0];

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
