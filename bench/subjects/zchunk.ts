// zchunk over HTTP: of an archive in chunks those that the archive before does not have, and then tar.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject } from './subject.js';
import { webNeed } from './subject.js';

export const zchunk: Subject = {
  name: 'zchunk',
  needs: [{ program: 'zck', debianPackage: 'zchunk' }, webNeed],
  note: '`zck` of a tar archive over HTTP by nginx, then unzck, tar and `sync -f`; chunks are checked, nobody signed them',
  setUp: async ({ directory, first, second, web }) => {
    const make = (name: string, source: string) => {
      const line = 'cd "$1" && tar cf "$3.tar" -C "$2" . && zck -o "$3.tar.zck" "$3.tar" && rm "$3.tar"';
      return measured(shell(line, directory, source, name), { notes: directory });
    };
    const published = await make('first', first);
    const sync =
      (name: string, source: readonly string[]): Act =>
      (home) => {
        mkdirSync(join(home, name));
        const get = ['zckdl', '-q', ...source, `${web.url}/zchunk/${name}.tar.zck`];
        const line =
          'to="$1"; shift; "$@" >/dev/null && unzck "$to.tar.zck" && tar xf "$to.tar" -C "$to" && sync -f .';
        return web.counted(() => measured(shell(line, name, ...get), { notes: home, cwd: home }));
      };
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': sync('first', []),
        update: sync('second', ['-s', 'first.tar.zck']),
      },
      publishSecond: async () => {
        await make('second', second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};
