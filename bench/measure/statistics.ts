// Statistics of several rounds. Pure.

export interface Summary {
  readonly rounds: number;
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** @returns undefined for no values: a figure that was not measured is not zero */
export function summarize(values: readonly number[]): Summary | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (least === undefined || most === undefined) return undefined;
  return { rounds: sorted.length, median: medianOfSorted(sorted), least, most };
}

function medianOfSorted(sorted: readonly number[]): number {
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
