import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMetrics } from '../../../../src/platform/telemetry/metrics.js';
import { longCase } from '../../../kit/assert/long-case.js';

describe('metrics', () => {
  it('writes counters and gauges in the text format', longCase, async () => {
    const metrics = await createMetrics({ process: 'omit' });
    const counter = metrics.counter({ name: 'writ_test_total', help: 'Things.', labels: ['kind'] });
    const gauge = metrics.gauge({ name: 'writ_test_seconds', help: 'Time.', labels: ['role'] });
    counter.add({ kind: 'a' });
    counter.add({ kind: 'a' }, 2);
    gauge.set({ role: 'root' }, -1.5);
    const lines = (await metrics.text()).split('\n');
    assert.ok(lines.includes('# TYPE writ_test_total counter'));
    assert.ok(lines.includes('writ_test_total{kind="a"} 3'));
    assert.ok(lines.includes('writ_test_seconds{role="root"} -1.5'));
    gauge.clear();
    assert.doesNotMatch(await metrics.text(), /role="root"/);
    assert.match(metrics.contentType, /^text\/plain/);
  });

  it('separates two registries, and includes metrics of the process only on request', async () => {
    const first = await createMetrics({ process: 'omit' });
    const second = await createMetrics({ process: 'include' });
    first.counter({ name: 'writ_test_total', help: 'Things.', labels: [] }).add({});
    assert.doesNotMatch(await second.text(), /writ_test_total/);
    assert.doesNotMatch(await first.text(), /process_/);
    assert.match(await second.text(), /process_resident_memory_bytes/);
  });
});
