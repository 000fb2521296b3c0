// Whether two patterns of delegations have a path in common: what decides if two teams could both speak for it. Walks
// both patterns at once, as the product of their automata; exact, and small, as both are bounded. Pure.

/**
 * @param a, b patterns of `*` and `?` (path-pattern.ts), at most some hundred characters each
 * @returns true if some path matches both
 */
export function patternsOverlap(a: string, b: string): boolean {
  const [left, right] = [a.split('/'), b.split('/')];
  // Neither sign crosses a slash, so that each part is a question of its own.
  return (
    left.length === right.length &&
    left.every((part, index) => partsOverlap([...part], [...(right[index] ?? '')]))
  );
}

/** States are pairs of positions; a star may end, or take one more sign of the other pattern. */
function partsOverlap(a: readonly string[], b: readonly string[]): boolean {
  const seen = new Set<number>();
  const waiting: (readonly [number, number])[] = [[0, 0]];
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    const [i, j] = state;
    const id = i * (b.length + 1) + j;
    if (seen.has(id)) continue;
    seen.add(id);
    if (i === a.length && j === b.length) return true;
    waiting.push(...nextStates(a, b, [i, j]));
  }
  return false;
}

function nextStates(
  a: readonly string[],
  b: readonly string[],
  [i, j]: readonly [number, number],
): (readonly [number, number])[] {
  const [left, right] = [a[i], b[j]];
  const next: (readonly [number, number])[] = [];
  if (left === '*') next.push([i + 1, j]);
  if (right === '*') next.push([i, j + 1]);
  if (left === undefined || right === undefined) return next;
  if (left === '*' && right !== '*') next.push([i, j + 1]);
  if (right === '*' && left !== '*') next.push([i + 1, j]);
  const isSame = left === right || left === '?' || right === '?';
  if (left !== '*' && right !== '*' && isSame) next.push([i + 1, j + 1]);
  return next;
}
