// The scan of a generation with lost ledger records, links or retained files.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { examineGeneration } from '../../../../src/agent/generations/examine.js';
import { unboundedPace } from '../../../../src/platform/time/rate-limit.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

async function withRelease(): Promise<TestHost> {
  const test = testHost();
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
  return test;
}

const examine = ({ host }: TestHost) =>
  examineGeneration(host, 1, { contents: 'digests', pace: unboundedPace() });
const linksOf = ({ host }: TestHost): string => join(host.paths.generations, '1');
const keptOf = ({ host }: TestHost): string => {
  const [release = ''] = fs.readdirSync(join(host.paths.archives, 'access'));
  return join(host.paths.archives, 'access', release);
};

describe('a generation without a record in the ledger', () => {
  const tree = '7-0123456789ab.1';
  for (const [what, name, text] of [
    ['with a name that no bundle can have', 'No Bundle', `../../bundles/No Bundle/${tree}`],
    ['to what is no tree', 'zones', '../../bundles/zones/tree'],
    ['to another place', 'zones', `/bundles/zones/${tree}`],
  ] as const) {
    it(`has an unexpected link if there is one ${what}`, async () => {
      using test = await withRelease();
      setLedger(test.host.ledger, { links: undefined });
      fs.symlinkSync(text, join(linksOf(test), name));
      const { links, bundles } = await examine(test);
      assert.deepEqual(
        links.map(({ kind, path }) => [kind, path]),
        [['extra', name]],
      );
      assert.deepEqual(
        bundles.map(({ bundle }) => bundle),
        ['access'],
      );
    });
  }
});

describe('a tree that is gone', () => {
  it('is reported as missing also if its manifest is lost', async () => {
    using test = await withRelease();
    const treePath = fs.realpathSync(join(linksOf(test), 'access'));
    fs.rmSync(treePath, { recursive: true });
    fs.rmSync(join(keptOf(test), 'manifest.json'));
    const [found] = (await examine(test)).bundles;
    assert.deepEqual(
      found?.tree.map(({ kind, path }) => [kind, path]),
      [['missing', '.']],
    );
  });
});
