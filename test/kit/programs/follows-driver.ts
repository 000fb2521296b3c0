// Daemons that follow the link `current` by themselves and note in a file which generation they use: its number, or
// `error NUMBER REASON`. Believes the file only about the generation that is asked for; notifies nobody.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { readSmallFile } from '../../../src/platform/read-file.js';
import { confirmed, refused, unreachable } from '../../../src/workers/contract/answer.js';
import type {
  Answer,
  Driver,
  DriverContext,
  DriverKind,
  ResetOptions,
} from '../../../src/workers/contract/driver.js';

interface FollowsOptions {
  readonly follows: string;
}

export const follows: DriverKind = {
  name: 'follows',
  properties: {
    follows: {
      type: 'string',
      pattern: '^/[^\\u0000-\\u001f]+$',
      maxLength: 4096,
      description: 'the absolute path of the file in which the daemon notes its generation',
    },
  },
  required: [],
  create: (options, context) => createFollowsDriver(options as unknown as FollowsOptions, context),
};

function createFollowsDriver({ follows: path }: FollowsOptions, context: DriverContext): Driver {
  return {
    verdictClass: 'true',
    members: async () => (existsSync(path) ? [basename(path)] : []),
    reset: (_worker, reset) => waitFor(path, reset, context),
  };
}

const lookAgainMs = 100;

async function waitFor(path: string, reset: ResetOptions, { clock }: DriverContext): Promise<Answer> {
  const { target, timeoutMs, signal } = reset;
  const endMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    const note = noteIn(path);
    if (note === String(target.generation)) return confirmed(`uses generation ${note}`);
    // An error about an older generation says nothing of this one.
    if (note.startsWith(`error ${target.generation} `)) return refused(note);
    if (clock.monotonicMs() >= endMs || signal?.aborted === true) return unreachable(`${path} says: ${note}`);
    await clock.sleep(lookAgainMs, signal);
  }
}

function noteIn(path: string): string {
  const file = readSmallFile(path, { maxBytes: 4096 });
  return file.kind === 'read' ? file.bytes.toString('utf8').trim() : file.why;
}
