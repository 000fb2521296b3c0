// Errors of a store after which a migration retries, because another server may migrate to the same version.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { migrate } from '../../../../src/fleet/store/migrate.js';
import { migrations } from '../../../../src/fleet/store/migrations.js';
import { storeError } from '../../../../src/fleet/store/store-errors.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';

/** Migrates to a further version; the first attempts fail with these codes. @returns the number of attempts */
async function refusedWith(...codes: readonly string[]): Promise<number> {
  using dir = tempDir(memory());
  await using bench = await fleetBench(dir.join('store'), fakeClock());
  let tries = 0;
  const up = async (): Promise<void> => {
    const code = codes[tries++];
    if (code !== undefined) throw storeError(code, 'refused');
  };
  const known = [...migrations, { version: migrations.length + 1, up }];
  await migrate(bench.store.db.withTables(), { id: 'x', nowMs: 1 }, known);
  return tries;
}

describe('migrate', () => {
  it('retries after refusals that another server may cause', async () => {
    const codes = ['SQLITE_CONSTRAINT_PRIMARYKEY', '23505', 'SQLITE_BUSY', '40001', '42P07', '42710'];
    for (const code of codes) assert.equal(await refusedWith(code), 2, code);
  });

  it('ends with any other refusal, and after many of another server', async () => {
    await assert.rejects(refusedWith('42501'), { code: 'FLEET_STORE_FAILED' });
    await assert.rejects(refusedWith(...Array.from({ length: 60 }, () => '40001')), {
      code: 'FLEET_STORE_BUSY',
    });
  });
});
