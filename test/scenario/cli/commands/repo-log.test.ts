import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { readRepositoryLog } from '../../../../src/publisher/upkeep/repository-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { madeHere, writ } from '../../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { delegateTo, makeTeam } from '../../../kit/repository/delegated-repository.js';

interface Entry {
  readonly kind: string;
  readonly bundle?: string;
  readonly channel?: string;
  readonly fromSerial?: number;
  readonly toSerial?: number;
  readonly role: string;
  readonly version: number;
  readonly comparedWith: number | null;
  readonly signers: readonly { readonly keyId: string; readonly name: string }[];
}

interface Log {
  readonly entries: readonly Entry[];
  readonly more: number;
  readonly beginnings: readonly object[];
  readonly missing: readonly object[];
  readonly online: readonly { readonly role: string; readonly lastVersion: number }[];
  readonly problems: readonly { readonly where: string; readonly code: string }[];
}

async function logOf(dir: TempDir, ...flags: readonly string[]): Promise<Log & { exitCode: number }> {
  return jsonOf(await writ(dir, 'repo', 'log', '--repository', 'repo', '--json', ...flags)) as never;
}

const textOf = ({ kind, channel, fromSerial, toSerial, role, version }: Entry): string =>
  [kind, channel, fromSerial, toSerial, `${role}.${version}`].filter((part) => part !== undefined).join(' ');

async function withHistory(dir: TempDir) {
  const repository = madeHere(dir);
  await repository.publish({ file: 'one' }, { revision: 'r1' });
  await repository.publish({ file: 'two' }, { channel: 'canary', revision: 'r2' });
  const places = ['--repository', 'repo', '--keys', 'keys', '--bundle', 'dns-edge'];
  await writ(dir, 'promote', ...places, '--from', 'canary', '--to', 'stable');
  await repository.publish({ file: 'three' }, { revision: 'r3' });
  await writ(dir, 'withdraw', ...places, '--serial', '3', '--channel', 'stable', '--reason', 'too much');
  await writ(dir, 'sign', '--role', 'targets', '--repository', 'repo', '--keys', 'keys');
  return repository;
}

const allEntries = [
  're-sign targets.7',
  'withdraw stable 3 2 targets.6',
  'publish stable 2 3 targets.5',
  'promote stable 1 2 targets.4',
  'publish canary 2 targets.3',
  'publish stable 1 targets.2',
  'init root.1',
];

describe('writ repo log', () => {
  it('prints the change and the signing keys of each version, the newest first', longCase, async () => {
    using dir = tempDir();
    await withHistory(dir);
    const log = await logOf(dir);
    assert.equal(log.exitCode, 0);
    assert.deepEqual(log.entries.map(textOf), allEntries);
    assert.ok(log.entries.every(({ signers }) => signers.length > 0 && signers[0]?.keyId.length === 64));
    assert.deepEqual([log.beginnings, log.missing, log.problems], [[], [], []]);
    assert.deepEqual(
      log.online.map(({ role }) => role),
      ['snapshot', 'timestamp'],
    );
    const text = await writ(dir, 'repo', 'log', '--repository', 'repo', '--keys', 'keys');
    assert.match(
      text.stdout,
      /withdraw +targets v6 .* dns-edge stable 3 -> 2 \(r2\) withdrew 3 because: too much\n/,
    );
    assert.match(text.stdout, /promote .* dns-edge stable 1 -> 2 \(r2\) from canary\n/);
    assert.match(text.stdout, /does not say which person used a shared key/);
  });

  it('prints only the bundle and channel of its flags, and no more entries than -n', longCase, async () => {
    using dir = tempDir();
    await withHistory(dir);
    const canary = await logOf(dir, '--bundle', 'dns-edge', '--channel', 'canary');
    assert.deepEqual(canary.entries.map(textOf), ['publish canary 2 targets.3']);
    const two = await logOf(dir, '-n', '2');
    assert.deepEqual([two.entries.map(textOf), two.more], [allEntries.slice(0, 2), allEntries.length - 2]);
    assert.deepEqual((await logOf(dir, '--bundle', 'nobody')).entries, []);
  });

  it('prints its first version after a collection, and no entry before it', longCase, async () => {
    using dir = tempDir();
    await withHistory(dir);
    await writ(dir, 'repo', 'gc', '--repository', 'repo', '--keep', '1', '--grace', '1ms', '--yes');
    const log = await logOf(dir);
    assert.deepEqual(log.entries.map(textOf), ['init root.1']);
    assert.deepEqual(log.beginnings, [{ role: 'targets', version: 7, olderAre: 'gone' }]);
    assert.equal(log.exitCode, 0);
  });

  it('names the flag that shows the roots before the given one', longCase, async () => {
    using dir = tempDir();
    madeHere(dir);
    const places = ['--repository', 'repo', '--keys', 'keys'];
    fs.mkdirSync(dir.join('first'));
    fs.copyFileSync(dir.join('keys', 'root.json'), dir.join('first', 'root.json'));
    const { code, message } = jsonOf(
      await writ(dir, 'root', 'rotate', ...places, '-o', 'next', '--yes', '--json'),
    );
    await writ(dir, 'sign', 'next', '--keys', 'keys', '--confirm', String(code));
    const committed = await writ(dir, 'root', 'commit', 'next', ...places, '--confirm', String(code));
    assert.equal(committed.exitCode, 0, `${message} ${committed.stderr}`);
    const now = await writ(dir, 'repo', 'log', ...places);
    assert.match(now.stdout, /begins +root at v2: .*--keys DIR with an older root\.json shows them/);
    const fromFirst = await logOf(dir, '--keys', 'first');
    assert.deepEqual(
      [fromFirst.beginnings, fromFirst.entries.map(({ role, version }) => `${role}.${version}`)],
      [[], ['root.2', 'root.1']],
    );
  });

  it(
    'reports a changed, truncated or linked version as a problem, without an entry for it',
    longCase,
    async () => {
      using dir = tempDir();
      const { directory } = await withHistory(dir);
      const path = (version: number): string => `${directory}/metadata/${version}.targets.json`;
      fs.writeFileSync(path(3), fs.readFileSync(path(3), 'utf8').replace('"serial":2', '"serial":9'));
      fs.truncateSync(path(5), 40);
      fs.rmSync(path(6));
      fs.symlinkSync('/etc/passwd', path(6));
      fs.rmSync(path(2));
      const log = await logOf(dir);
      assert.equal(log.exitCode, 1);
      assert.deepEqual(
        log.problems.map(({ where, code }) => `${where} ${code}`),
        [
          'metadata/6.targets.json REPOSITORY_INVALID',
          'metadata/5.targets.json METADATA_MALFORMED',
          'metadata/3.targets.json SIGNATURE_THRESHOLD',
        ],
      );
      assert.deepEqual(
        log.entries.map((entry) => `${textOf(entry)} <- ${entry.comparedWith}`),
        [
          'withdraw stable 2 2 targets.7 <- 4',
          'publish stable 2 targets.4 <- 1',
          'publish canary 2 targets.4 <- 1',
          'init root.1 <- null',
        ],
      );
      assert.deepEqual(log.missing, [{ role: 'targets', versions: [2] }]);
    },
  );

  it('lists no release that is signed by a key outside the root', longCase, async () => {
    using dir = tempDir();
    const { directory } = await withHistory(dir);
    using other = tempDir();
    const thief = madeHere(other, { signers: 'own' });
    await thief.publish({ file: 'bad' });
    fs.copyFileSync(`${thief.directory}/metadata/2.targets.json`, `${directory}/metadata/2.targets.json`);
    const log = await logOf(dir);
    assert.deepEqual(
      log.problems.map(({ where, code }) => `${where} ${code}`),
      ['metadata/2.targets.json SIGNATURE_WRONG_KEY'],
    );
    assert.ok(!log.entries.some(({ version, role }) => role === 'targets' && version === 2));
  });

  it(
    'reads no more versions, bytes and time than its bounds, and reports where it stopped',
    longCase,
    async () => {
      using dir = tempDir();
      const { directory: repository } = await withHistory(dir);
      const read = (bounds: { maxVersions?: number; maxBytes?: number; maxMs?: number }) =>
        readRepositoryLog({
          repository,
          clock: systemClock,
          bounds: { maxVersions: 1000, maxBytes: 64_000_000, maxMs: 30_000, ...bounds },
        });
      const two = read({ maxVersions: 2 });
      assert.deepEqual(two.beginnings, [{ role: 'targets', version: 6, olderAre: 'not-read' }]);
      assert.deepEqual(
        two.entries.map(({ role, version }) => `${role}.${version}`),
        ['targets.7', 'root.1'],
      );
      assert.equal(read({ maxBytes: 1 }).entries.length, 1);
      assert.equal(read({ maxMs: -1 }).entries.length, 1);
    },
  );

  it('prints key ids when a key replaces another one of the same name', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    const team = makeTeam(dir, 'dns-team');
    const other = makeTeam(dir, 'dns-team', 'other');
    for (const one of [team, other]) await delegateTo(repository, one);
    const [is, was] = [other, team].map(({ publicKey }) => publicKey.keyId.slice(0, 8));
    const run = await writ(dir, 'repo', 'log', '--repository', 'repo');
    assert.ok(run.stdout.includes(`(+dns-team ${is} -dns-team ${was}, 1 needed)`), run.stdout);
  });

  it(
    'lists a delegation as one entry, and no publish for the release that it hands over',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = madeHere(dir);
      await repository.publish({ file: 'one' });
      const team = makeTeam(dir, 'dns-team');
      const key = `${team.keys}/dns-team.key`;
      const given = ['--repository', 'repo', '--keys', 'keys', '--paths', 'dns-*/*', '--key', key];
      const delegated = await writ(dir, 'delegate', 'dns-team', ...given, '--hand-over', '--yes');
      assert.equal(delegated.exitCode, 0, delegated.stderr);
      await writ(dir, 'sign', '--role', 'dns-team', '--repository', 'repo', '--keys', team.keys);
      writeTree(dir.join('source'), { file: 'two' });
      const publish = [
        'publish',
        'source',
        '--repository',
        'repo',
        '--keys',
        team.keys,
        '--bundle',
        'dns-edge',
      ];
      await writ(dir, ...publish);
      const log = await logOf(dir);
      assert.deepEqual(log.entries.map(textOf).sort(), [
        'delegate targets.3',
        'init root.1',
        'publish stable 1 2 dns-team.2',
        'publish stable 1 targets.2',
      ]);
      assert.deepEqual(
        log.entries.filter(({ role }) => role === 'dns-team').flatMap(({ signers }) => signers.length),
        [1],
      );
    },
  );
});
