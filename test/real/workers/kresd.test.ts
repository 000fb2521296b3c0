// The driver of kresd with real Knot Resolver workers, queried with dig: the policy of their answers, their refusals, and
// the bytes that they send. Also tests the sample check, which is a kresd that only parses.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { exchange } from '../../../src/platform/net/unix-socket.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { kresd } from '../../../src/workers/drivers/kresd.js';
import { createKresdReader, encodeKresdCommand } from '../../../src/workers/protocols/kresd-protocol.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type RealKresd, sampleDirectory, startRealKresd } from '../../kit/programs/real-kresd.js';
import { needs } from '../../kit/programs/real-programs.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const options = { timeout: 240_000, ...needs('dig', 'bind9-dnsutils'), ...needs('kresd', 'knot-resolver') };
const sample = 'bundles/dns-edge/block.rpz';

/** Makes generations g1 (the sample) and g2 (another answer), with `current` at g1, as an agent does. */
function policyIn(dir: TempDir): string {
  const text = readFileSync(sample, 'utf8');
  const second = text.replace('192.0.2.1', '192.0.2.2').replace('old.example.com', 'new.example.com');
  for (const [name, zone] of [
    ['g1', text],
    ['g2', second],
  ] as const) {
    mkdirSync(dir.join('policy', name, 'dns-edge'), { recursive: true });
    writeFileSync(dir.join('policy', name, 'dns-edge/block.rpz'), zone);
  }
  symlinkSync('g1', dir.join('policy/current'));
  return dir.join('policy');
}

function swap(dir: TempDir, generation: string): void {
  symlinkSync(generation, dir.join('policy/.next'));
  renameSync(dir.join('policy/.next'), dir.join('policy/current'));
}

function driverOf(workers: RealKresd): Driver {
  const own = { kresd: workers.controlGlob, command: 'policy_reset()', expect: '0', confirms: true };
  return kresd.create(own, driverContext());
}

const reset = { target: { generation: 2, path: '/unused' }, timeoutMs: 60_000 };

describe('real Knot Resolver workers', options, () => {
  it('answer from the new policy after each was notified, without a restart', async () => {
    using dir = tempDir();
    await using workers = await startRealKresd({ policy: policyIn(dir) });
    const driver = driverOf(workers);
    const before = workers.pids();
    assert.deepEqual(await workers.ask('app.example.com'), { '192.0.2.1': 20 });
    assert.deepEqual(await workers.ask('old.example.com', 1), { NXDOMAIN: 1 });
    swap(dir, 'g2');
    assert.deepEqual(
      await workers.ask('app.example.com'),
      { '192.0.2.1': 20 },
      'a swap alone changes nothing',
    );
    assert.deepEqual(await driver.members(), ['1', '2']);
    for (const worker of ['1', '2']) {
      assert.deepEqual(await driver.reset(worker, reset), { kind: 'confirmed', text: '0' });
    }
    assert.deepEqual(await workers.ask('app.example.com'), { '192.0.2.2': 20 });
    assert.deepEqual(await workers.ask('new.example.com', 1), { NXDOMAIN: 1 });
    assert.deepEqual(workers.pids(), before);
  });

  it('are named when killed, although their socket stays', async () => {
    using dir = tempDir();
    await using workers = await startRealKresd({ policy: policyIn(dir) });
    const driver = driverOf(workers);
    await workers.kill('2');
    assert.deepEqual(await driver.members(), ['1', '2']);
    assert.equal((await driver.reset('1', reset)).kind, 'confirmed');
    const dead = await driver.reset('2', reset);
    assert.equal(dead.kind, 'unreachable');
    assert.match(dead.text, /control\/2: ECONNREFUSED$/);
    await workers.start('2');
    assert.equal((await driver.reset('2', reset)).kind, 'confirmed');
  });

  it('refuse a policy with a missing file, and keep the old rules', async () => {
    using dir = tempDir();
    await using workers = await startRealKresd({ policy: policyIn(dir), workers: 1 });
    mkdirSync(dir.join('policy/g3'));
    swap(dir, 'g3');
    const answer = await driverOf(workers).reset('1', reset);
    assert.equal(answer.kind, 'refused', answer.text);
    assert.match(answer.text, /block\.rpz/);
    assert.deepEqual(await workers.ask('app.example.com', 3), { '192.0.2.1': 3 });
  });

  it('refuse a zone that is partly valid or invalid, and keep the old rules, because the sample parses it first', async () => {
    using dir = tempDir();
    await using workers = await startRealKresd({ policy: policyIn(dir), workers: 1 });
    const good = readFileSync(sample, 'utf8');
    for (const [index, zone] of [`${good}broken CNAME\n`, 'no zone at all\n'].entries()) {
      mkdirSync(dir.join(`policy/bad${index}/dns-edge`), { recursive: true });
      writeFileSync(dir.join(`policy/bad${index}/dns-edge/block.rpz`), zone);
      swap(dir, `bad${index}`);
      const answer = await driverOf(workers).reset('1', reset);
      assert.equal(answer.kind, 'refused', answer.text);
      assert.match(answer.text, /block\.rpz:\d+: /);
      assert.deepEqual(await workers.ask('app.example.com', 3), { '192.0.2.1': 3 });
    }
  });

  it('start without a policy, and load the first one when notified', async () => {
    using dir = tempDir();
    const policy = policyIn(dir);
    renameSync(dir.join('policy/current'), dir.join('policy/later'));
    await using workers = await startRealKresd({ policy, workers: 1 });
    swap(dir, 'g1');
    assert.equal((await driverOf(workers).reset('1', reset)).kind, 'confirmed');
    assert.deepEqual(await workers.ask('app.example.com', 1), { '192.0.2.1': 1 });
  });

  it('send the recorded bytes', async () => {
    using dir = tempDir();
    await using workers = await startRealKresd({ policy: policyIn(dir), workers: 1 });
    const boom = '[string "return table_print(error("boom"))"]:1: boom';
    for (const [command, text] of [
      ['1+1', '2'],
      ['nil', 'nil'],
      ['error("boom")', boom],
    ] as const) {
      const received: Buffer[] = [];
      const read = createKresdReader();
      const result = await exchange({
        path: workers.controlGlob.replace('*', '1'),
        request: encodeKresdCommand(command),
        read: (chunk) => {
          received.push(Buffer.from(chunk));
          return read(chunk);
        },
        timeoutMs: 60_000,
        clock: systemClock,
      });
      assert.deepEqual(result, { kind: 'answered', value: { kind: 'text', text } });
      const length = Buffer.alloc(4);
      length.writeUInt32BE(text.length);
      assert.equal(
        Buffer.concat(received).toString('hex'),
        `3e20${length.toString('hex')}${Buffer.from(text).toString('hex')}`,
      );
    }
  });
});

describe('the sample check of a zone', options, () => {
  interface Ended {
    readonly exitCode: number;
    readonly stderr: string;
  }

  /** Runs the check as the agent does, with the bundle in the environment and an empty scratch directory. */
  function check(bundle: string): Promise<Ended> {
    const scratch = join(bundle, 'scratch');
    mkdirSync(scratch);
    const args = ['-n', '-c', join(sampleDirectory, 'rpz-check.conf'), '-c', '-', scratch];
    const env = { PATH: process.env['PATH'], WRIT_BUNDLE_DIR: bundle };
    return new Promise((resolve) => {
      execFile('kresd', args, { env, cwd: '/' }, (error, _stdout, stderr) =>
        resolve({ exitCode: error === null ? 0 : Number(error.code), stderr }),
      );
    });
  }

  it('accepts the sample', async () => {
    using dir = tempDir();
    cpSync(sample, dir.join('block.rpz'));
    assert.deepEqual((await check(dir.path)).exitCode, 0);
  });

  it('refuses a bad line, and names the file and the line', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('block.rpz'), readFileSync(sample, 'utf8').replace('192.0.2.1', '192.0.2.999'));
    const { exitCode, stderr } = await check(dir.path);
    assert.equal(exitCode, 1);
    assert.match(stderr, /block\.rpz:6: invalid IPv4 address/);
  });

  it('refuses a missing file and an empty one, which a worker would load as an empty policy', async () => {
    using dir = tempDir();
    assert.equal((await check(dir.path)).exitCode, 1);
    using empty = tempDir();
    writeFileSync(empty.join('block.rpz'), '; nothing\n');
    const { exitCode, stderr } = await check(empty.path);
    assert.equal(exitCode, 1);
    assert.match(stderr, /no records/);
  });
});
