// Sizes in bytes for people. Pure.

const units = ['kB', 'MB', 'GB', 'TB'];

/** @returns as `390 B` or `1.2 MB`, in thousands */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log10(bytes) / 3), units.length);
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power - 1]}`;
}
