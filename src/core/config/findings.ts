// What is wrong at a place of a configuration, and ways through a file that may have any shape: a value that is not
// what a rule looks for counts as absent, since the schema has its own word on it.

/** Where a value is, before its line is known: keys and indices from the top. */
export type ConfigPath = readonly (string | number)[];

/** A mistake at a place in the data. */
export interface Finding {
  readonly path: ConfigPath;
  /** `key`: the key itself is wrong, so its line is named and not the value's. */
  readonly at: 'key' | 'value';
  readonly text: string;
  readonly code?: ConfigCode;
  /** Of an unknown key: the known one that is near it. */
  readonly meant?: string;
}

export type ConfigCode = 'CONFIG_SYNTAX' | 'CONFIG_INVALID' | 'SOCKET_PATH_TOO_LONG';

export type Group = Readonly<Record<string, unknown>>;

export function group(value: unknown): Group {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Group) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function at(path: ConfigPath, text: string): Finding {
  return { path, at: 'value', text };
}

/** @param keys from the top; `*` is any index. @returns every value there, absent ones as undefined */
export function valuesAt(
  value: unknown,
  [key, ...rest]: readonly string[],
  path: ConfigPath = [],
): { readonly path: ConfigPath; readonly value: unknown }[] {
  if (key === undefined) return [{ path, value }];
  if (key === '*') return list(value).flatMap((one, index) => valuesAt(one, rest, [...path, index]));
  return valuesAt(group(value)[key], rest, [...path, key]);
}

/** @returns a copy in which no two places share a group, as those of an alias do */
export function copyData(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyData);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyData(inner)]));
}

/** Gives the last key of the path another name in the data. @returns whether it did: not where the name is taken */
export function renameKey(data: unknown, path: ConfigPath, name: string): boolean {
  const key = String(path.at(-1));
  const parent = path
    .slice(0, -1)
    .reduce((value, part) => (value as Record<string, unknown>)[part], data) as Record<string, unknown>;
  if (Object.hasOwn(parent, name)) return false;
  parent[name] = parent[key];
  return delete parent[key];
}
