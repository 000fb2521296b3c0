// A process file system made by hand, for what real processes cannot be made to show: tables and links as text.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FakeProcess {
  readonly comm?: string;
  /** Mount namespace; that of the reader by default. */
  readonly namespace?: string;
  readonly mountinfo?: string;
  readonly cwd?: string;
  readonly root?: string;
  readonly open?: readonly string[];
  /** Links that are missing, as of a process that just ended. */
  readonly without?: readonly ('ns' | 'root' | 'cwd' | 'fd' | 'comm')[];
}

const rootMount = '27 1 254:0 / / rw - ext4 /dev/vda rw\n';

/** @returns the directory; `self` is the reader's own entry */
export function fakeProc(
  directory: string,
  processes: Readonly<Record<number, FakeProcess>>,
  { mountinfo = rootMount }: { readonly mountinfo?: string } = {},
): string {
  for (const name of ['uptime', 'sys', 'self']) mkdirSync(join(directory, name), { recursive: true });
  makeProcess(join(directory, 'self'), { mountinfo });
  for (const [pid, one] of Object.entries(processes))
    makeProcess(join(directory, pid), { mountinfo, ...one });
  return directory;
}

function makeProcess(path: string, one: FakeProcess): void {
  const has = (name: 'ns' | 'root' | 'cwd' | 'fd' | 'comm'): boolean => one.without?.includes(name) !== true;
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'mountinfo'), one.mountinfo ?? '');
  if (has('comm')) writeFileSync(join(path, 'comm'), `${one.comm ?? 'worker'}\n`);
  if (has('ns')) {
    mkdirSync(join(path, 'ns'));
    symlinkSync(one.namespace ?? 'mnt:[1]', join(path, 'ns', 'mnt'));
  }
  if (has('root')) symlinkSync(one.root ?? '/', join(path, 'root'));
  if (has('cwd')) symlinkSync(one.cwd ?? '/', join(path, 'cwd'));
  if (has('fd')) mkdirSync(join(path, 'fd'));
  for (const [index, target] of (one.open ?? []).entries()) symlinkSync(target, join(path, 'fd', `${index}`));
}
