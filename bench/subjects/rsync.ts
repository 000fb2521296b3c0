// rsync between two local directories with its own algorithm switched on, so that it counts what a network would carry.
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Sample } from '../measure/sample.js';
import type { Ready, Subject } from './subject.js';

const needs = [{ program: 'rsync', debianPackage: 'rsync' }];
const compare = ['rsync', '-a', '--checksum', '--no-whole-file', '--compress', '--stats'];

export const rsync: Subject = {
  name: 'rsync',
  needs,
  note: '`rsync -a --checksum --no-whole-file --compress` between local directories, `--copy-dest` for the update, then `sync -f`',
  setUp: async ({ first, second }) => {
    const intoNew = (home: string, source: string, name: string, flags: readonly string[] = []) =>
      synced(home, [...compare, ...flags, `${source}/`, `${join(home, name)}/`]);
    return {
      acts: {
        'first sync': (home) => intoNew(home, first, 'first'),
        'nothing new': (home) => intoNew(home, first, 'first'),
        update: (home) => intoNew(home, second, 'second', [`--copy-dest=${join(home, 'first')}`]),
      },
      ...nothingToPublish,
    };
  },
};

export const rsyncInPlace: Subject = {
  name: 'rsync in place',
  needs,
  note: 'the same, but the update changes the directory that is in use',
  setUp: async ({ first, second }) => {
    const sync = (home: string, source: string) =>
      synced(home, [...compare, `${source}/`, `${join(home, 'tree')}/`]);
    return {
      acts: { 'first sync': (home) => sync(home, first), update: (home) => sync(home, second) },
      ...nothingToPublish,
    };
  },
};

const nothingToPublish: Omit<Ready, 'acts'> = {
  publishSecond: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

async function synced(home: string, command: readonly string[]): Promise<Sample> {
  const { stdout, ...sample } = await measured(shell('"$@" && sync -f .', ...command), {
    notes: home,
    cwd: home,
  });
  const bytes = /^Total bytes sent: ([\d,.]+)$/m.exec(stdout)?.[1]?.replace(/[,.]/g, '');
  return { ...sample, receivedBytes: Number(bytes) };
}
