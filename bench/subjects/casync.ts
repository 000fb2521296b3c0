// casync over HTTP: chunks of 64 kB, extracted anew for the first sync, and with what is there as a seed for the update.
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject, Workplace } from './subject.js';
import { webNeed } from './subject.js';

const needs = [{ program: 'casync', debianPackage: 'casync' }, webNeed];

export const casync: Subject = {
  name: 'casync',
  needs,
  note: 'extract over HTTP by nginx, without a seed; chunks are checked, nobody signed them',
  setUp: (place) => prepare(place, 'casync', () => []),
};

export const casyncWithSeed: Subject = {
  name: 'casync --seed',
  needs,
  note: 'the same, with the first version as a seed',
  setUp: (place) => prepare(place, 'casync-seed', (home) => [`--seed=${join(home, 'first')}`]),
};

async function prepare(
  { directory, first, second, web }: Workplace,
  below: string,
  seeds: (home: string) => readonly string[],
): Promise<Ready> {
  const store = `--store=${join(directory, 'store.castr')}`;
  const make = (name: string, source: string) =>
    measured(
      ['casync', 'make', '-l', 'err', '--without=all', store, join(directory, `${name}.caidx`), source],
      { notes: directory },
    );
  const published = await make('first', first);
  const extract =
    (name: string, flags: (home: string) => readonly string[]): Act =>
    (home) => {
      const to = join(home, name);
      const options = [
        '-l',
        'err',
        '--without=all',
        `--store=${web.url}/${below}/store.castr`,
        ...flags(home),
      ];
      const command = ['casync', 'extract', ...options, `${web.url}/${below}/${name}.caidx`, to];
      return web.counted(() => measured(shell('"$@" && sync -f .', ...command), { notes: home, cwd: home }));
    };
  return {
    acts: {
      ...(below === 'casync' ? { publish: async () => published } : {}),
      'first sync': extract('first', () => []),
      update: extract('second', seeds),
    },
    publishSecond: async () => {
      await make('second', second);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}
