// A real full disk: a small file system in a private mount namespace. A release that does not fit is recognized before it is
// written, leaves the disk unchanged, and is not downloaded again before there is space.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { needsMounts, runMounted } from '../../kit/disk/mounted.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** Lines that each scenario prints: outcome, code, unit, archives fetched, files of the policy. */
type Line = readonly [outcome: string, code: string, unit: string, fetched: number, version: string];

/** Runs the scenario on a tmpfs with these options; it has `test`, `publish`, `pull`, `fill` and `empty`. */
async function onSmallDisk(options: string, scenario: string, hostOptions = ''): Promise<readonly Line[]> {
  using dir = tempDir();
  const result = await runMounted(
    [`mount -t tmpfs -o ${options},mode=755 none ${dir.path}`],
    `
    import * as fs from 'node:fs';
    import { execFileSync } from 'node:child_process';
    process.env.TMPDIR = ${JSON.stringify(dir.path)};
    const { testHost } = await import(at('test/kit/host/test-host.js'));
    const { seededBytes } = await import(at('test/kit/assert/seeded.js'));
    // Kilobytes with a compression ratio of a hundred, which are no bomb.
    let count = 0;
    const large = (kilobytes) =>
      Array.from({ length: kilobytes }, () => seededBytes(8, count++).toString('hex').padEnd(1000, 'x')).join('');
    const opened = [];
    const remount = (how) => execFileSync('mount', ['-o', 'remount,' + how, process.env.TMPDIR]);
    const test = testHost({ above: process.env.TMPDIR, ${hostOptions} });
    const { host } = test;
    const filler = test.directory + '/filler';
    const lines = [];
    const publish = async (serial, files) => {
      await test.publish('access', { version: String(serial), ...files }, { serial });
      // The repository holds its files in memory, so that they use no space of the host.
      for (const name of fs.readdirSync(test.directory).filter((one) => /^(source|archive)-/.test(one)))
        fs.rmSync(test.directory + '/' + name, { recursive: true });
    };
    const used = () => { const { bfree, ffree } = fs.statfsSync(test.directory); return bfree + ' ' + ffree; };
    const pull = async (force = 'no') => {
      const before = used();
      test.repository.requests.length = 0;
      const { outcome, problems, changed } = await test.pull({ force });
      const fetched = test.repository.requests.filter((one) => one.includes('targets/access')).length;
      const { code = '-', facts = {} } = problems[0] ?? {};
      const left = fs.readdirSync(host.paths.staging).length;
      if (left > 0) throw new Error('something is left in staging');
      if (code === 'DISK_FULL' && !(facts.needed > facts.available && facts.path.startsWith(host.paths.staging)))
        throw new Error(JSON.stringify(facts));
      lines.push([outcome, code, facts.unit ?? '-', fetched, test.read('access/version')]);
    };
    const fill = (bytes) => fs.writeFileSync(filler, Buffer.alloc(bytes));
    ${scenario}
    console.log(JSON.stringify(lines));`,
  );
  assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
  return JSON.parse('stdout' in result ? result.stdout : '[]') as Line[];
}

describe('a small disk', needsMounts(), () => {
  it(
    'is tried again only when it has more space, and another release is tried at once',
    longCase,
    async () => {
      const lines = await onSmallDisk(
        'size=16m',
        `
      await publish(5, {});
      await pull();
      await publish(6, { large: large(5000) });
      fill(11_500_000);
      await pull();
      const remembered = JSON.stringify(host.ledger.read().spaceNeeded.access);
      const file = fs.statSync(host.paths.ledger).mtimeMs;
      await pull();
      fill(11_000_000);
      await pull();
      if (fs.statSync(host.paths.ledger).mtimeMs !== file) throw new Error('a poll that finds nothing new writes');
      if (JSON.stringify(host.ledger.read().spaceNeeded.access) !== remembered) throw new Error(remembered);
      await pull('yes');
      fill(1_000_000);
      await pull();
      if (host.ledger.read().spaceNeeded !== undefined) throw new Error('the need is kept');
      await publish(7, { large: large(8000) });
      fill(5_000_000);
      await pull();
      await publish(8, {});
      await pull();
      if (host.ledger.read().spaceNeeded !== undefined) throw new Error('the need is kept');
      if (host.refusals.read().refusals.length > 0) throw new Error('a full disk is no refusal');`,
      );
      assert.deepEqual(lines, [
        ['activated', '-', '-', 1, '5'],
        ['failed', 'DISK_FULL', 'bytes', 1, '5'],
        ['failed', 'DISK_FULL', 'bytes', 0, '5'],
        ['failed', 'DISK_FULL', 'bytes', 0, '5'],
        ['failed', 'DISK_FULL', 'bytes', 1, '5'],
        ['activated', '-', '-', 1, '6'],
        ['failed', 'DISK_FULL', 'bytes', 1, '6'],
        ['activated', '-', '-', 1, '8'],
      ]);
    },
  );

  const leavePartial = `
    const leave = (name, bytes) => fs.writeFileSync(host.paths.partials + '/' + name, bytes, { mode: 0o600 });
    const free = () => { const { bavail, bsize } = fs.statfsSync(test.directory); return bavail * bsize; };`;

  it('loses partial downloads of other releases first, before an archive and after a tree that does not fit', async () => {
    const lines = await onSmallDisk(
      'size=16m',
      `${leavePartial}
      await publish(5, {});
      await pull();
      leave('a'.repeat(64), seededBytes(4_500_000));
      await publish(6, { large: seededBytes(2_000_000).toString('base64') });
      fill(free() - 4_200_000);
      await pull();
      if (fs.readdirSync(host.paths.partials).length > 0) throw new Error('it is there still');
      fs.rmSync(filler);
      leave('b'.repeat(64), seededBytes(1_500_000));
      await publish(7, { large: large(3000) });
      fill(free() - 3_000_000);
      await pull();
      await pull();`,
    );
    assert.deepEqual(lines, [
      ['activated', '-', '-', 1, '5'],
      ['activated', '-', '-', 1, '6'],
      ['failed', 'DISK_FULL', 'bytes', 1, '6'],
      ['activated', '-', '-', 1, '7'],
    ]);
  });

  it('has space for the rest of a partly downloaded archive', async () => {
    const lines = await onSmallDisk(
      'size=16m',
      `${leavePartial}
      await publish(5, {});
      await pull();
      const files = { version: '6', large: seededBytes(2_000_000).toString('base64') };
      const archive = await test.publish('access', files, { serial: 6 });
      for (const name of fs.readdirSync(test.directory).filter((one) => /^(source|archive)-/.test(one)))
        fs.rmSync(test.directory + '/' + name, { recursive: true });
      const digest = (await import('node:crypto')).createHash('sha256').update(archive).digest('hex');
      leave(digest, archive.subarray(0, 1_500_000));
      fill(free() - 4_200_000);
      await pull();
      if (!test.repository.requests.some((one) => one.endsWith('from 1500000')))
        throw new Error(test.repository.requests.join());`,
    );
    assert.deepEqual(lines, [
      ['activated', '-', '-', 1, '5'],
      ['activated', '-', '-', 1, '6'],
    ]);
  });

  it('refuses the tree of a delta before its first file is opened', async () => {
    const lines = await onSmallDisk(
      'size=64m',
      `${leavePartial}
      const files = { large: large(5000) };
      await test.publish('access', { ...files, version: '5' }, { serial: 5 });
      await pull();
      await test.publish('access', { ...files, version: '6' }, { serial: 6 });
      opened.length = 0;
      fill(free() - 6_000_000);
      await pull();
      if (opened.length > 0) throw new Error(opened.join());
      if (!test.repository.requests.at(-1).includes('.delta')) throw new Error(lines.join(' '));
      fs.rmSync(filler);
      await pull('yes');`,
      `deltas: {},
      observer: { before: ({ op }) => { if (/^stage[.](copy|file)/.test(op)) opened.push(op); } }`,
    );
    assert.deepEqual(lines, [
      ['activated', '-', '-', 1, '5'],
      ['failed', 'DISK_FULL', 'bytes', 1, '5'],
      ['activated', '-', '-', 1, '6'],
    ]);
  });

  it('does not cause a request where the archive itself does not fit', longCase, async () => {
    const lines = await onSmallDisk(
      'size=16m',
      `
      await publish(5, {});
      await pull();
      await publish(6, { large: seededBytes(2_000_000).toString('base64') });
      fill(12_500_000);
      await pull();
      await pull();
      fs.rmSync(filler);
      await pull();`,
    );
    assert.deepEqual(lines, [
      ['activated', '-', '-', 1, '5'],
      ['failed', 'DISK_FULL', 'bytes', 0, '5'],
      ['failed', 'DISK_FULL', 'bytes', 0, '5'],
      ['activated', '-', '-', 1, '6'],
    ]);
  });

  it('can run out of inodes', longCase, async () => {
    const lines = await onSmallDisk(
      'size=16m,nr_inodes=600',
      `
      await publish(5, {});
      await pull();
      const many = Object.fromEntries(Array.from({ length: 250 }, (_, index) => ['d/' + index, 'x']));
      await publish(6, many);
      const fillers = Array.from({ length: 280 }, (_, index) => filler + index);
      for (const one of fillers) fs.writeFileSync(one, '');
      await pull();
      await pull();
      for (const one of fillers) fs.unlinkSync(one);
      await pull();`,
    );
    assert.deepEqual(lines, [
      ['activated', '-', '-', 1, '5'],
      ['failed', 'DISK_FULL', 'inodes', 1, '5'],
      ['failed', 'DISK_FULL', 'inodes', 0, '5'],
      ['activated', '-', '-', 1, '6'],
    ]);
  });

  it(
    'that was remounted read-only fails, keeps its policy, and is used again when it can be written',
    longCase,
    async () => {
      const lines = await onSmallDisk(
        'size=16m',
        `
      await publish(5, {});
      await pull();
      await publish(6, {});
      remount('ro');
      await pull();
      remount('rw');
      await pull();`,
      );
      assert.deepEqual(lines, [
        ['activated', '-', '-', 1, '5'],
        ['failed', 'DISK_READ_ONLY', '-', 0, '5'],
        ['activated', '-', '-', 1, '6'],
      ]);
    },
  );
});
