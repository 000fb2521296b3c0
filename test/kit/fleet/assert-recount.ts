// The invariant of the counts of a store, for each test that changes one.
import assert from 'node:assert/strict';
import type { Kysely } from 'kysely';
import { recount, storedCounters } from '../../../src/fleet/hosts/counter-changes.js';
import { recountHosts, storedHostCounters } from '../../../src/fleet/hosts/host-counters.js';
import type { Tables } from '../../../src/fleet/store/tables.js';

/** Asserts that the counts of releases and of hosts equal a recount of the rows. */
export async function assertRecount(db: Kysely<Tables>): Promise<void> {
  assert.deepEqual(await storedCounters(db), await recount(db));
  assert.deepEqual(await storedHostCounters(db), await recountHosts(db));
}
