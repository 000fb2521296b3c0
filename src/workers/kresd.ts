// Knot Resolver workers, found by their control sockets. Each is told by one command and believed by one exact
// answer: an error looks like any other answer there. Never trusts a prompt, a partial answer, or silence.
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import picomatch from 'picomatch';
import { isSystemError, WritError } from '../core/errors.js';
import { exchange, requireSocketPath } from '../platform/unix-socket.js';
import { confirmed, refused, unreachable } from './answer.js';
import type { Answer, Driver, DriverContext, DriverKind, ResetOptions } from './driver.js';
import { createKresdReader, encodeKresdCommand, type KresdAnswer } from './kresd-protocol.js';
import { socketIdentity } from './socket-identity.js';

const maxSockets = 1024;
const maxDirectoryEntries = 16_384;

interface KresdOptions {
  readonly kresd: string;
  readonly command: string;
  readonly expect: string;
}

export const kresd: DriverKind = {
  name: 'kresd',
  properties: {
    kresd: {
      type: 'string',
      // Wildcards in the last component only: the directory is a fixed place that can be checked.
      pattern: '^/([^*?\\[\\]{}\\n\\u0000]*/)?[^/\\n\\u0000]+$',
      maxLength: 255,
      description:
        'a glob of control sockets, with wildcards in its last part only, as /run/knot-resolver/control/*',
    },
    command: {
      type: 'string',
      pattern: '^[^\\r\\n\\u0000]+$',
      maxLength: 4096,
      description: 'one line of Lua, as policy_reset()',
    },
    expect: {
      type: 'string',
      maxLength: 4096,
      description: 'a text (put it in quotes): the one answer that means yes, as "0"',
    },
  },
  required: ['command', 'expect'],
  create: (options, context) => createKresdDriver(options as unknown as KresdOptions, context),
};

function createKresdDriver(options: KresdOptions, context: DriverContext): Driver {
  const directory = dirname(options.kresd);
  const isWanted = picomatch(basename(options.kresd), { dot: true });
  requireSocketPath(join(directory, 'x'));
  return {
    verdictClass: 'true',
    members: () => socketsIn(directory, isWanted),
    reset: (worker, reset) => tell(join(directory, worker), options, reset, context),
    identity: (worker) => socketIdentity(join(directory, worker)),
  };
}

async function socketsIn(directory: string, isWanted: (name: string) => boolean): Promise<readonly string[]> {
  const names: string[] = [];
  let entries = 0;
  try {
    for await (const entry of await opendir(directory)) {
      entries += 1;
      if (isSocket(entry) && isWanted(entry.name)) names.push(entry.name);
      if (entries > maxDirectoryEntries || names.length > maxSockets) throw tooMany(directory);
    }
  } catch (error) {
    // The directory of a resolver that is not up yet.
    if (isSystemError(error, 'ENOENT')) return [];
    if (!isSystemError(error) || error instanceof WritError) throw error;
    throw new WritError('WORKER_UNREACHABLE', `${directory} cannot be listed: ${error.code}`, {
      facts: { directory, errno: error.code },
      cause: error,
    });
  }
  return names.sort();
}

/** A link could lead to the socket of another program. */
function isSocket(entry: Dirent): boolean {
  return entry.isSocket();
}

/** A worker left out in silence would go on with the old policy, and nobody would know. */
function tooMany(directory: string): WritError {
  return new WritError('WORKER_UNREACHABLE', `${directory} holds too many sockets or files to tell`, {
    facts: { directory, expected: maxSockets },
  });
}

async function tell(
  path: string,
  options: KresdOptions,
  reset: ResetOptions,
  context: DriverContext,
): Promise<Answer> {
  if (dirname(path) !== dirname(options.kresd))
    return unreachable(`${path} is outside the configured directory`);
  const result = await exchange({
    path,
    request: encodeKresdCommand(options.command),
    read: createKresdReader(),
    timeoutMs: reset.timeoutMs,
    clock: context.clock,
    ...(reset.signal === undefined ? {} : { signal: reset.signal }),
  });
  if (result.kind === 'failed') return unreachable(`${path}: ${result.reason}`);
  return judge(path, result.value, options.expect);
}

function judge(path: string, answer: KresdAnswer, expect: string): Answer {
  if (answer.kind === 'malformed') {
    return unreachable(`${path}: an answer of ${answer.length} bytes was announced: this is no kresd`);
  }
  return answer.text === expect ? confirmed(answer.text) : refused(answer.text);
}
