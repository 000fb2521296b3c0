// What must hold of any store, on a real PostgreSQL; test/unit/fleet has the same on the embedded one.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needsPostgres, type RunningPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';
import { storeCases } from '../../kit/fleet/store-cases.js';

const here = needsPostgres();

describe('a fleet in PostgreSQL', here, () => {
  const directory = tempDir();
  let postgres: RunningPostgres;
  before(async () => {
    postgres = await startPostgres(directory.path);
  });
  after(async () => {
    await postgres[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });
  storeCases(() => postgres.newDatabase(), 60);

  it('says FLEET_STORE_UNREACHABLE where nobody listens, and never the password', async () => {
    const url = 'postgres://writ:hush@127.0.0.1:1/fleet';
    const opening = openFleetStore(url, { clock: systemClock, log: silentLog() });
    const error = await rejectsCode('FLEET_STORE_UNREACHABLE', opening);
    assert.equal(JSON.stringify([error, error.message]).includes('hush'), false);
  });
});
