import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HostLine } from '../../../../src/core/fleet/answers.js';
import { csvCell, historyCsv, hostsCsv } from '../../../../src/fleet/http/host-csv.js';

describe('a cell of CSV', () => {
  it('is not a formula for any name of a host', () => {
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '  =1', '＝1'])
      assert.ok(csvCell(text).startsWith(`"'`), text);
    assert.equal(csvCell('web-1'), '"web-1"');
  });

  it('escapes quotes, commas and line ends', () => {
    assert.equal(csvCell('a","b\n=c'), '"a"",""b\\u{a}=c"');
  });

  it('escapes invisible characters, changes of direction and control characters', () => {
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
      [19, 19, 19],
    );
  });

  it('have the state of every count, so that a cloned or silent host is not in use', async () => {
    const active = { serial: 2, state: 'notified', bake: '', sinceMs: 0 } as const;
    const bundles = [{ bundle: 'dns', channel: 'stable', active }];
    const hosts = [
      { ...host, bundles },
      { ...host, bundles, cloned: true },
      { ...host, bundles, presence: 'silent' },
      { ...host, cloned: true },
    ] as unknown as HostLine[];
    const queries = { hosts: async () => ({ schema: 1, type: 'fleet.hosts', hosts }) as const };
    let text = '';
    for await (const part of hostsCsv(queries, { labels: {}, bundle: {} }, 'view')) text += part;
    const ends = text.split('\r\n').map((line) => line.split(',').slice(-2).join());
    assert.deepEqual(ends, [
      '"cloned","delivery state"',
      '"false","notified"',
      '"true","cloned"',
      '"false","silent"',
      '"true",""',
      '',
    ]);
  });
});

describe('a history as CSV', () => {
  it('has every cell in each line, of all pages', async () => {
    const release = { bundle: 'dns', channel: 'stable', serial: 42 };
    const known = {
      ...release,
      key: 'k',
      host: '=web',
      kind: 'active',
      state: 'confirmed',
      manifest: 'm',
    } as const;
    const pages = [
      { intervals: [{ ...known, sinceMs: 0, untilMs: 1000, merged: 3 }], next: 'more' },
      { intervals: [{ ...release, key: 'k', host: '', kind: 'refused', code: 'CHECK_FAILED', sinceMs: 0 }] },
    ] as const;
    const asked: unknown[] = [];
    const queries = {
      history: async (question: object) => {
        asked.push(question);
        return { schema: 1, type: 'fleet.history', ...(pages[asked.length - 1] ?? assert.fail()) } as const;
      },
    };
    let text = '';
    for await (const part of historyCsv(queries, release)) text += part;
    assert.deepEqual(text.split('\r\n').slice(1), [
      `"k","'=web","dns","stable","42","m","active","confirmed","","1970-01-01T00:00:00.000Z","1970-01-01T00:00:01.000Z","3"`,
      '"k","","dns","stable","42","","refused","","CHECK_FAILED","1970-01-01T00:00:00.000Z","","1"',
      '',
    ]);
    assert.deepEqual(asked, [
      { of: release, limit: 500 },
      { of: release, limit: 500, after: 'more' },
    ]);
  });
});
