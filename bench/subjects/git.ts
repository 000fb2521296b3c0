// git by its own protocol between local processes: a clone, and a fetch with a reset. Bytes are those of the packs.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { measured, outputOf, shell } from '../measure/measured-program.js';
import type { Sample } from '../measure/sample.js';
import type { Ready, Subject } from './subject.js';

const quiet = [
  '-c',
  'user.name=bench',
  '-c',
  'user.email=bench@example.org',
  '-c',
  'gc.auto=0',
  '-c',
  'core.autocrlf=false',
];

export const git: Subject = {
  name: 'git',
  needs: [{ program: 'git', debianPackage: 'git' }],
  note: 'clone, fetch and reset by file://, then `sync -f`; bytes are those of the packs; no signature asked for',
  setUp: async ({ directory, first, second }) => {
    const repository = join(directory, 'repo.git');
    await outputOf(['git', 'init', '-q', '--bare', '-b', 'main', repository]);
    const commit = (source: string) => {
      const git = ['git', ...quiet, `--git-dir=${repository}`, `--work-tree=${source}`];
      return measured(shell('"$@" add -A && "$@" commit -q -m policy', ...git), { notes: directory });
    };
    const published = await commit(first);
    const work = (home: string): string => join(home, 'work');
    const packed = (home: string, line: string): Promise<Sample> =>
      withPacks(work(home), () => measured(shell(line, work(home), `file://${repository}`), { notes: home }));
    const fetch = 'git -C "$1" -c fetch.unpackLimit=1 -c gc.auto=0 fetch -q';
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': (home) => packed(home, 'git clone -q "$2" "$1" && sync -f "$1"'),
        'nothing new': (home) => packed(home, fetch),
        update: (home) => packed(home, `${fetch} && git -C "$1" reset -q --hard origin/main && sync -f "$1"`),
      },
      publishSecond: async () => {
        await commit(second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};

async function withPacks(work: string, act: () => Promise<Sample>): Promise<Sample> {
  const before = packBytes(work);
  const sample = await act();
  return { ...sample, receivedBytes: packBytes(work) - before };
}

function packBytes(work: string): number {
  const packs = join(work, '.git', 'objects', 'pack');
  if (!existsSync(packs)) return 0;
  const names = readdirSync(packs).filter((name) => name.endsWith('.pack'));
  return names.reduce((sum, name) => sum + statSync(join(packs, name)).size, 0);
}
