// A systemd unit as data: sections, and for each key its values in their order. Comments and continued lines are gone.
import { readFileSync } from 'node:fs';

export interface UnitFile {
  /** Every value of a key, in its order; empty where the unit has none. */
  all(section: string, key: string): readonly string[];
  /** The last value of a key: the one that counts for a key with one value. */
  value(section: string, key: string): string | undefined;
  /** Keys that are set in a section. */
  keys(section: string): readonly string[];
}

export function readUnitFile(path: string): UnitFile {
  const lines = readFileSync(path, 'utf8')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !/^[#;]/.test(line));
  const settings: { section: string; key: string; value: string }[] = [];
  let section = '';
  for (const line of lines) {
    const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
    if (name !== undefined) {
      section = name;
      continue;
    }
    const [, key = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === '') throw new Error(`${path}: ${line}`);
    settings.push({ section, key, value });
  }
  const all: UnitFile['all'] = (inSection, key) =>
    settings.filter((one) => one.section === inSection && one.key === key).map(({ value }) => value);
  return {
    all,
    value: (inSection, key) => all(inSection, key).at(-1),
    keys: (inSection) => settings.filter((one) => one.section === inSection).map(({ key }) => key),
  };
}
