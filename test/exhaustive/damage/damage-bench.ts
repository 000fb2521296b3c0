// The damaged hosts, and the processes that run commands on them: one host a process, created once and copied for each case.
// Ends a process that hangs and records that in its case. Checks no result.
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { systemClock } from '../../../src/platform/time/clock.js';
import { quietPolls } from '../../kit/agent/quiet-polls.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';
import { inParallel } from '../crash/in-parallel.js';
import { type CommandResult, places } from './state-case.js';
import { type DamageCase, damageCases } from './state-harms.js';

/** A case of eight commands takes a second, and much longer on a busy machine. */
const hangsAfterMs = 90_000;

export interface Outcome {
  readonly damage: DamageCase;
  /** The path of the damaged entry. */
  readonly path: string;
  readonly results: readonly CommandResult[];
  /** The reason why the case did not end. */
  readonly failure?: string;
}

export interface DamageBench extends Disposable {
  readonly cases: readonly DamageCase[];
  run(cases: readonly DamageCase[]): Promise<Outcome[]>;
}

/** @param width the number of hosts and processes */
export async function damageBench(width: number): Promise<DamageBench> {
  const dir = tempDir();
  const first = dir.join('0');
  await makeHost(first);
  return {
    cases: damageCases(join(places(first).template, 'host')),
    run: async (cases) => {
      const free = Array.from({ length: width }, (_, at) => dir.join(String(at)));
      for (const other of free.slice(1)) copyHost(first, other);
      const children = new Map<string, ChildProcess>();
      const outcomes = await inParallel(cases, width, async (damage) => {
        const directory = free.pop() ?? first;
        const outcome = await ask(children, directory, damage);
        free.push(directory);
        return outcome;
      });
      for (const child of children.values()) child.disconnect();
      return outcomes;
    },
    [Symbol.dispose]: () => disposeAll(dir),
  };
}

/** Removes the directory, also entries without permissions. */
function disposeAll(dir: TempDir): void {
  execFileSync('chmod', ['-R', 'u+rwx', dir.path]);
  dir[Symbol.dispose]();
}

/**
 * Publishes three releases of `dns-edge`: the first was active, a check refused the second, the third is active. A
 * fourth is in the newer repository. `access` never changes.
 */
async function makeHost(directory: string): Promise<void> {
  const { work, host, config, repository, newer, template } = places(directory);
  fs.mkdirSync(host, { recursive: true });
  const dir: TempDir = {
    path: work,
    join: (...names) => join(work, ...names),
    [Symbol.dispose]: () => undefined,
  };
  const publisher = sampleRepository(dir, { clock: systemClock });
  const check = { name: 'sane', run: ['sh', '-c', 'test ! -e "$1/refuse"', 'sh', '{bundle}'] };
  const keys = {
    ...{ repository: pathToFileURL(publisher.directory).href, root: publisher.rootPath },
    ...{ state: join(host, 'state'), run: join(host, 'run'), ...quietPolls(), sandbox: 'off' },
    bundles: [{ name: 'dns-edge', checks: [check] }, { name: 'access' }],
  };
  fs.writeFileSync(config, JSON.stringify(keys));
  const pull = async (): Promise<void> => void (await runWrit(['pull', '--config', config]));
  await publisher.publish({ 'a.txt': 'access 1\n' }, { bundle: 'access' });
  await publisher.publish({ 'block.rpz': 'version 1\n' });
  await pull();
  await publisher.publish({ 'block.rpz': 'version 2\n', refuse: 'x' });
  await pull();
  await publisher.publish({ 'block.rpz': 'version 3\n' });
  await pull();
  execFileSync('cp', ['-a', work, template]);
  await publisher.publish({ 'block.rpz': 'version 4\n' });
  execFileSync('cp', ['-a', repository, newer]);
  leavePartial(join(template, 'host/state/partials'), { before: join(template, 'repo'), newer });
}

/** Leaves the partial download of an interrupted cycle. */
function leavePartial(partials: string, repository: Record<'before' | 'newer', string>): void {
  const archivesOf = (one: string): string => join(one, 'targets/dns-edge');
  const before = fs.readdirSync(archivesOf(repository.before));
  const name = fs
    .readdirSync(archivesOf(repository.newer))
    .find((one) => one.endsWith('.tar.br') && !before.includes(one));
  const archive = fs.readFileSync(join(archivesOf(repository.newer), name ?? ''));
  const path = join(partials, (name ?? '').slice(0, 64));
  fs.writeFileSync(path, archive.subarray(0, 100), { mode: 0o600 });
  const note = { writ: 1, location: pathToFileURL(repository.newer).href, etag: '"1"' };
  fs.writeFileSync(`${path}.json`, `${JSON.stringify(note)}\n`, { mode: 0o600 });
}

/** Copies a host with the same names in it, except for its own paths in the configuration. */
function copyHost(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
  const config = join(places(to).template, 'agent.yaml');
  fs.writeFileSync(config, fs.readFileSync(config, 'utf8').replaceAll(from, to));
}

async function ask(
  children: Map<string, ChildProcess>,
  directory: string,
  damage: DamageCase,
): Promise<Outcome> {
  const path = join(places(directory).host, damage.entry.path);
  const program = fileURLToPath(new URL('./state-case.js', import.meta.url));
  const child = children.get(directory) ?? fork(program, { execArgv: [] });
  children.set(directory, child);
  const ended = new AbortController();
  const timer = setTimeout(() => child.kill('SIGKILL'), hangsAfterMs);
  try {
    const answer = once(child, 'message', ended);
    const end = once(child, 'exit', ended).then(([code, signal]) => [{ failure: `${code ?? signal}` }]);
    child.send({ directory, damage });
    const [value] = (await Promise.race([answer, end])) as [
      { results?: readonly CommandResult[]; failure?: string },
    ];
    if (value.failure !== undefined) children.delete(directory);
    return { damage, path, results: [], ...value };
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}
