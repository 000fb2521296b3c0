import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rootFileAccessHint } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';
import { host, rotatedHost, startMs } from '../../../kit/trust/stored-trust.js';

describe('trust store: the files on disk', () => {
  it('keeps each file byte for byte and private, with the history of roots', async () => {
    using it = await rotatedHost(2);
    assert.deepEqual(it.files(), [
      'root.json',
      'roots',
      'roots/1.root.json',
      'roots/2.root.json',
      'roots/3.root.json',
      'snapshot.json',
      'targets.json',
      'timestamp.json',
    ]);
    assert.deepEqual(it.read('root.json'), it.repository.file('3.root.json'));
    assert.deepEqual(it.read('roots/1.root.json'), it.repository.bootstrapRoot);
    assert.deepEqual(it.read('timestamp.json'), it.repository.file('timestamp.json'));
    assert.deepEqual(it.read('snapshot.json'), it.repository.file('1.snapshot.json'));
    assert.deepEqual(it.read('targets.json'), it.repository.file('1.targets.json'));
    assert.equal(statSync(it.trust).mode & 0o777, 0o700);
    assert.equal(statSync(join(it.trust, 'roots')).mode & 0o777, 0o700);
    assert.equal(statSync(join(it.trust, 'timestamp.json')).mode & 0o777, 0o600);
  });

  it('writes through the durable layer, the history before root.json, and nothing when nothing is new', async () => {
    using it = host();
    const client = it.boot();
    await client.refresh();
    assert.deepEqual(
      it.operations.filter((op) => !op.includes(':flush')),
      [
        'trust.directory',
        'trust.roots',
        'trust.root-history:write',
        'trust.root-history:rename',
        'trust.root:write',
        'trust.root:rename',
        'trust.timestamp:write',
        'trust.timestamp:rename',
        'trust.snapshot:write',
        'trust.snapshot:rename',
        'trust.targets:write',
        'trust.targets:rename',
      ],
    );
    it.operations.length = 0;
    await client.refresh();
    await it.boot().refresh();
    assert.equal(it.operations.length, 0);
    it.repository.bumpTimestamp();
    await client.refresh();
    assert.deepEqual(new Set(it.operations.map((op) => op.split(':')[0])), new Set(['trust.timestamp']));
  });

  it('writes nothing when it is only read', async () => {
    using it = host();
    assert.equal(it.boot().status(), undefined);
    assert.equal(existsSync(it.trust), false);
    await it.boot().refresh();
    it.damage('root.json');
    it.operations.length = 0;
    assert.equal(it.boot().status()?.roles.targets?.version, 1);
    assert.deepEqual(it.operations, []);
  });

  it('stores nothing of a refresh that refused its first file', async () => {
    using it = host();
    it.repository.serve('timestamp.json', Buffer.from('<html>'));
    await rejectsCode('METADATA_MALFORMED', it.boot().refresh());
    assert.deepEqual(it.files(), ['root.json', 'roots', 'roots/1.root.json']);
  });
});

describe('trust store: the bootstrap root', () => {
  it('is a file of a size that metadata may have, and nothing that never ends', {
    timeout: 60_000,
  }, async () => {
    using it = host();
    const path = join(it.path, 'root.json');
    for (const harm of [
      () => execFileSync('mkfifo', [path]),
      () => symlinkSync('/dev/zero', path),
      () => mkdirSync(path),
      () => {
        writeFileSync(path, '');
        truncateSync(path, 2 ** 34);
      },
    ]) {
      rmSync(path, { recursive: true });
      harm();
      await rejectsCode('ROOT_MISSING', it.boot().refresh());
    }
  });

  it('must be there, and be a root that signs itself', async () => {
    using it = host();
    it.bootstrap(Buffer.from('{}'));
    await rejectsCode('ROOT_UNUSABLE', it.boot().refresh());
    const { signed } = JSON.parse(it.repository.bootstrapRoot.toString());
    it.bootstrap(Buffer.from(JSON.stringify({ signatures: [], signed })));
    await rejectsCode('ROOT_UNUSABLE', it.boot().refresh());
    rmSync(join(it.path, 'root.json'));
    await rejectsCode('ROOT_MISSING', it.boot().refresh());
    assert.deepEqual(it.repository.takeRequests(), []);
    assert.equal(existsSync(it.trust), false);
  });

  it('that this user may not read is not reported as missing, and the hint makes it readable', () => {
    const [denied, absent] = ['EACCES', 'ENOENT'].map((why) =>
      rootFileAccessHint('/etc/writ/root.json', why),
    );
    assert.match(denied ?? '', /chmod a\+r \/etc\/writ\/root\.json/);
    assert.equal(absent, undefined);
  });

  it('may be replaced by any root of the history, and by the next one', async () => {
    using it = await rotatedHost(3);
    for (const version of [2, 3, 4]) {
      it.bootstrap(it.repository.file(`${version}.root.json`));
      assert.equal((await it.boot().refresh()).roles.root.version, 4);
    }
    it.repository.rotate('root');
    it.bootstrap(it.repository.file('5.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 5);
  });

  it('may be the one right before the history', async () => {
    using it = await rotatedHost(1);
    rmSync(join(it.trust, 'roots', '1.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 2);
  });

  it('may be far ahead of the history if the chain of the server leads to it', async () => {
    using it = await rotatedHost(0);
    for (let count = 0; count < 4; count += 1) it.repository.rotate('root');
    it.bootstrap(it.repository.file('5.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 5);
  });

  it('far behind a lost history is reported to the operator, and the fix of the hint works', async () => {
    using it = await rotatedHost(3);
    const stored = it.read('root.json');
    rmSync(join(it.trust, 'roots'), { recursive: true });
    const { hint } = await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    assert.deepEqual(it.read('root.json'), stored);
    const [, name = ''] = /copy the configured root to trust\/(roots\/\d+\.root\.json)/.exec(hint) ?? [];
    mkdirSync(join(it.trust, 'roots'), { recursive: true });
    writeFileSync(join(it.trust, name), it.repository.bootstrapRoot);
    assert.equal((await it.boot().refresh()).roles.root.version, 4);
  });

  it('stays linked if the history is lost while a process accepts the next root', async () => {
    using it = await rotatedHost(3);
    const running = it.boot();
    await running.refresh();
    rmSync(join(it.trust, 'roots'), { recursive: true });
    it.repository.rotate('root');
    assert.equal((await running.refresh()).roles.root.version, 5);
    assert.deepEqual(readdirSync(join(it.trust, 'roots')).sort(), [
      '1.root.json',
      '4.root.json',
      '5.root.json',
    ]);
    assert.equal((await it.boot().refresh()).roles.root.version, 5);
  });

  it('reports a fix if only the end of the history is left', async () => {
    using it = await rotatedHost(3);
    for (const version of [1, 2, 3]) rmSync(join(it.trust, 'roots', `${version}.root.json`));
    const { hint } = await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    assert.match(hint, /copy the configured root to trust\/roots\/1\.root\.json/);
    writeFileSync(join(it.trust, 'roots', '1.root.json'), it.repository.bootstrapRoot);
    assert.equal((await it.boot().refresh()).roles.root.version, 4);
  });

  it('reports a fix if the beginning of the history is damaged', async () => {
    using it = await rotatedHost(3);
    writeFileSync(join(it.trust, 'roots', '1.root.json'), '{');
    for (const version of [2, 3]) rmSync(join(it.trust, 'roots', `${version}.root.json`));
    const { hint } = await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    assert.match(hint, /copy the configured root to trust\/roots\/1\.root\.json/);
    writeFileSync(join(it.trust, 'roots', '1.root.json'), it.repository.bootstrapRoot);
    assert.equal((await it.boot().refresh()).roles.root.version, 4);
  });

  it('of another repository is refused, whatever its version, and trust is kept', async () => {
    using it = await rotatedHost(0);
    const other = new RepositorySimulator({ nowMs: startMs });
    it.bootstrap(other.bootstrapRoot);
    it.repository.takeRequests();
    const { hint, facts } = await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    assert.ok(hint.includes(`\`mv ${it.trust} ${it.trust}.old\``), hint);
    const told = (bytes: Buffer): string =>
      `version 1, sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    assert.equal(facts['expected'], told(it.repository.bootstrapRoot));
    assert.equal(facts['actual'], told(other.bootstrapRoot));
    throwsCode('ROOT_NOT_LINKED', () => it.boot().status());
    assert.deepEqual(it.repository.takeRequests(), []);

    for (let count = 0; count < 3; count += 1) other.rotate('root');
    it.bootstrap(other.file('4.root.json'));
    assert.equal((await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh())).hint, hint);
    assert.equal(it.repository.takeRequests().includes('GET metadata/timestamp.json'), false);

    it.bootstrap(it.repository.bootstrapRoot);
    assert.equal((await it.boot().refresh()).changed, false);
  });

  it('of another repository is accepted after an operator moved the old trust store away, as in the hint', async () => {
    using it = await rotatedHost(0);
    rmSync(it.trust, { recursive: true });
    it.bootstrap(new RepositorySimulator({ nowMs: startMs }).bootstrapRoot);
    await rejectsCode('SIGNATURE_WRONG_KEY', it.boot().refresh());
    it.bootstrap(it.repository.bootstrapRoot);
    await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    renameSync(it.trust, `${it.trust}.old`);
    assert.equal((await it.boot().refresh()).roles.root.version, 1);
  });

  it('ignores files of other names in the history', async () => {
    using it = await rotatedHost(1);
    mkdirSync(join(it.trust, 'roots', '0.root.json'));
    for (const name of ['01.root.json', '.writ-tmp-1', 'x.root.json', '99999999999999999.root.json']) {
      writeFileSync(join(it.trust, 'roots', name), 'left over');
    }
    it.damage('root.json');
    assert.equal((await it.boot().refresh()).roles.root.version, 2);
  });
});
