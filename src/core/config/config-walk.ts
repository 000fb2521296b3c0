// Ways through a configuration file that may have any shape: a value that is not what a rule looks for counts as
// absent, since the schema has its own word on it.
import type { ConfigPath, Finding } from './findings.js';

export type Group = Readonly<Record<string, unknown>>;

export function group(value: unknown): Group {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Group) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function texts(value: unknown): string[] {
  return list(value).filter((one) => typeof one === 'string');
}

export function at(path: ConfigPath, text: string): Finding {
  return { path, at: 'value', text };
}

export interface Placed {
  readonly path: ConfigPath;
  readonly value: unknown;
}

/** @param keys from the top; `*` is any index. @returns every value there, absent ones as undefined */
export function valuesAt(value: unknown, [key, ...rest]: readonly string[], path: ConfigPath): Placed[] {
  if (key === undefined) return [{ path, value }];
  if (key === '*') return list(value).flatMap((one, index) => valuesAt(one, rest, [...path, index]));
  return valuesAt(group(value)[key], rest, [...path, key]);
}
