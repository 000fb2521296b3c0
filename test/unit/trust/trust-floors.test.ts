// A refresh against the trust floors of a boot: each role, with a file that is fetched and with one that is stored already.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { topLevelRoles } from '../../../src/core/tuf/tuf-metadata.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import type { TrustFloors } from '../../../src/trust/store/floor-rules.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

const nowMs = Date.UTC(2026, 10, 1);

function scene() {
  const repository = new RepositorySimulator({ nowMs });
  let floors: TrustFloors | undefined;
  const store = { ...memoryTrustStore(repository.bootstrapRoot), floors: () => floors };
  const client = openRepositoryClient({ source: repository.source(), store, clock: fakeClock({ nowMs }) });
  return {
    refresh: () => client.refresh(),
    setFloors: (next: TrustFloors) => {
      floors = next;
    },
  };
}

async function currentVersions(): Promise<TrustFloors> {
  const { roles } = await scene().refresh();
  return Object.fromEntries(topLevelRoles.map((role) => [role, roles[role].version])) as TrustFloors;
}

describe('a refresh below the trust floors', () => {
  for (const role of topLevelRoles) {
    it(`is a rollback of the ${role} role, fetched for the first time`, async () => {
      const versions = await currentVersions();
      const { refresh, setFloors } = scene();
      setFloors({ ...versions, [role]: versions[role] + 1 });
      const facts = { role, expected: versions[role] + 1, actual: versions[role] };
      await assert.rejects(refresh(), (error: { code?: string; facts?: Record<string, unknown> }) => {
        assert.deepEqual(
          [error.code, error.facts?.['role'], error.facts?.['expected']],
          ['METADATA_ROLLBACK', role, facts.expected],
        );
        return true;
      });
    });

    it(`is a rollback of the ${role} role, stored before`, async () => {
      const versions = await currentVersions();
      const { refresh, setFloors } = scene();
      await refresh();
      setFloors({ ...versions, [role]: versions[role] + 1 });
      await assert.rejects(refresh(), { code: 'METADATA_ROLLBACK' });
    });
  }

  it('succeeds at the floors', async () => {
    const { refresh, setFloors } = scene();
    setFloors(await currentVersions());
    await refresh();
  });
});
