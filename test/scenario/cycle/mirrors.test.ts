// Cycles over several mirrors: the report of failed ones, and manipulated archives.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../src/core/errors.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import {
  busy,
  down,
  type SimulatedMirror,
  simulatedMirror,
  upload,
} from '../../kit/repository/simulated-mirror.js';

interface Bench extends Disposable {
  readonly test: TestHost;
  readonly a: SimulatedMirror;
  readonly b: SimulatedMirror;
  /** Publishes serial n on both mirrors. */
  publish(serial: number): Promise<void>;
}

function bench(): Bench {
  const a = simulatedMirror('https://a/');
  const b = simulatedMirror('https://b/');
  const test = testHost({ mirrors: [a, b] });
  return {
    test,
    a,
    b,
    publish: async (serial) => {
      await test.publish('access', { 'policy.yaml': String(serial) }, { serial });
      upload(test.repository.files, [a, b]);
    },
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}

function archiveIn({ files }: SimulatedMirror): [path: string, bytes: Buffer] {
  const found = [...files].filter(([path]) => path.startsWith('targets/')).at(-1);
  assert.ok(found);
  return found;
}

describe('a cycle over mirrors', () => {
  it('names the mirror that it used, and warns of the one that failed', async () => {
    using it = bench();
    await it.publish(1);
    it.a.fault = down();
    const { result, events } = await it.test.sync();
    assert.deepEqual([result.outcome, result.exitCode], ['activated', 0]);
    assert.deepEqual(
      result.warnings.map(({ code, facts }) => [code, facts['mirror']]),
      [['SERVER_UNREACHABLE', 'https://a/']],
    );
    const refresh = events.find((one) => one.type === 'step.finished' && one.step === 'refresh');
    assert.ok(refresh?.type === 'step.finished');
    assert.deepEqual([refresh.verdict, refresh.text], ['warn', 'timestamp v2 from https://b/']);
  });

  it('fails with the most specific code where all fail, names each, and keeps the policy', async () => {
    using it = bench();
    await it.publish(1);
    await it.test.pull();
    await it.publish(2);
    it.a.fault = down();
    it.b.files.set('metadata/timestamp.json', Buffer.from('{}'));
    const result = await it.test.pull();
    assert.deepEqual([result.outcome, result.exitCode], ['failed', 1]);
    assert.deepEqual(
      result.problems.map(({ code, facts }) => [code, facts['mirrors']]),
      [
        [
          'METADATA_MALFORMED',
          [
            { mirror: 'https://a/', code: 'SERVER_UNREACHABLE' },
            { mirror: 'https://b/', code: 'METADATA_MALFORMED' },
          ],
        ],
      ],
    );
    assert.equal(it.test.read('access/policy.yaml'), '1');
  });

  it('waits no longer than the shortest Retry-After of all mirrors', async () => {
    using it = bench();
    await it.publish(1);
    it.a.fault = busy(3_600_000);
    assert.equal((await it.test.pull()).outcome, 'activated');
    assert.equal(it.test.host.ledger.read().retryAfterUntilMs, undefined);
    it.b.fault = busy(60_000);
    const nowMs = it.test.clock.nowMs();
    await it.test.pull({ force: 'yes' });
    assert.equal(it.test.host.ledger.read().retryAfterUntilMs, nowMs + 60_000);
    // An answer ends the wait.
    it.a.fault = undefined;
    await it.test.pull({ force: 'yes' });
    assert.equal(it.test.host.ledger.read().retryAfterUntilMs, undefined);
  });
});

describe('an archive over mirrors', () => {
  it('is downloaded from the next mirror where the first one has other bytes, none, or too few', async () => {
    for (const [code, bend] of [
      ['DOWNLOAD_DIGEST', (bytes: Buffer) => Buffer.from(bytes).fill(1)],
      ['DOWNLOAD_TRUNCATED', (bytes: Buffer) => bytes.subarray(0, -1)],
      ['DOWNLOAD_TOO_LARGE', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')])],
    ] as const) {
      using it = bench();
      await it.publish(1);
      const [path, bytes] = archiveIn(it.a);
      it.a.files.set(path, bend(bytes));
      const result = await it.test.pull();
      assert.equal(result.outcome, 'activated', JSON.stringify(result.problems));
      assert.deepEqual(
        result.warnings.map(({ code: warned, facts }) => [warned, facts['mirror']]),
        [[code, 'https://a/']],
      );
      assert.equal(it.test.read('access/policy.yaml'), '1');
    }
  });

  it('continues at the next mirror at the byte where the first one ended', async () => {
    using it = bench();
    await it.publish(1);
    const [, bytes] = archiveIn(it.a);
    it.a.stream = async function* (_path, { offset = 0 }) {
      if (offset === 0) yield bytes.subarray(0, 40);
      throw new WritError('SERVER_UNREACHABLE', 'cut');
    };
    assert.equal((await it.test.pull()).outcome, 'activated');
    assert.deepEqual(
      it.b.takeRequests().map((one) => one.split(' ').at(-1)),
      ['40'],
    );
  });

  it('is downloaded whole from an honest mirror where a malicious one sent its beginning', async () => {
    using it = bench();
    await it.publish(1);
    const [, bytes] = archiveIn(it.a);
    it.a.stream = async function* () {
      yield Buffer.alloc(40, 1);
      throw new WritError('TARGET_MISSING', 'gone');
    };
    const result = await it.test.pull();
    assert.equal(result.outcome, 'activated', JSON.stringify(result.problems));
    assert.deepEqual(
      it.b.takeRequests().map((one) => one.split(' ').at(-1)),
      ['40', '0'],
    );
    assert.ok(bytes.length > 40);
  });

  it('that no mirror has is one failure with the names of both', async () => {
    using it = bench();
    await it.publish(1);
    for (const mirror of [it.a, it.b]) {
      const [path, bytes] = archiveIn(mirror);
      mirror.files.set(path, Buffer.from(bytes).fill(1));
    }
    const result = await it.test.pull();
    assert.deepEqual(
      result.problems.map(({ code, facts }) => [code, facts['mirrors']]),
      [
        [
          'DOWNLOAD_DIGEST',
          [
            { mirror: 'https://a/', code: 'DOWNLOAD_DIGEST' },
            { mirror: 'https://b/', code: 'DOWNLOAD_DIGEST' },
          ],
        ],
      ],
    );
  });
});
