import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Host } from '../../src/agent/host.js';
import { readBootId, startHost } from '../../src/agent/start-host.js';
import { cycleOn } from '../support/cycle-on.js';
import { type TestHost, testHost } from '../support/test-host.js';

const signal = new AbortController().signal;
const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });

describe('a start', () => {
  const start = (host: Host): ReturnType<typeof startHost> => startHost(host, { cycle: 'c-ab', signal });

  async function standing(): Promise<{ test: TestHost; file: string }> {
    const test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    return { test, file: join(test.host.paths.current, 'access/policy.yaml') };
  }

  it('after a boot reads the active trees in full, and once', async () => {
    const { test, file } = await standing();
    using _ = test;
    assert.equal((await start(test.reopen())).damage, undefined);
    assert.equal(test.reopen().ledger.read().verifiedBootId, readBootId());
    fs.writeFileSync(file, 'VERSION: 1\n');
    assert.equal((await start(test.reopen())).damage, undefined, 'the quick look compares no bytes');
    const rebooted = test.reopen();
    rebooted.ledger.write({ ...rebooted.ledger.read(), verifiedBootId: 'another boot' });
    const { damage } = await start(rebooted);
    assert.deepEqual([damage?.code, damage?.facts['bundle']], ['STATE_DAMAGED', 'access']);
    assert.equal(rebooted.ledger.read().verifiedBootId, 'another boot', 'looked at again next time');
  });

  it('after an unclean end reads them in full too', async () => {
    const { test, file } = await standing();
    using _ = test;
    await start(test.reopen());
    fs.writeFileSync(file, 'VERSION: 1\n');
    fs.mkdirSync(join(test.host.paths.staging, 'c-dead'));
    assert.equal((await start(test.reopen())).damage?.code, 'STATE_DAMAGED');
  });

  it('with damage is mended by force, as its hint says', async () => {
    const { test, file } = await standing();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    assert.equal((await start(test.host)).damage?.code, 'STATE_DAMAGED');
    const result = await test.pull({ force: 'yes' });
    assert.deepEqual([result.outcome, result.generation], ['activated', 2]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.equal((await start(test.reopen())).damage, undefined);
  });

  it('after a boot tries what was refused again, and not at every start', async () => {
    const check = { kind: 'run', name: 'never', run: ['false'], timeoutMs: 5000 } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    const retryAtMs = (): number | undefined => test.reopen().refusals.read().refusals[0]?.retryAtMs;
    assert.ok(Number(retryAtMs()) > 0);
    await start(test.reopen());
    assert.equal(retryAtMs(), 0);
    assert.equal((await cycleOn(test.reopen())).problems[0]?.code, 'CHECK_FAILED');
    await start(test.reopen());
    assert.ok(Number(retryAtMs()) > 0);
  });
});
