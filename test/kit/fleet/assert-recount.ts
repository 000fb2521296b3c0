// The invariant of all numbers of a store, in one place for every test that plays with it.
import assert from 'node:assert/strict';
import type { Kysely } from 'kysely';
import { recount, storedCounters } from '../../../src/fleet/hosts/counter-changes.js';
import { recountHosts, storedHostCounters } from '../../../src/fleet/hosts/host-counters.js';
import type { Tables } from '../../../src/fleet/store/tables.js';

/** Numbers, of releases and of hosts, are what a recount of the rows gives. */
export async function assertRecount(db: Kysely<Tables>): Promise<void> {
  assert.deepEqual(await storedCounters(db), await recount(db));
  assert.deepEqual(await storedHostCounters(db), await recountHosts(db));
}
