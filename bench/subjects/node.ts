// Node with nothing to do: below this no command of Writ can come.
import { measured } from '../measure/measured-program.js';
import type { Subject } from './subject.js';

export const node: Subject = {
  name: 'node -e 0',
  needs: [],
  note: 'below this nothing that runs in Node can come',
  setUp: async () => ({
    acts: { status: (home) => measured([process.execPath, '-e', '0'], { notes: home }) },
    publishSecond: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }),
};
