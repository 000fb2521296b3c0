// Driver of daemons that follow the link `current` and write the generation that they use into a file: its number, or
// `error NUMBER REASON`. The file confirms only the requested generation; no worker is notified.
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

const pollMs = 100;

async function waitFor(path: string, reset: ResetOptions, { clock }: DriverContext): Promise<Answer> {
  const { target, timeoutMs, signal } = reset;
  const endMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    const note = noteIn(path);
    if (note === String(target.generation)) return confirmed(`uses generation ${note}`);
    // An error of an older generation is no verdict on this one.
    if (note.startsWith(`error ${target.generation} `)) return refused(note);
    if (clock.monotonicMs() >= endMs || signal?.aborted === true) return unreachable(`${path}: ${note}`);
    await clock.sleep(pollMs, signal);
  }
}

function noteIn(path: string): string {
  const file = readSmallFile(path, { maxBytes: 4096 });
  return file.kind === 'read' ? file.bytes.toString('utf8').trim() : file.why;
}
