import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxSerial } from '../../../src/core/release/serial.js';
import { recallSignedTarget } from '../../../src/trust/signed-target.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { bench } from '../../kit/trust/client-bench.js';

const name = { bundle: 'dns', channel: 'stable' };

describe('a listed release', () => {
  it('has at most the highest serial', async () => {
    const { client, repository } = bench();
    repository.publishRelease({ ...name, serial: maxSerial }, Buffer.from('archive'));
    await client.refresh();
    assert.equal((await client.target('dns', 'stable'))?.release.serial, maxSerial);
    repository.publishRelease({ ...name, serial: maxSerial + 1 }, Buffer.from('archive'));
    await client.refresh();
    const error = await rejectsCode('TARGET_MALFORMED', client.target('dns', 'stable'));
    assert.deepEqual([error.facts['expected'], error.facts['actual']], [maxSerial, maxSerial + 1]);
    assert.match(error.hint, /writ withdraw --bundle dns --serial 1000000000001/);
  });

  it('above the highest serial, which Writ 0.1.0 activated, is read from its record', async () => {
    const { client, repository } = bench();
    repository.publishRelease({ ...name, serial: 9e15 }, Buffer.from('archive'));
    await client.refresh();
    const [found] = (await client.list())?.files ?? [];
    assert.ok(found);
    assert.equal(recallSignedTarget(found.path, found.vouchedBy, name)?.release.serial, 9e15);
  });
});
