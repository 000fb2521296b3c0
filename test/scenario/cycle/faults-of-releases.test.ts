// Releases with valid signatures that a host must not use: too old, replaced, from the future, not strict, or refused by a
// check. These rules hold also against an attacker with every key of the publisher.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cycleAnswer } from '../../../src/cli/host/cycle-command.js';
import type { CheckConfig } from '../../../src/core/config/config.js';
import type { ErrorCode } from '../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { manifestDigest, manifestName } from '../../../src/core/release/manifest.js';
import { type Fault, faultTable, publishNext } from '../../kit/assert/fault-table.js';
import { seededBytes } from '../../kit/assert/seeded.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import {
  bundleTar,
  endOfArchive,
  fileEntry,
  manifestOf,
  pack,
  paxEntry,
  tarEntry,
} from '../../kit/repository/archive-builder.js';

const policy = 'policy.yaml';

faultTable('a release of the wrong age leaves the policy alone', [
  {
    name: 'an older serial, signed anew by whoever holds the targets key',
    harm: (test) => publishNext(test, 4),
    code: 'SERIAL_ROLLBACK',
    exit: 3,
  },
  {
    name: 'an older serial that withdraws another one than ours',
    harm: (test) => test.publish('access', { [policy]: 'version: 4\n' }, { serial: 4, withdrawn: [3, 6] }),
    code: 'SERIAL_ROLLBACK',
    exit: 3,
  },
  {
    name: 'the same serial with other content',
    harm: (test) => test.publish('access', { [policy]: 'other: 5\n' }, { serial: 5 }),
    code: 'SERIAL_REUSED',
    exit: 3,
  },
  {
    name: 'a release that was made an hour from now',
    harm: (test) =>
      test.publish(
        'access',
        { [policy]: 'version: 6\n' },
        { serial: 6, createdAtMs: test.clock.nowMs() + 3_600_000 },
      ),
    code: 'CREATED_IN_FUTURE',
    exit: 3,
  },
  {
    name: 'a target entry without what Writ signs',
    harm: ({ repository }) => {
      repository.targets.targets['access/stable.tar.br'].custom = {};
      repository.publish();
    },
    code: 'TARGET_MALFORMED',
    exit: 1,
  },
]);

/** An entry that Writ does not write, also not in a later version, so that an upgrade would not help. */
const malformedRequires = (name: string, requires: unknown): Fault => ({
  name: `requires ${name}`,
  harm: async (test) => {
    await publishNext(test);
    test.repository.targets.targets['access/stable.tar.br'].custom.writ.requires = requires;
    test.repository.publish();
  },
  code: 'TARGET_MALFORMED',
  exit: 1,
});

faultTable('a release that requires what this host does not know leaves the policy alone', [
  {
    name: 'a feature of a later Writ',
    harm: (test) =>
      test.publish('access', { [policy]: 'version: 6\n' }, { serial: 6, requires: ['waves-1'] }),
    code: 'REQUIRES_UNKNOWN',
    exit: 8,
  },
  malformedRequires('nothing', []),
  malformedRequires('a text', 'waves-1'),
  malformedRequires('one name twice', ['waves-1', 'waves-1']),
  malformedRequires('names out of order', ['waves-1', 'brake-1']),
  malformedRequires('a name in capitals', ['Waves-1']),
  malformedRequires(
    'more than hosts keep',
    Array.from({ length: 17 }, (_, index) => `f${String(index).padStart(2, '0')}`),
  ),
]);

/** Published with every key of the publisher, and with any archive. */
function release(name: string, code: ErrorCode, tar: Buffer, manifest: Buffer, packed = pack(tar)): Fault {
  const signed = { digest: manifestDigest(manifest), length: manifest.length };
  const harm = ({ repository, clock }: TestHost): void =>
    repository.publishRelease(
      { bundle: 'access', channel: 'stable', serial: 6, createdAtMs: clock.nowMs(), manifest: signed },
      packed,
    );
  return { name, harm, code, exit: 3, isRemembered: true };
}

const honest = { path: policy, content: 'version: 6\n' };
const manifest = manifestOf([honest]);
const head = tarEntry({ path: manifestName, content: manifest });
const withEntry = (name: string, code: ErrorCode, ...entries: Buffer[]): Fault =>
  release(name, code, Buffer.concat([head, ...entries, fileEntry(honest), endOfArchive]), manifest);

const outside = { path: '../victim', content: 'evil' };
const large = { path: policy, content: seededBytes(20_000) };
const bomb = { path: policy, content: Buffer.alloc(5_000_000) };

faultTable('an archive that breaks the rules under good signatures is refused and remembered', [
  withEntry('a path out of the jail', 'ENTRY_REFUSED', fileEntry(outside)),
  release(
    'a path out of the jail in the manifest too',
    'MANIFEST_MALFORMED',
    bundleTar([outside]),
    manifestOf([outside]),
  ),
  withEntry('an absolute path', 'ENTRY_REFUSED', fileEntry({ path: '/etc/cron.d/victim', content: 'evil' })),
  withEntry('a symbolic link', 'ENTRY_REFUSED', tarEntry({ path: 'a', type: '2', link: '/etc' })),
  withEntry('a hard link', 'ENTRY_REFUSED', tarEntry({ path: 'a', type: '1', link: '/etc/passwd' })),
  withEntry('a FIFO', 'ENTRY_REFUSED', tarEntry({ path: 'a', type: '6' })),
  withEntry('a setuid file', 'ENTRY_REFUSED', tarEntry({ path: 'a', mode: 0o4755 })),
  withEntry('a link name in a PAX header', 'ARCHIVE_MALFORMED', paxEntry([['linkpath', '/etc/passwd']])),
  withEntry('a file that no manifest lists', 'MANIFEST_MISMATCH', fileEntry({ path: 'a', content: '' })),
  release(
    'other bytes than the manifest has',
    'MANIFEST_MISMATCH',
    Buffer.concat([head, fileEntry({ ...honest, content: 'version: 7\n' }), endOfArchive]),
    manifest,
  ),
  release('another manifest than the signed one', 'MANIFEST_DIGEST', bundleTar([honest]), manifestOf([])),
  release('a cut tar', 'ARCHIVE_MALFORMED', bundleTar([honest]).subarray(0, 1000), manifest),
  release('no archive at all', 'ARCHIVE_MALFORMED', Buffer.alloc(0), manifest, Buffer.from('not an archive')),
  release('a bomb', 'ARCHIVE_LIMIT', bundleTar([bomb]), manifestOf([bomb])),
  {
    ...release('more bytes than the limit', 'ARCHIVE_LIMIT', bundleTar([large]), manifestOf([large])),
    host: { config: { limits: { ...defaultArchiveLimits, maxArchiveBytes: 10_000 } } },
  },
]);

/** A check that accepts serial 5. */
function check(
  name: string,
  run: CheckConfig['run'],
  { timeoutMs = 60_000, ...fault }: Pick<Fault, 'code' | 'exit' | 'isRemembered'> & { timeoutMs?: number },
): Fault {
  const script = `grep -q "version: 5" "$WRIT_BUNDLE_DIR/${policy}" || exec "$@"`;
  const hook: CheckConfig = { kind: 'run', name, run: ['sh', '-c', script, 'sh', ...run], timeoutMs };
  return { name, host: { bundles: [{ name: 'access', checks: [hook] }] }, harm: publishNext, ...fault };
}

faultTable('a candidate that no check has accepted leaves the policy alone', [
  check('a check says no', ['sh', '-c', 'echo line 3 is wrong; exit 1'], {
    code: 'CHECK_FAILED',
    exit: 3,
    isRemembered: true,
  }),
  check('a check takes too long', ['sleep', '30'], { code: 'CHECK_BROKEN', exit: 1, timeoutMs: 1000 }),
  check('a check is not installed', ['/nonexistent/checker'], { code: 'CHECK_BROKEN', exit: 1 }),
  check('a check is killed', ['sh', '-c', 'kill -9 $$'], { code: 'CHECK_BROKEN', exit: 1 }),
  check('a check says not now', ['sh', '-c', 'exit 75'], { code: 'CHECK_DEFERRED', exit: 8 }),
  check('a check adds a file', ['sh', '-c', 'touch {bundle}/evil'], { code: 'CANDIDATE_CHANGED', exit: 1 }),
  check('a check writes into a file', ['sh', '-c', `echo evil >> {bundle}/${policy}`], {
    code: 'CANDIDATE_CHANGED',
    exit: 1,
  }),
  check('a check puts a link into the candidate generation', ['ln', '-s', '/etc', '{candidate}/evil'], {
    code: 'CANDIDATE_CHANGED',
    exit: 1,
  }),
]);

describe('a target entry without what Writ signs', () => {
  it('is an error of its bundle alone', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await publishNext(test, 5);
    await test.publish('dns-edge', { 'block.rpz': '1' }, { serial: 1 });
    test.repository.targets.targets['access/stable.tar.br'].custom = {};
    test.repository.publish();
    const result = await test.pull();
    assert.deepEqual(
      result.bundles.map((one) => [one.bundle, one.outcome, one.problem?.code]),
      [
        ['access', 'failed', 'TARGET_MALFORMED'],
        ['dns-edge', 'activated', undefined],
      ],
    );
    assert.equal(result.exitCode, 1);
    assert.equal(test.read('dns-edge/block.rpz'), '1');
  });
});

describe('a bundle that the repository does not list', () => {
  it('is a failure of that bundle where it never had a release', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'acess' }] });
    await publishNext(test);
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'TARGET_UNKNOWN']);
    assert.equal(test.read(`access/${policy}`), 'version: 6\n');
  });

  it('stays active where it had one, and is reported in every answer', async () => {
    using test = testHost();
    await publishNext(test, 5);
    await test.pull();
    test.repository.targets.targets = {};
    test.repository.publish();
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.outcome, result.changed], [0, 'unchanged', false]);
    assert.equal(result.bundles[0]?.problem?.code, 'TARGET_UNKNOWN');
    assert.equal(test.read(`access/${policy}`), 'version: 5\n');
    assert.match(cycleAnswer(result).lines.join('\n'), /\[TARGET_UNKNOWN\]/);
  });
});

describe('a release that was withdrawn', () => {
  it('is replaced by an older serial where all serials above it are withdrawn in signed metadata', async () => {
    using test = testHost();
    for (const serial of [4, 5]) {
      await publishNext(test, serial);
      assert.equal((await test.pull()).outcome, 'activated');
    }
    await test.publish('access', { [policy]: 'version: 4\n' }, { serial: 4, withdrawn: [5] });
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.generation], ['activated', 3]);
    assert.equal(test.read(`access/${policy}`), 'version: 4\n');
  });
});
