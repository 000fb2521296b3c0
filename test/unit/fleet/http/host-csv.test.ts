import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HostLine } from '../../../../src/core/fleet/answers.js';
import { csvCell, hostsCsv } from '../../../../src/fleet/http/host-csv.js';

describe('a cell of CSV', () => {
  it('is no formula, whatever a host calls itself', () => {
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '  =1', '＝1'])
      assert.ok(csvCell(text).startsWith(`"'`), text);
    assert.equal(csvCell('web-1'), '"web-1"');
  });

  it('ends where it ends', () => {
    assert.equal(csvCell('a","b\n=c'), '"a"",""b\\u{a}=c"');
  });

  it('shows what hides in it, turns it around or drives a terminal', () => {
    assert.equal(csvCell('\u009b2J\u202e\u2066\u200b'), '"\\u{9b}2J\\u{202e}\\u{2066}\\u{200b}"');
    assert.equal(csvCell('\t=1'), '"\\u{9}=1"');
  });
});

const host: HostLine = {
  ...{ key: 'k', host: 'web-1', kind: 'writ', state: 'accepted', presence: 'heard', health: 'ok' },
  ...{ version: '0.1.0', root: 1, lastSeenMs: 0, skewMs: 0, cloned: false, labels: {}, bundles: [] },
};

describe('hosts as CSV', () => {
  it('have every cell in each line, also where a host has no bundle', async () => {
    const bundle = { bundle: 'dns', channel: 'stable' };
    const hosts = [host, { ...host, bundles: [bundle] }];
    const queries = { hosts: async () => ({ schema: 1, type: 'fleet.hosts', hosts }) as const };
    let text = '';
    for await (const part of hostsCsv(queries, { labels: {}, bundle: {} }, 'view')) text += part;
    const lines = text.split('\r\n');
    assert.deepEqual(
      lines.slice(0, 3).map((line) => line.split(',').length),
      [17, 17, 17],
    );
  });
});
