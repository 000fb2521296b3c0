// Real processes on one state directory while a repository publishes and rotates its roots. The lock excludes them from each
// other, and some are killed during a write. At the end the store is valid, no version went back, and the error of a second
// process names the first.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { isWritError } from '../../../../src/core/errors.js';
import { createDurableFs, isTemporaryName } from '../../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../../src/platform/disk/process-lock.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { installHost } from '../../../kit/agent/installed-host.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { startScript } from '../../../kit/cli/child-script.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';
import { simulatedSource } from '../../../kit/repository/simulated-source.js';
import { trustHostAt } from '../../../kit/trust/trust-host.js';

interface Puller {
  /** Of the timestamp that it trusted last; 0 before that. */
  timestampVersion(): number;
  /** Undefined while it runs; then the signal that ended it, or null. */
  end(): string | null | undefined;
  /** Resolves when it has refreshed once more, or has ended. */
  moved(): Promise<unknown>;
}

interface PullerOptions {
  readonly name: string;
  readonly dir: TempDir;
  /** It kills itself before this file operation, counted from its start. */
  readonly fatalOperation: number;
}

/** A process that refreshes under the lock, again and again, until the file `stop` is there. */
function startPuller({ name, dir, fatalOperation }: PullerOptions): Puller {
  const { child, firstLine } = startScript(`
    const fs = await import('node:fs');
    const { takeLock } = await import(at('src/platform/disk/process-lock.js'));
    const { systemClock: clock } = await import(at('src/platform/time/clock.js'));
    const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
    const { openTrustStore } = await import(at('src/trust/store/trust-store.js'));
    const { openRepositorySource } = await import(at('src/trust/sources/repository-source.js'));
    const { openRepositoryClient } = await import(at('src/trust/repository-client.js'));
    const top = ${JSON.stringify(dir.path)};
    let operations = 0;
    const fatal = ${fatalOperation};
    const kill = () => ++operations === fatal && process.kill(process.pid, 'SIGKILL');
    const durable = createDurableFs();
    while (!fs.existsSync(top + '/stop')) {
      const lock = await takeLock({ durable, path: top + '/lock', holder: '${name}', waitMs: 100_000, clock, code: 'LOCK_HELD' });
      const store = openTrustStore({
        directory: top + '/trust', bootstrapRoot: top + '/root.json', fs: createDurableFs({ before: kill }) });
      const source = openRepositorySource(${JSON.stringify(pathToFileURL(dir.join('repository')).href)}, { clock, version: '0' });
      const { roles } = await openRepositoryClient({ source, store, clock }).refresh();
      const versions = ['root', 'timestamp', 'snapshot', 'targets'].map((role) => roles[role].version);
      fs.appendFileSync(top + '/log', JSON.stringify(versions) + '\\n');
      lock.release();
      console.log(versions[1]);
    }`);
  // A killed process has no output.
  firstLine.catch(() => undefined);
  let end: string | null | undefined;
  let version = 0;
  const ended = once(child, 'close').then(([, signal]) => {
    end = signal as string | null;
  });
  assert.ok(child.stdout);
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    version = Number(line);
  });
  return {
    timestampVersion: () => version,
    end: () => end,
    moved: () => Promise.race([once(lines, 'line'), ended]),
  };
}

/** Two pullers, each of which dies amid its writes and is started again. */
class Pair {
  readonly ends: (string | null)[] = [];
  readonly #dir: TempDir;
  #pullers: Puller[] = [];
  #started = 0;

  constructor(dir: TempDir) {
    this.#dir = dir;
    this.#keepTwo();
  }

  /** Until one of them trusts this timestamp. */
  async reach(version: number): Promise<void> {
    while (!this.#pullers.some((puller) => puller.timestampVersion() >= version)) {
      await Promise.race(this.#pullers.map((puller) => puller.moved()));
      this.#keepTwo();
    }
  }

  /**
   * Tries to take the lock until another process holds it. Both pullers may die before: the caller then starts them again.
   * @returns the holder of the lock, as in the error
   */
  async holder(): Promise<string> {
    const path = this.#dir.join('lock');
    const durable = createDurableFs();
    const options = { holder: 'test', waitMs: 0, clock: systemClock, durable, code: 'LOCK_HELD' } as const;
    for (;;) {
      this.#keepTwo();
      try {
        (await takeLock({ path, ...options })).release();
      } catch (error) {
        if (!isWritError(error) || error.code !== 'LOCK_HELD') throw error;
        const holder = String(error.facts['holder']);
        // Between taking the lock and leaving its note a holder is called by its program.
        if (holder.startsWith('puller-')) return holder;
      }
    }
  }

  async stop(): Promise<void> {
    writeFileSync(this.#dir.join('stop'), '');
    for (const puller of this.#pullers) while (puller.end() === undefined) await puller.moved();
  }

  #keepTwo(): void {
    const isUp = (puller: Puller): boolean => puller.end() === undefined;
    this.ends.push(...this.#pullers.filter((puller) => !isUp(puller)).map((puller) => puller.end() ?? null));
    this.#pullers = this.#pullers.filter(isUp);
    while (this.#pullers.length < 2) {
      this.#started += 1;
      // A publish is nine operations and a new root six: the kill falls elsewhere each time.
      const fatalOperation = 2 + ((this.#started * 5) % 9);
      this.#pullers.push(startPuller({ name: `puller-${this.#started}`, dir: this.#dir, fatalOperation }));
    }
  }
}

/** Puts what the repository serves into a directory: whole files, the timestamp last. */
function upload(repository: RepositorySimulator, dir: TempDir): void {
  const paths = [...repository.files.keys()].sort(
    (a, b) => Number(a.endsWith('timestamp.json')) - Number(b.endsWith('timestamp.json')),
  );
  for (const path of paths) {
    const full = dir.join('repository', path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(`${full}.new`, repository.files.get(path) ?? '');
    renameSync(`${full}.new`, full);
  }
}

function logged(dir: TempDir): number[][] {
  const lines = readFileSync(dir.join('log'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as number[]);
}

describe('processes on one state directory', longCase, () => {
  it('may be commands: every one of four pulls at once ends well, and the release is active once', async () => {
    using host = await installHost();
    const runs = await Promise.all([1, 2, 3, 4].map(() => host.writ('pull', '--json')));
    for (const run of runs) assert.equal(run.exitCode, 0, run.stdout + run.stderr);
    const outcomes = runs.map((run) => jsonOf(run)['outcome']);
    assert.deepEqual(outcomes.sort(), ['activated', 'unchanged', 'unchanged', 'unchanged']);
    assert.equal(readFileSync(join(host.paths.current, 'dns-edge', 'block.rpz'), 'utf8'), 'version 2\n');
    const names = readdirSync(join(host.paths.state, 'trust'), { recursive: true }).map(String);
    assert.deepEqual(
      names.filter((name) => name.includes('.writ-tmp-')),
      [],
    );
  });

  it('use the store one after the other: it stays valid, no version falls, and the error of the second names the first', async () => {
    using dir = tempDir();
    const repository = new RepositorySimulator({ nowMs: systemClock.nowMs() });
    writeFileSync(dir.join('root.json'), repository.bootstrapRoot);
    upload(repository, dir);
    const pair = new Pair(dir);
    for (let round = 1; round <= 5; round += 1) {
      if (round % 2 === 0) repository.rotate('root');
      repository.publish();
      upload(repository, dir);
      assert.match(await pair.holder(), /^puller-\d+ \(pid \d+\)$/);
      await pair.reach(repository.timestamp.version);
    }
    await pair.stop();
    assert.ok(pair.ends.length > 0);
    for (const end of pair.ends) assert.equal(end, 'SIGKILL');

    const versions = logged(dir);
    for (const [at, now] of versions.entries()) {
      for (const [role, version] of now.entries())
        assert.ok(version >= (versions[at - 1]?.[role] ?? 0), `line ${at}`);
    }
    assert.deepEqual(versions.at(-1), [3, 6, 6, 6]);
    await storeIsWhole(dir, repository);
  });
});

async function storeIsWhole(dir: TempDir, repository: RepositorySimulator): Promise<void> {
  const trust = dir.join('trust');
  const names = readdirSync(trust, { recursive: true })
    .map(String)
    .filter((name) => !isTemporaryName(name.slice(name.lastIndexOf('/') + 1)));
  const roots = [1, 2, 3].map((version) => `roots/${version}.root.json`);
  assert.deepEqual(names.sort(), [
    'root.json',
    'roots',
    ...roots,
    'snapshot.json',
    'targets.json',
    'timestamp.json',
  ]);
  for (const role of ['root', 'timestamp', 'snapshot', 'targets'] as const) {
    assert.deepEqual(
      readFileSync(dir.join('trust', `${role}.json`)),
      repository.file(repository.nameOf(role)),
      role,
    );
  }
  const writes: string[] = [];
  const client = trustHostAt(dir, systemClock).boot(simulatedSource(repository.files, []), {
    before: ({ op }) => void writes.push(op),
  });
  assert.equal((await client.refresh()).changed, false);
  assert.deepEqual(writes, []);
  assert.equal(existsSync(dir.join('lock')), true);
}
