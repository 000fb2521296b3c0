// The type of a finding, and helpers to read data of any shape. A value of an unexpected type counts as absent, because the
// schema reports its type.

/** Keys and indices from the top of the data to a value. */
export type ConfigPath = readonly (string | number)[];

/** A mistake at a place in the data. */
export interface Finding {
  readonly path: ConfigPath;
  /** `key`: the key itself is wrong, so the mistake has the line of the key. */
  readonly at: 'key' | 'value';
  readonly text: string;
  readonly code?: ConfigCode;
  /** For an unknown key: the known key that is probably meant. */
  readonly suggestion?: string;
}

export type ConfigCode = 'CONFIG_SYNTAX' | 'CONFIG_INVALID' | 'SOCKET_PATH_TOO_LONG';

export type Group = Readonly<Record<string, unknown>>;

/** @returns an empty group for any other value */
export function asGroup(value: unknown): Group {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Group) : {};
}

/** @returns an empty list for any other value */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @returns a finding about a value */
export function at(path: ConfigPath, text: string): Finding {
  return { path, at: 'value', text };
}

/** @param keys from the top; `*` is any index. @returns each matching path with its value; undefined if it is absent */
export function valuesAt(
  value: unknown,
  [key, ...rest]: readonly string[],
  path: ConfigPath = [],
): { readonly path: ConfigPath; readonly value: unknown }[] {
  if (key === undefined) return [{ path, value }];
  if (key === '*') return asList(value).flatMap((one, index) => valuesAt(one, rest, [...path, index]));
  return valuesAt(asGroup(value)[key], rest, [...path, key]);
}

/** @returns a deep copy without shared groups, which YAML aliases cause */
export function copyData(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyData);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyData(inner)]));
}

/** Renames the last key of the path in the data. @returns false, without a change, if the new name exists already */
export function renameKey(data: unknown, path: ConfigPath, name: string): boolean {
  const key = String(path.at(-1));
  const parent = path
    .slice(0, -1)
    .reduce((value, part) => (value as Record<string, unknown>)[part], data) as Record<string, unknown>;
  if (Object.hasOwn(parent, name)) return false;
  parent[name] = parent[key];
  return delete parent[key];
}
