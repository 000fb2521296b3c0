// Holds the page of metrics, the alarms and the dashboard of a fleet to the metrics that its server has.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createFleetMetrics } from '../../src/fleet/http/fleet-metrics.js';

const file = (...path: string[]): string =>
  readFileSync(join(import.meta.dirname, '../../..', ...path), 'utf8');

async function knownMetrics(): Promise<ReadonlyMap<string, string>> {
  const metrics = await createFleetMetrics({ process: 'include' });
  const text = await metrics.text(undefined, 'shown');
  return new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
}

const used = (text: string): string[] =>
  [...text.matchAll(/\b((?:writ_fleet|process)_\w+)/g)].map(([name]) => name);

/** What nothing is called by, a histogram's own name among them: it has only its three series. */
async function strangers(text: string): Promise<string[]> {
  const known = await knownMetrics();
  return used(text).filter((name) => {
    const series = /^(.*)_(?:bucket|sum|count)$/.exec(name)?.[1] ?? '';
    return known.get(series) !== 'histogram' && (known.get(name) ?? 'histogram') === 'histogram';
  });
}

describe('metrics of a fleet', () => {
  it('are in docs/monitoring.md, every one, and no other', async () => {
    const documented = [...file('docs', 'monitoring.md').matchAll(/^\| `(writ_fleet_\w+)` \|/gm)];
    const known = [...(await knownMetrics()).keys()].filter((name) => name.startsWith('writ_fleet_'));
    assert.deepEqual(documented.map(([, name]) => name).sort(), known.sort());
  });

  it('are all that alarms, their test and the dashboard ask for', async () => {
    for (const path of [
      'prometheus/writ-fleet.rules.yml',
      'prometheus/writ-fleet.test.yml',
      'grafana/writ-fleet.json',
    ]) {
      const text = file('packaging', path);
      assert.ok(used(text).length > 10, path);
      assert.deepEqual(await strangers(text), [], path);
    }
    assert.deepEqual(await strangers('writ_fleet_commit_seconds + writ_fleet_nothing'), [
      'writ_fleet_commit_seconds',
      'writ_fleet_nothing',
    ]);
  });

  it('have an alarm each time in the test of alarms', () => {
    const rules = file('packaging', 'prometheus', 'writ-fleet.rules.yml');
    const tried = file('packaging', 'prometheus', 'writ-fleet.test.yml');
    const alarms = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
    assert.ok(alarms.length >= 15);
    assert.deepEqual(
      alarms.filter((name) => !tried.includes(name)),
      [],
    );
  });
});
