// casync over HTTP: chunks of 64 kB, extracted from nothing for the first sync, and with what is there as a seed for the update.
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Sample } from '../measure/sample.js';
import type { Ready, Subject } from './subject.js';
import { webNeed } from './subject.js';

export const casync: Subject = {
  name: 'casync',
  needs: [{ program: 'casync', debianPackage: 'casync' }, webNeed],
  note: 'extract over HTTP by nginx, then `sync -f`; the first sync without a seed, the update with the first version as one; chunks are checked, nobody signed them',
  setUp: async ({ directory, first, second, web }) => {
    const store = `--store=${join(directory, 'store.castr')}`;
    const make = (name: string, source: string) => {
      const index = join(directory, `${name}.caidx`);
      return measured(['casync', 'make', ...usual, store, index, source], { notes: directory });
    };
    const published = await make('first', first);
    const url = `${web.url}/casync`;
    const extract = (home: string, name: string, seeds: readonly string[] = []): Promise<Sample> => {
      const options = [...usual, `--store=${url}/store.castr`, ...seeds];
      const command = ['casync', 'extract', ...options, `${url}/${name}.caidx`, join(home, name)];
      return web.counted(() => measured(shell('"$@" && sync -f .', ...command), { notes: home, cwd: home }));
    };
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': (home) => extract(home, 'first'),
        update: (home) => extract(home, 'second', [`--seed=${join(home, 'first')}`]),
      },
      publishSecond: async () => {
        await make('second', second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};

/** Contents alone, as the others carry them. */
const usual = ['-l', 'err', '--without=all'];
