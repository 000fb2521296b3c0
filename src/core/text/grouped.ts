// Large numbers in texts that people read, on a page and on a terminal alike. Pure; owns no unit and no word.

/** A number that a person reads at a glance: `1,000,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
