// GNU tar with gzip: the archive is on the disk already, nothing is checked, and one flush follows.
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject } from './subject.js';

export const tar: Subject = {
  name: 'GNU tar',
  needs: [],
  note: '`tar xzf && sync -f` of an archive on the disk; checks nothing, an update is all bytes again',
  setUp: async ({ directory, first, second }) => {
    const archive = join(directory, 'policy.tar.gz');
    const pack = (source: string) =>
      measured(['tar', 'czf', archive, '-C', source, '.'], { notes: directory });
    let published = await pack(first);
    const unpackTo =
      (name: string): Act =>
      async (home) => {
        const to = join(home, name);
        mkdirSync(to);
        const ran = await measured(shell('tar xzf "$1" -C "$2" && sync -f "$2"', archive, to), {
          notes: home,
        });
        return { ...ran, receivedBytes: statSync(archive).size };
      };
    const ready: Ready = {
      acts: { publish: async () => published, 'first sync': unpackTo('first'), update: unpackTo('second') },
      publishSecond: async () => {
        published = await pack(second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};
