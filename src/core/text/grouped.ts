// Large numbers for people, on pages and terminals. Pure.

/** @returns the number with separators, as `1,000,000` */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
