// A host that writes all its actions to an action log: commands, workers, disk and server. Each of them can be made to fail.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { WritError } from '../../../src/core/errors.js';
import type { OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { type ActionLog, strike, type Trouble } from '../assert/step-story.js';
import { type LivingDriver, livingDriver, notified } from '../workers/living-workers.js';
import { confirms, refuses, unreachable } from '../workers/scripted-driver.js';
import type { TestHostOptions } from './test-host.js';

export interface LoggedWorld {
  readonly log: ActionLog;
  readonly script: string;
  /** Dead workers; the set survives a restart of the agent. */
  readonly dead: Set<string>;
}

/**
 * @param when `now`: the trouble occurs in this process run
 * @returns options for `testHost` that log actions to `world`
 */
export function hostOptions(world: LoggedWorld, trouble: Trouble, when: 'not yet' | 'now'): TestHostOptions {
  const { log, script } = world;
  const met = when === 'now' ? trouble : {};
  const hook = (name: string) => ({ run: command(log, script, name), timeoutMs: 60_000 });
  return {
    bundles: [{ name: 'access', checks: [{ kind: 'run', name: 'check', ...hook('check') }] }],
    groups: {
      app: {
        driver: driverOf(world, trouble, met),
        config: {
          ...workerConfigOf(trouble),
          canary: { kind: 'run', hook: hook('canary') },
          load: hook('load'),
          probe: { ...hook('probe'), retry: 0 },
        },
      },
    },
    observer: observerOf(log, met),
    source: (source) => loggedSource(source, log, met),
  };
}

function workerConfigOf({ workers }: Trouble): Partial<WorkerGroupConfig> {
  if (workers === 'rolling') return { rolling: 1 };
  if (workers === 'mortal') return { onDead: 'restart' };
  return workers === 'restarted' ? { restartWhen: ['policy.yaml'] } : {};
}

/** Logs each verb when it is used: `notify 2`, `restart 2`, and `notify b 2` if there are several workers. */
function driverOf({ log, dead }: LoggedWorld, trouble: Trouble, met: Trouble): LivingDriver {
  const isSet = trouble.workers === 'rolling' || trouble.workers === 'set';
  const answer = (worker: string) => (generation: number) => {
    const isNo = generation > 1 && trouble.isRefusing === true && (!isSet || worker === 'b');
    return isNo ? refuses('no')() : confirms(generation);
  };
  const names = isSet ? ['a', 'b', 'c'] : ['a'];
  const driver = livingDriver(Object.fromEntries(names.map((name) => [name, answer(name)])));
  const logAction = (verb: string, worker: string, generation: number): void => {
    log.requireAlive();
    const text = `${verb} ${isSet ? `${worker} ` : ''}${generation}`;
    log.write(text);
    strike(log, met, text);
  };
  return {
    ...driver,
    liveness: async (worker) => (dead.has(worker) ? 'dead' : 'alive'),
    reset: async (worker, options) => {
      const { generation } = options.target;
      logAction('notify', worker, generation);
      if (trouble.workers === 'mortal' && generation > 1) dead.add(worker);
      if (dead.has(worker)) return unreachable();
      return driver.reset(worker, options);
    },
    restart: async (worker, { target }) => {
      logAction('restart', worker, target.generation);
      dead.delete(worker);
      return notified();
    },
  };
}

/**
 * The command logs its name and generation. The file NAME in `script` has its exit code, and whether it applies to generation
 * 1.
 */
function command(log: ActionLog, script: string, name: string): [string, ...string[]] {
  const generation = name === 'check' || name === 'canary' ? 'new' : '$' + '{WRIT_GENERATION_DIR##*/}';
  const verdict = `read code always < ${join(script, name)} 2>/dev/null || exit 0`;
  const spared = `[ "$always" = yes ] || [ ${generation} != 1 ] || exit 0`;
  return ['sh', '-c', `echo "${name} ${generation}" >> ${log.path}; ${verdict}; ${spared}; exit $code`];
}

function observerOf(log: ActionLog, trouble: Trouble): OperationObserver {
  const counts = new Map<string, number>();
  let op = '';
  return {
    before: (operation) => {
      log.requireAlive();
      const count = (counts.get(operation.op) ?? 0) + 1;
      counts.set(operation.op, count);
      op = count === 1 ? operation.op : `${operation.op} ${count}`;
      strike(log, trouble, `before ${op}`);
    },
    after: ({ op: label, path }) => {
      log.requireAlive();
      logOperation(log, label, path);
      strike(log, trouble, `after ${op}`);
    },
  };
}

function logOperation(log: ActionLog, label: string, path: string): void {
  if (label === 'swap.link:rename') log.write(`link ${fs.readlinkSync(path).slice('generations/'.length)}`);
  if (label === 'swap.unlink') log.write('link none');
  if (label === 'status:rename')
    log.write(`status ${JSON.parse(fs.readFileSync(path, 'utf8')).last.outcome}`);
  if (label !== 'history.append') return;
  const { result } = JSON.parse(fs.readFileSync(path, 'utf8').trim().split('\n').at(-1) ?? '');
  log.write(`history ${result.trigger} ${result.outcome}`);
}

function loggedSource(source: RepositorySource, log: ActionLog, { server }: Trouble): RepositorySource {
  const away = (path: string, does: string): boolean => server?.does === does && path.includes(server.file);
  return {
    ...source,
    fetch: async (path, options) => {
      log.requireAlive();
      log.write(`ask ${path.replace(/^metadata\/(\d+\.)?/, '').replace('.json', '')}`);
      if (away(path, 'is away')) throw new WritError('SERVER_UNREACHABLE', 'the server is away');
      return source.fetch(path, options);
    },
    stream: (path, options) => {
      log.requireAlive();
      log.write('download');
      const chunks = source.stream(path, options);
      return away(path, 'cuts off') ? cutOff(chunks) : chunks;
    },
  };
}

async function* cutOff(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk.subarray(0, 10);
    throw new WritError('SERVER_UNREACHABLE', 'the connection was cut off');
  }
}
