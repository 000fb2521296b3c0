// An installed host for tests of commands: a repository with two releases, a configuration, and a state directory with the first
// release active. Made once for each test file and copied for each test.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { runWrit, type WritRun } from '../cli/run-writ.js';
import { runWritProcess } from '../cli/writ-process.js';
import { type TempDir, tempDir } from '../disk/temp-dir.js';
import { sampleRepository } from '../repository/sample-repository.js';
import { quietPolls } from './quiet-polls.js';

export interface InstalledHost extends Disposable {
  readonly dir: TempDir;
  /** Directory of the repository. */
  readonly repository: string;
  readonly keys: string;
  /** Path of the configuration. */
  readonly config: string;
  readonly paths: Pick<HostPaths, 'state' | 'policy' | 'current' | 'staging' | 'journal' | 'lock'>;
  /** Writes the configuration again with these keys changed. */
  configure(changes: Readonly<Record<string, unknown>>): void;
  writ(...args: readonly string[]): Promise<WritRun>;
  /** As `writ`, run by another program. */
  writUnder(under: readonly string[], ...args: readonly string[]): Promise<WritRun>;
}

/** @returns a host with release 1 of `dns-edge` active and release 2 published. @throws Error if the first pull fails */
export async function installHost(): Promise<InstalledHost> {
  const dir = tempDir();
  const repository = sampleRepository(dir, { clock: systemClock });
  const host = hostIn(dir);
  await repository.publish({ 'block.rpz': 'version 1\n' });
  // Runs a process, so that the lock's recorded holder has ended when a test examines it.
  const run = await runWritProcess(['pull', '--config', host.config]);
  if (run.exitCode !== 0) throw new Error(`the first pull failed: ${run.stdout}${run.stderr}`);
  await repository.publish({ 'block.rpz': 'version 2\n' });
  return host;
}

/** @returns a copy of the host in another directory, which a test may damage */
export function copyHost(host: InstalledHost): InstalledHost {
  const dir = tempDir();
  execFileSync('cp', ['-a', `${host.dir.path}/.`, dir.path]);
  return hostIn(dir);
}

function hostIn(dir: TempDir): InstalledHost {
  const config = dir.join('agent.yaml');
  const base = {
    repository: pathToFileURL(dir.join('repo')).href,
    root: dir.join('repo', 'metadata', '1.root.json'),
    state: dir.join('state'),
    run: dir.join('run'),
    ...quietPolls(),
    bundles: [{ name: 'dns-edge' }],
    sandbox: 'off',
  };
  const configure: InstalledHost['configure'] = (changes) =>
    writeFileSync(config, JSON.stringify({ ...base, ...changes }));
  configure({});
  mkdirSync(base.run, { recursive: true });
  return {
    dir,
    repository: dir.join('repo'),
    keys: dir.join('keys'),
    config,
    paths: hostPaths({ state: base.state, policy: dir.join('state', 'policy'), run: base.run, socket: '' }),
    configure,
    writ: (...args) => runWrit([...args, '--config', config]),
    writUnder: (under, ...args) => runWritProcess([...args, '--config', config], { under }),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}
