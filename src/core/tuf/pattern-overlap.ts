// Decides whether two patterns of delegations match a common path, so that two teams would be authorities for it. Searches the
// product of the two automata; exact, and fast enough because patterns are bounded. Pure.

/**
 * @param a, b patterns with `*` and `?` (path-pattern.ts), at most some hundred characters each
 * @returns true if some path matches both
 */
export function patternsOverlap(a: string, b: string): boolean {
  const [left, right] = [a.split('/'), b.split('/')];
  // No wildcard matches a slash, so that the parts are compared one by one.
  return (
    left.length === right.length &&
    left.every((part, index) => partsOverlap([...part], [...(right[index] ?? '')]))
  );
}

type State = readonly [number, number];

/**
 * A state is a position in each pattern. At a star, the next state is behind the star or behind one character of the other pattern.
 */
function partsOverlap(a: readonly string[], b: readonly string[]): boolean {
  const seen = new Set<number>();
  const waiting: State[] = [[0, 0]];
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    const [i, j] = state;
    const id = i * (b.length + 1) + j;
    if (seen.has(id)) continue;
    seen.add(id);
    if (i === a.length && j === b.length) return true;
    waiting.push(...nextStates(a, b, state));
  }
  return false;
}

function nextStates(a: readonly string[], b: readonly string[], [i, j]: State): State[] {
  const [left, right] = [a[i], b[j]];
  if (left === '*' || right === '*') {
    const isOver = left === undefined || right === undefined;
    const next: State[] = [];
    if (left === '*' || !isOver) next.push([i + 1, j]);
    if (right === '*' || !isOver) next.push([i, j + 1]);
    return next;
  }
  if (left === undefined || right === undefined) return [];
  return left === right || left === '?' || right === '?' ? [[i + 1, j + 1]] : [];
}
