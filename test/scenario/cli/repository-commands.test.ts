// The commands that read a repository or re-sign its roles, as a user types them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../../src/platform/time/clock.js';
import { longCase } from '../../kit/assert/long-case.js';
import { madeHere, v1, writ } from '../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { metadataPath, sampleRepository } from '../../kit/repository/sample-repository.js';

const places = ['--repository', 'repo', '--keys', 'keys'] as const;

function publish(dir: TempDir, file: string, ...args: readonly string[]) {
  writeTree(dir.join('source'), { ...v1, 'block.rpz': file });
  return writ(dir, 'publish', 'source', ...places, '--bundle', 'dns-edge', ...args);
}

describe('writ inspect', () => {
  it('verifies every file of an archive, and prints that this does not prove its author', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    const result = await repository.publish(v1);
    const directory = `${repository.directory}/targets/dns-edge`;
    const archive = `${directory}/${fs.readdirSync(directory)[0]}`;
    const run = await writ(dir, 'inspect', archive);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^INTACT /);
    assert.ok(run.stdout.includes('views/eu.yaml') && run.stdout.includes('does not prove who made it'));
    const json = jsonOf(await writ(dir, 'inspect', archive, '--json'));
    assert.equal((json['manifest'] as { digest: string }).digest, result.tree.manifestDigest);
  });

  it('exits 3 for an archive that is not intact', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('archive'), 'no archive');
    const run = await writ(dir, 'inspect', 'archive', '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [3, 'ARCHIVE_MALFORMED']);
  });

  it('exits 2 with USAGE for a path that does not exist', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    fs.symlinkSync('circle.delta', dir.join('circle.delta'));
    for (const path of ['nope', 'file/nope', 'circle.delta', 'n'.repeat(300)]) {
      const run = await writ(dir, 'inspect', path, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE']);
    }
  });

  it('verifies a repository from a given root, or prints that it trusted its root on first use', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    await repository.publish(v1);
    const url = pathToFileURL(repository.directory).href;
    const first = await writ(dir, 'inspect', url);
    assert.equal(first.exitCode, 0, first.stderr);
    assert.match(first.stdout, /^VERIFIED .* only from its own first root\n.*trusted on first use/);
    const given = await writ(dir, 'inspect', url, '--root', 'keys/root.json', '--json');
    assert.equal(jsonOf(given)['trust'], 'given');
  });

  it('exits 1 with SIGNATURE_WRONG_KEY for a repository that the given root does not verify', async () => {
    using dir = tempDir();
    using other = tempDir();
    const repository = madeHere(dir);
    const foreign = madeHere(other, { signers: 'own' });
    const run = await writ(dir, 'inspect', 'repo', '--root', foreign.rootPath, '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [1, 'SIGNATURE_WRONG_KEY']);
    const missing = await writ(dir, 'inspect', 'repo', '--root', 'none', '--json');
    assert.deepEqual([missing.exitCode, jsonOf(missing)['code']], [2, 'ROOT_MISSING']);
    fs.rmSync(repository.rootPath);
    const rootless = await writ(dir, 'inspect', 'repo', '--json');
    assert.equal(jsonOf(rootless)['code'], 'METADATA_MISSING');
  });
});

describe('writ repo status', () => {
  const status = (dir: TempDir, ...args: readonly string[]) =>
    writ(dir, 'repo', 'status', '--repository', 'repo', ...args);

  it('exits 0 and prints every role with its keys and days, and every release', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    await repository.publish(v1, { revision: 'abc' });
    const run = await status(dir);
    assert.equal(run.exitCode, 0, run.stdout);
    assert.match(run.stdout, /^OK every role is fresh\n/);
    for (const role of ['root', 'targets', 'snapshot', 'timestamp'])
      assert.ok(run.stdout.includes(`\n  ${role} `));
    assert.match(run.stdout, /\n {2}dns-edge {2}stable {3}1 {7}abc /);
    const json = jsonOf(await status(dir, '--json'));
    assert.equal((json['roles'] as unknown[]).length, 4);
    assert.equal((json['keys'] as unknown[]).length, 4);
  });

  it('exits 1 when a role expires soon, and 2 when one has expired', async () => {
    using dir = tempDir();
    const hourMs = 3_600_000;
    const old = (agoMs: number) => ({ ...systemClock, nowMs: () => systemClock.nowMs() - agoMs });
    sampleRepository(dir, { clock: old(9 * hourMs), validity: { timestamp: 10 * hourMs } });
    const soon = await status(dir);
    assert.equal(soon.exitCode, 1);
    assert.match(soon.stdout, /^WARNING timestamp expires in /);
    assert.match(soon.stdout, /\nNext: writ refresh --repository repo /);
    fs.rmSync(dir.join('repo'), { recursive: true });
    fs.rmSync(dir.join('keys'), { recursive: true });
    sampleRepository(dir, { clock: old(11 * hourMs), validity: { timestamp: 10 * hourMs } });
    const expired = await status(dir, '--json');
    assert.deepEqual([expired.exitCode, jsonOf(expired)['outcome']], [2, 'critical']);
  });

  it('exits 2 when the repository does not verify or does not exist', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    fs.appendFileSync(metadataPath(repository, '1.targets.json'), ' ');
    const run = await status(dir, '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'REPOSITORY_INVALID']);
    const none = await writ(dir, 'repo', 'status', '--repository', 'none', '--json');
    assert.equal(none.exitCode, 2);
  });
});

describe('writ refresh', () => {
  it('exits 1 with KEYS_MISSING when the online keys are missing', async () => {
    using dir = tempDir();
    madeHere(dir);
    fs.mkdirSync(dir.join('no-keys'));
    const run = await writ(dir, 'refresh', '--repository', 'repo', '--keys', 'no-keys', '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [1, 'KEYS_MISSING']);
  });
});

describe('writ publish --fixes', () => {
  it('signs the fixed serial, which inspect and the log print', longCase, async () => {
    using dir = tempDir();
    madeHere(dir);
    await publish(dir, 'one\n');
    const dry = await publish(dir, 'two\n', '--fixes', '1', '--dry-run');
    assert.match(dry.stdout, /^WOULD PUBLISH dns-edge stable serial 1 -> 2, fixes 1\n/);
    const json = jsonOf(await publish(dir, 'two\n', '--fixes', '1', '--dry-run', '--json'));
    assert.deepEqual([json['serial'], json['fixes']], [2, 1]);
    const run = await publish(dir, 'two\n', '--fixes', '1', '--revision', 'r2');
    assert.match(run.stdout, /^PUBLISHED dns-edge stable serial 1 -> 2 \(r2\), fixes 1\n/);
    assert.match((await writ(dir, 'inspect', 'repo')).stdout, /\n {2}dns-edge stable 2 fixes 1\n/);
    const [release] = jsonOf(await writ(dir, 'inspect', 'repo', '--json'))['releases'] as {
      fixes?: number;
    }[];
    assert.equal(release?.fixes, 1);
    const log = await writ(dir, 'repo', 'log', '--repository', 'repo', '--bundle', 'dns-edge');
    assert.match(log.stdout, /dns-edge stable 1 -> 2 \(r2\) fixes 1/);
    assert.equal('fixes' in jsonOf(await publish(dir, 'three\n', '--json')), false);
  });

  it('exits 2 for a serial that the bundle never had, and for text that is not a serial', async () => {
    using dir = tempDir();
    madeHere(dir);
    await publish(dir, 'one\n');
    for (const more of [[], ['--dry-run']]) {
      const unknown = jsonOf(await publish(dir, 'two\n', '--fixes', '2', '--json', ...more));
      assert.deepEqual([unknown['exitCode'], unknown['code']], [2, 'RELEASE_UNKNOWN']);
    }
    for (const wrong of ['0', '-1', 'x', '1.5']) {
      const run = await publish(dir, 'two\n', `--fixes=${wrong}`, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE']);
    }
    const inspected = jsonOf(await writ(dir, 'inspect', 'repo', '--json'));
    assert.deepEqual(
      (inspected['releases'] as { serial: number }[]).map(({ serial }) => serial),
      [1],
    );
  });
});
