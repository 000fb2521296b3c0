// Damage in trust/: of each file, of each kind, alone and together. The next pull repairs it, or the answer names a remedy that
// works. The active policy is unchanged in every case.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { publishNext } from '../../kit/assert/fault-table.js';
import { longCase } from '../../kit/assert/long-case.js';
import { standingPolicy } from '../../kit/assert/standing-policy.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

const names = ['root.json', 'timestamp.json', 'snapshot.json', 'targets.json', 'roots/1.root.json'];

/** Damage that does not prevent the next write. */
const soft: Readonly<Record<string, (path: string) => void>> = {
  truncated: (path) => fs.truncateSync(path, Math.floor(fs.statSync(path).size / 2)),
  emptied: (path) => fs.truncateSync(path, 0),
  deleted: (path) => fs.rmSync(path),
  'replaced by garbage': (path) => fs.writeFileSync(path, Buffer.alloc(5000, 0xff)),
  'replaced by other metadata': (path) =>
    fs.copyFileSync(
      join(dirname(path), path.endsWith('timestamp.json') ? 'targets.json' : 'timestamp.json'),
      path,
    ),
};

const hard: Readonly<Record<string, (path: string) => void>> = {
  'made a directory': (path) => {
    fs.rmSync(path);
    fs.mkdirSync(path);
  },
  'made a full directory': (path) => {
    fs.rmSync(path);
    fs.mkdirSync(path);
    fs.writeFileSync(join(path, 'note'), '');
  },
  'made a FIFO': (path) => {
    fs.rmSync(path);
    execFileSync('mkfifo', [path]);
  },
};

async function activeHost(): Promise<TestHost> {
  const test = testHost();
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  return test;
}

/** A new process pulls the releases that were published since. */
async function pullNext(test: TestHost): Promise<CycleResult> {
  await publishNext(test, 6);
  return cycleOn(test.reopen());
}

function place(test: TestHost, name: string): string {
  return join(test.host.paths.trust, name);
}

function assertWhole(test: TestHost): void {
  for (const [name, served] of [
    ['root.json', '1.root.json'],
    ['roots/1.root.json', '1.root.json'],
    ['timestamp.json', 'timestamp.json'],
    ['snapshot.json', `${test.repository.snapshot.version}.snapshot.json`],
    ['targets.json', `${test.repository.targets.version}.targets.json`],
  ] as const)
    assert.deepEqual(fs.readFileSync(place(test, name)), test.repository.file(served), name);
}

describe('a file of trust/', longCase, () => {
  for (const name of names) {
    for (const [how, harm] of Object.entries(soft)) {
      if (name.startsWith('roots/') && how === 'replaced by other metadata') continue;
      it(`heals: ${name} ${how}`, async () => {
        using test = await activeHost();
        harm(place(test, name));
        const result = await pullNext(test);
        assert.equal(result.outcome, 'activated', result.problems[0]?.message);
        assertWhole(test);
      });
    }
    for (const [how, harm] of Object.entries(hard)) {
      it(`is said with what to do: ${name} ${how}`, async () => {
        using test = await activeHost();
        const stands = standingPolicy(test.host.paths);
        harm(place(test, name));
        const [problem] = (await pullNext(test)).problems;
        assert.equal(problem?.code, 'TRUST_STORE_DAMAGED', problem?.message);
        stands();
        const command = /`(mv [^`]+)`/.exec(problem.hint)?.[1] ?? '';
        assert.ok(command.includes(place(test, name)), problem.hint);
        execFileSync('sh', ['-c', command]);
        assert.equal((await cycleOn(test.reopen())).outcome, 'activated');
        assertWhole(test);
      });
    }
  }
});

describe('all of trust/', longCase, () => {
  it('deleted is made again from the bootstrap root, and old serials stay refused', async () => {
    using test = await activeHost();
    fs.rmSync(test.host.paths.trust, { recursive: true });
    await publishNext(test, 4);
    const result = await cycleOn(test.reopen());
    assert.equal(result.problems[0]?.code, 'SERIAL_ROLLBACK');
    assertWhole(test);
  });

  for (const how of ['truncated', 'replaced by garbage', 'emptied']) {
    it(`${how} is said with what to do`, async () => {
      using test = await activeHost();
      const stands = standingPolicy(test.host.paths);
      for (const name of names) soft[how]?.(place(test, name));
      const [problem] = (await pullNext(test)).problems;
      assert.equal(problem?.code, 'TRUST_STORE_DAMAGED');
      stands();
      execFileSync('sh', ['-c', /`(mv [^`]+)`/.exec(problem.hint)?.[1] ?? 'false']);
      assert.equal((await cycleOn(test.reopen())).outcome, 'activated');
      assertWhole(test);
    });
  }

  it('replaced by a file is reported with a remedy', async () => {
    using test = await activeHost();
    fs.rmSync(test.host.paths.trust, { recursive: true });
    fs.writeFileSync(test.host.paths.trust, '');
    const [problem] = (await pullNext(test)).problems;
    assert.equal(problem?.code, 'TRUST_STORE_DAMAGED');
    execFileSync('sh', ['-c', /`(mv [^`]+)`/.exec(problem.hint)?.[1] ?? 'false']);
    assert.equal((await cycleOn(test.reopen())).outcome, 'activated');
  });
});

describe('another repository on the same state directory', longCase, () => {
  it('is a configuration error with the command that changes it on purpose, and the trust is kept', async () => {
    using test = await activeHost();
    const stands = standingPolicy(test.host.paths);
    const before = fs.readFileSync(place(test, 'timestamp.json'));
    const other = new RepositorySimulator({ nowMs: test.clock.nowMs() });
    const bootstrap = join(test.directory, 'root.json');
    fs.writeFileSync(bootstrap, other.bootstrapRoot);
    const result = await cycleOn(test.reopen({ source: () => other.source() }));
    assert.deepEqual([result.problems[0]?.code, result.exitCode], ['ROOT_NOT_LINKED', 2]);
    assert.match(result.problems[0]?.hint ?? '', /`mv .*\/trust .*\/trust\.old`, then `writ pull`/);
    assert.deepEqual(other.takeRequests(), []);
    assert.deepEqual(fs.readFileSync(place(test, 'timestamp.json')), before);
    stands();
    fs.writeFileSync(bootstrap, test.repository.bootstrapRoot);
    assert.equal((await pullNext(test)).outcome, 'activated');
  });
});

describe('a lost record of the active release', longCase, () => {
  const archives = (test: TestHost): string => join(test.host.paths.archives, 'access');

  for (const force of ['no', 'yes'] as const) {
    it(`is replaced by a pull of the same release, forced: ${force}`, async () => {
      using test = await activeHost();
      fs.rmSync(archives(test), { recursive: true });
      const result = await test.pull({ force });
      assert.deepEqual([result.outcome, result.generation], ['activated', 2], result.problems[0]?.message);
      assert.equal((await test.pull()).outcome, 'unchanged');
    });
  }

  it('is reported at every pull while the repository does not list it', async () => {
    using test = await activeHost();
    fs.rmSync(archives(test), { recursive: true });
    await publishNext(test, 6);
    for (const path of test.repository.files.keys())
      if (path.startsWith('targets/access/')) test.repository.files.delete(path);
    for (let times = 0; times < 2; times += 1) {
      const result = await test.pull();
      assert.equal(result.outcome, 'failed');
      assert.ok(result.problems.some((one) => one.code === 'STATE_DAMAGED'));
    }
  });

  it('is repaired by a pull, as a lost tree is', async () => {
    using test = await activeHost();
    fs.rmSync(join(test.host.paths.bundles, 'access'), { recursive: true });
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
  });

  it('does not remove its bundle where it cannot be downloaded', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await publishNext(test, 5);
    await test.publish('dns-edge', { 'a.rpz': '1' }, { serial: 1 });
    await test.pull();
    fs.rmSync(archives(test), { recursive: true });
    for (const path of test.repository.files.keys())
      if (path.startsWith('targets/access/')) test.repository.files.delete(path);
    await test.publish('dns-edge', { 'a.rpz': '2' }, { serial: 2 });
    const stands = standingPolicy(test.host.paths);
    const forced = await test.pull({ force: 'yes' });
    assert.equal(forced.outcome, 'failed');
    assert.ok(forced.problems.some((one) => one.code === 'STATE_DAMAGED'));
    stands();
  });
});
