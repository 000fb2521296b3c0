// The client of tuf-js: a refresh of the metadata alone, of a repository of Writ's, as a process. It has no policy to unpack.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { measured } from '../measure/measured-program.js';
import { startWritServer } from '../web/writ-server.js';
import type { Act, Subject } from './subject.js';
import { createRepository, publish } from './writ.js';

const program = join(import.meta.dirname, 'tuf-js-refresh.js');

export const tufJs: Subject = {
  name: 'tuf-js',
  needs: [],
  note: 'a refresh of the metadata alone, as a process; it delivers no files',
  setUp: async ({ directory, first }) => {
    const repository = await createRepository(directory);
    await publish(repository, first);
    const server = await startWritServer(repository.repository);
    const refresh: Act = (home) => {
      const metadata = join(home, 'metadata');
      return server.counted(() =>
        measured([process.execPath, program, metadata, `${server.url}/metadata/`], { notes: home }),
      );
    };
    return {
      acts: {
        'nothing new': async (home) => {
          const metadata = join(home, 'metadata');
          mkdirSync(metadata);
          copyFileSync(join(repository.repository, 'metadata', '1.root.json'), join(metadata, 'root.json'));
          await refresh(home);
          return refresh(home);
        },
      },
      publishSecond: async () => undefined,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};
