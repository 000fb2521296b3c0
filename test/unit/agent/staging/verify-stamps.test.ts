import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findMarks, type Stamped, unfilled } from '../../../../src/core/release/stamps.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { stampedFiles } from '../../../kit/sources/stamped-files.js';
import { refuses, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const source = { zone: '; @writ.serial@ of @writ.source@ and @writ.serial@', notes: 'plain' };

/** Publishes a release with these files and stamps, and pulls it. @returns outcome, and code of the first problem */
async function pulled(test: TestHost, files: Readonly<Record<string, string>>, stamped: Stamped) {
  await test.publish('access', files, { serial: 12, stamped });
  const { outcome, problems } = await test.pull();
  return [outcome, problems[0]?.code];
}

describe('stamps of a release on a host', () => {
  it('are accepted if each file without its stamps, and the tree, have the signed digests', async () => {
    using test = testHost();
    const { files, stamped } = stampedFiles(source, 12);
    assert.match(files['zone'] ?? '', /^; 12 of [0-9a-f]{16} and 12$/);
    assert.deepEqual(await pulled(test, files, stamped), ['activated', undefined]);
  });

  const { files, stamped } = stampedFiles(source, 12);
  const [stamp] = stamped.stamps;
  const digest = `sha256:${'a'.repeat(64)}` as Stamped['source'];
  for (const [what, lie, changed] of [
    ['a source of another tree', { ...stamped, source: digest }, files],
    ['another file of before', { ...stamped, stamps: [{ ...stamp!, digest }] }, files],
    ['another length', { ...stamped, stamps: [{ ...stamp!, length: 7 }] }, files],
    ['a file that is not there', { ...stamped, stamps: [{ ...stamp!, path: '../../etc/passwd' }] }, files],
    ['a place with something else', { ...stamped, stamps: [{ ...stamp!, at: stamp!.at.slice(1) }] }, files],
    ['a new text under the stamp of an old one', stamped, { ...files, zone: `bad ${files['zone']}` }],
    [
      'a new text of the same shape under the stamp of an old one',
      stamped,
      { ...files, zone: `x${files['zone']?.slice(1)}` },
    ],
    ['another file that is new', stamped, { ...files, notes: 'bad' }],
  ] as const) {
    it(`with ${what} are refused before any check runs`, async () => {
      const driver = scriptedDriver({ a: refuses('asked') });
      using test = testHost({ groups: { app: { driver } } });
      assert.deepEqual(await pulled(test, changed, lie), ['rejected', 'MANIFEST_MISMATCH']);
      assert.deepEqual(driver.notified, []);
    });
  }
});

describe('marks', () => {
  const values = { serial: '7', source: 'b'.repeat(16) };
  const fill = (text: string): string =>
    text.replaceAll('@writ.serial@', values.serial).replaceAll('@writ.source@', values.source);

  it('are found in their order and replaced, also at the ends and side by side', () => {
    for (const text of [
      '@writ.serial@',
      'a@writ.source@@writ.serial@',
      '@writ.serial@ 7 7 @writ.serial@\n',
    ]) {
      const at = findMarks(Buffer.from(text)) ?? [];
      assert.equal(unfilled(Buffer.from(fill(text)), at, values)?.toString(), text);
    }
  });

  it('are absent in a file without them, and too many in a file with more than a thousand', () => {
    assert.equal(findMarks(Buffer.from('@writ.serial')), undefined);
    assert.equal(findMarks(Buffer.from('@writ.serial@'.repeat(1001))), undefined);
    assert.equal(findMarks(Buffer.from('@writ.serial@'.repeat(1000)))?.length, 1000);
  });

  it('are not replaced at another value, after the end, or if they overlap', () => {
    const at = [{ offset: 2, mark: 'serial' }] as const;
    assert.equal(unfilled(Buffer.from('x 8'), at, values), undefined);
    assert.equal(unfilled(Buffer.from('x'), at, values), undefined);
    const twice = [...at, { offset: 3, mark: 'serial' }] as const;
    assert.equal(unfilled(Buffer.from('x 77'), twice, values), undefined);
  });
});
