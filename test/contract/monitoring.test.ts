import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createAgentMetrics } from '../../src/agent/report/agent-metrics.js';
import { eventNames } from '../../src/agent/report/events.js';
import { createMetrics } from '../../src/platform/telemetry/metrics.js';

const page = (name: string): string => readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');
const firstCells = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((match) => match[1] ?? '').sort();

describe('docs/events.md', () => {
  it('has every event that there is, and no other', () => {
    const documented = firstCells(page('events.md'), /^\| `([a-z]+\.[a-z-]+)` \|/gm);
    assert.deepEqual(documented, [...eventNames].sort());
  });
});

describe('docs/monitoring.md', () => {
  it('has every metric that there is, and no other', async () => {
    const metrics = await createMetrics({ process: 'omit' });
    const text = await createAgentMetrics(metrics, () => 0).text();
    const known = firstCells(text, /^# TYPE (\S+) /gm);
    assert.deepEqual(firstCells(page('monitoring.md'), /^\| `(writ_agent_\w+)` \|/gm), known);
  });

  it('alerts on metrics that there are', () => {
    const text = page('monitoring.md');
    const known = new Set(firstCells(text, /^\| `(writ_agent_\w+)` \|/gm));
    const used = firstCells(text.slice(text.indexOf('groups:')), /(writ_agent_\w+)/g);
    assert.deepEqual(
      used.filter((name) => !known.has(name)),
      [],
    );
  });
});
