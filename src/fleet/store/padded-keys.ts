// Lists of keys of a few lengths, so that a database has prepared the statement that reads their rows. Pure.

/** @returns the keys, some of them twice, which changes no result */
export function paddedKeys(keys: readonly string[]): string[] {
  const [first = ''] = keys;
  const length = Math.max(1, 4 ** Math.ceil(Math.log(Math.max(keys.length, 1)) / Math.log(4)));
  return [...keys, ...Array<string>(Math.max(0, length - keys.length)).fill(first)];
}
