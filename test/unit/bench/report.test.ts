// The table, and its place in the document.
import assert from 'node:assert/strict';
import { it, describe as suite } from 'node:test';
import { describe, putSection } from '../../../bench/report/document.js';
import { bytes, milliseconds } from '../../../bench/report/format.js';
import { drawGoals } from '../../../bench/report/goals.js';
import { alignTable, drawComparison, drawFigures } from '../../../bench/report/table.js';

/** The row of this name, in cells. */
function cells(table: string, name: string): string[] {
  const line = table.split('\n').find((one) => one.startsWith(`| ${name} `)) ?? '';
  return line
    .split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());
}

suite('the table', () => {
  const rows = [
    {
      task: 'first sync',
      subject: 'writ',
      samples: [1000, 3000, 2000].map((wallMs) => ({
        wallMs,
        cpuMs: 500,
        peakBytes: 100e6,
        receivedBytes: 5000,
        requests: 5,
        toSwapMs: wallMs / 2,
      })),
    },
    { task: 'first sync', subject: 'GNU tar', samples: [{ wallMs: 500 }] },
    { task: 'nothing new', subject: 'git', samples: [{ wallMs: 10, receivedBytes: 0 }] },
  ] as const;
  const table = drawComparison(
    { rows, absent: [{ subject: 'casync', why: 'not installed: casync' }] },
    'writ',
  );

  it('has median, spread, and what a run cost', () => {
    assert.deepEqual(cells(table, 'writ'), [
      '2.00 s',
      '1.00 s to 3.00 s',
      '1.00',
      '500 ms',
      '100.0 MB',
      '5000 B',
      '5',
    ]);
  });

  it('has the part of Writ from the start of its cycle to the swap', () => {
    assert.deepEqual(cells(table, '- start of its cycle to the swap').slice(0, 3), [
      '1.00 s',
      '500 ms to 1.50 s',
      '0.50',
    ]);
  });

  it('holds a peer to Writ in the same task, and has no ratio where Writ has no figure', () => {
    assert.deepEqual(cells(table, 'GNU tar'), ['500 ms', '-', '0.25', '-', '-', '-', '-']);
    assert.deepEqual(cells(table, 'git'), ['10 ms', '-', '-', '-', '-', '0 B', '-']);
  });

  it('says who is missing', () => {
    assert.ok(table.endsWith('\n\n- casync: not installed: casync'));
  });

  it('is Markdown whose columns stand below each other', () => {
    const drawn = alignTable([['a', 'b'], ['longer', '1'], ['x']]);
    assert.equal(
      drawn,
      ['| a      |   b |', '|--------|----:|', '| longer |   1 |', '| x      |     |'].join('\n'),
    );
    const one = drawFigures('a table', [{ name: 'a poll', value: 2.5, unit: 'ms' }]);
    assert.deepEqual(cells(one, 'a poll'), ['2.50 ms']);
  });

  it('has units that fit', () => {
    assert.deepEqual([999, 1000].map(milliseconds), ['999 ms', '1.00 s']);
    assert.deepEqual([9999, 12_000, 5e6, 8e9].map(bytes), ['9999 B', '12 kB', '5.0 MB', '8.0 GB']);
  });
});

suite('the goals', () => {
  const samples = (wallMs: number, toSwapMs: number, receivedBytes = 0) => [
    { wallMs, toSwapMs, receivedBytes },
  ];
  const rows = [
    { task: 'first sync', subject: 'writ', samples: samples(1500, 900) },
    { task: 'first sync', subject: 'GNU tar', samples: [{ wallMs: 1000, cpuMs: 10 }] },
    { task: 'update', subject: 'writ', samples: samples(1500, 900, 1000) },
    { task: 'update', subject: 'rsync', samples: [{ wallMs: 500, receivedBytes: 10_000 }] },
  ] as const;
  const drawn = drawGoals({ rows, absent: [] });

  it('hold the cycle to the peer of the same run, and say by how much one is met or missed', () => {
    assert.deepEqual(cells(drawn, 'first sync, cycle to swap: times GNU tar'), ['1.00', '0.90', 'met']);
    assert.deepEqual(cells(drawn, 'update, cycle to swap: times rsync'), ['1.00', '1.80', 'missed']);
    assert.deepEqual(cells(drawn, 'update, received: times rsync'), ['0.05', '0.10', 'missed']);
  });

  it('say nothing where a peer, or a figure, is missing', () => {
    assert.doesNotMatch(drawn, /casync|ostree|CPU/);
  });
});

suite('the document', () => {
  const page = 'before\n<!-- bench:table -->\nold\n<!-- /bench:table -->\nafter\n';

  it('gets the table between its markers, and keeps every other word', () => {
    const put = putSection(page, { name: 'table', text: 'new\n' });
    assert.equal(put, 'before\n<!-- bench:table -->\nnew\n<!-- /bench:table -->\nafter\n');
    assert.equal(putSection(put, { name: 'table', text: 'new' }), put);
  });

  it('is left alone when it has no such place', () => {
    for (const text of ['', '<!-- bench:table -->', '<!-- /bench:table --><!-- bench:table -->'])
      assert.throws(() => putSection(text, { name: 'table', text: 'new' }), /has no <!-- bench:table -->/);
  });

  it('says by which command, when and on what was measured, and when others were at work', () => {
    const quiet = { cores: 2, memoryBytes: 8e9, kernel: '6.1', node: 'v20.19.0', load: 0.4 };
    const measurement = { command: 'npm run bench', tree: 'policy-10k', rounds: 5, machine: quiet, atMs: 0 };
    assert.equal(
      describe(measurement),
      '`npm run bench`, 1970-01-01: policy-10k, 5 rounds, 2 cores,\n8.0 GB of memory, Linux 6.1, Node v20.19.0, loopback.',
    );
    assert.match(
      describe({ ...measurement, machine: { ...quiet, load: 7 } }),
      /^Load before it began: 7\.0;/m,
    );
  });
});
