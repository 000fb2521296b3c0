// Figures as people read them. Pure.

export function milliseconds(value: number): string {
  return value < 1000 ? `${value.toFixed(0)} ms` : `${(value / 1000).toFixed(2)} s`;
}

export function bytes(value: number): string {
  if (value < 10_000) return `${value.toFixed(0)} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(0)} kB`;
  return value < 1e9 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e9).toFixed(1)} GB`;
}

export function ratio(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0);
}
