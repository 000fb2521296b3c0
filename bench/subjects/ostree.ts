// ostree over HTTP: pull into a repository of its own, and a checkout by hard links.
import { join } from 'node:path';
import { measured, outputOf, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject } from './subject.js';
import { webNeed } from './subject.js';

export const ostree: Subject = {
  name: 'ostree',
  needs: [{ program: 'ostree', debianPackage: 'ostree' }, webNeed],
  note: 'pull and checkout with hard links, over HTTP by nginx; no signature configured, no static delta',
  setUp: async ({ directory, first, second, web }) => {
    const repository = join(directory, 'repo');
    await outputOf(['ostree', 'init', '--mode=archive', `--repo=${repository}`]);
    const commit = (source: string) =>
      measured(
        shell(
          'ostree commit --repo="$1" --branch=policy "$2" && ostree summary -u --repo="$1"',
          repository,
          source,
        ),
        { notes: directory },
      );
    let published = await commit(first);
    const url = `${web.url}/ostree/repo`;
    const pull = 'ostree pull --repo="$1" origin policy';
    const sync =
      (name: string): Act =>
      (home) => {
        const line = `${pull} && ostree checkout -H --repo="$1" policy "$2" && sync -f "$2"`;
        return web.counted(() =>
          measured(shell(line, join(home, 'client'), join(home, name)), { notes: home }),
        );
      };
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': async (home) => {
          const client = join(home, 'client');
          await outputOf(['ostree', 'init', '--mode=bare', `--repo=${client}`]);
          await outputOf(['ostree', 'remote', 'add', `--repo=${client}`, '--no-gpg-verify', 'origin', url]);
          return sync('first')(home);
        },
        'nothing new': (home) =>
          web.counted(() => measured(shell(pull, join(home, 'client')), { notes: home })),
        update: sync('second'),
      },
      publishSecond: async () => {
        published = await commit(second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};
