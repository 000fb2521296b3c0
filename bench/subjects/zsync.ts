// zsync over HTTP: the parts of a compressed archive that the archive before does not have, and then tar.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject } from './subject.js';
import { webNeed } from './subject.js';

export const zsync: Subject = {
  name: 'zsync',
  needs: [{ program: 'zsync', debianPackage: 'zsync' }, webNeed],
  note: 'zsync of `gzip --rsyncable` over HTTP by nginx, then tar and `sync -f`; one SHA-1 of the whole is checked',
  setUp: async ({ directory, first, second, web }) => {
    const make = (name: string, source: string) => {
      const line =
        'cd "$1" && tar cf - -C "$2" . | gzip --rsyncable > "$3.tar.gz" && zsyncmake -Z -o "$3.zsync" -u "$3.tar.gz" "$3.tar.gz"';
      return measured(shell(line, directory, source, name), { notes: directory });
    };
    const published = await make('first', first);
    const sync =
      (name: string, seeds: readonly string[]): Act =>
      (home) => {
        mkdirSync(join(home, name));
        const get = ['zsync', '-q', ...seeds, '-o', `${name}.tar.gz`, `${web.url}/zsync/${name}.zsync`];
        const line = 'to="$1"; shift; "$@" >/dev/null && tar xzf "$to.tar.gz" -C "$to" && sync -f .';
        return web.counted(() => measured(shell(line, name, ...get), { notes: home, cwd: home }));
      };
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': sync('first', []),
        update: sync('second', ['-i', 'first.tar.gz']),
      },
      publishSecond: async () => {
        await make('second', second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};
