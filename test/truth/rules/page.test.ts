// The table of docs/truth.md, written and read again: later runs are compared with the recorded verdicts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { verdicts } from './judge.js';
import {
  type Cell,
  complaints,
  drawBusy,
  drawDetails,
  drawTable,
  merged,
  readDetails,
  readTable,
  withPart,
} from './page.js';

const cells: readonly Cell[] = [
  { daemon: 'bind', case: 'good', verdict: '=', text: 'serves v2' },
  { daemon: 'bind', case: 'dead before', verdict: '=(u)', text: 'serves nothing;\nWrit: degraded' },
  { daemon: 'nft', case: 'good', verdict: '=', text: 'serves v2' },
  { daemon: 'nft', case: 'dead before', verdict: '-', text: 'no process' },
];
const cases = ['good', 'dead before'];
const table = `| daemon | good | dead before |
|---|---|---|
| bind | = | =(u) |
| nft | = | - |`;

describe('the table', () => {
  it('has a row for each daemon and a column for each case', () => {
    assert.equal(drawTable(cells, cases), table);
  });

  it('leaves a cell without a result empty', () => {
    assert.match(drawTable(cells.slice(1), cases), /^\| bind \| {2}\| =\(u\) \|$/m);
  });

  it('is read as it was written, at any place of the page', () => {
    const read = readTable(`# Head\n\n| else | good |\n|---|---|\n| x | y |\n\n${table}\n\ntext\n`);
    assert.deepEqual(
      [...read],
      cells.map((cell) => [`${cell.daemon}:${cell.case}`, cell.verdict]),
    );
  });

  it('restores every verdict', () => {
    const all = verdicts.map((verdict, at): Cell => ({ daemon: `d${at}`, case: 'good', verdict, text: '' }));
    assert.deepEqual([...readTable(drawTable(all, ['good'])).values()], [...verdicts]);
  });

  it('has no verdict for an empty cell, or on a page without a table', () => {
    assert.deepEqual(
      [...readTable(table.replace('=(u)', '')).keys()],
      ['bind:good', 'nft:good', 'nft:dead before'],
    );
    assert.equal(readTable('# no table\n').size, 0);
  });

  it('is refused with the name of a cell that was edited', () => {
    assert.throws(() => readTable(table.replace('=(u)', 'fine')), /bind:dead before is no verdict: fine/);
  });
});

describe('the lines below the table', () => {
  it('are under their daemon, in the order of the cases', () => {
    const text = drawDetails(cells);
    assert.ok(
      text.startsWith(
        '### bind\n\n- **good** `=` serves v2\n- **dead before** `=(u)` serves nothing;\n  Writ: degraded\n',
      ),
    );
    assert.ok(text.endsWith('### nft\n\n- **good** `=` serves v2\n- **dead before** `-` no process'));
  });
});

describe('the recorded cells', () => {
  it('are read as they were written', () => {
    assert.deepEqual(readDetails(`${table}\n\n${drawDetails(cells)}\n\nfoot\n`), cells);
  });

  it('are none when no line is a cell', () => {
    assert.deepEqual(readDetails('### bind\n\n- **good** `fine` text\n- good `=` text\n'), []);
  });

  it('are replaced by new results, and remain without them', () => {
    const now: Cell = { daemon: 'bind', case: 'good', verdict: 'BETTER', text: 'serves v1' };
    const names = cells.map((cell) => `${cell.daemon}:${cell.case}`);
    assert.deepEqual(merged(cells, [now], names), [now, ...cells.slice(1)]);
    assert.deepEqual(merged([], [now], names), [now]);
  });

  it('remain when the new run could not play the case', () => {
    const now: Cell = { daemon: 'bind', case: 'good', verdict: '?', text: 'no disk' };
    assert.deepEqual(merged(cells, [now], ['bind:good', 'nft:good']), [cells[0], cells[2]]);
    assert.deepEqual(merged([], [now], ['bind:good']), []);
  });

  it('lose a cell of a removed daemon or case', () => {
    assert.deepEqual(merged(cells, [], ['nft:good']), [cells[2]]);
  });
});

describe('a run beside busy processes', () => {
  const run = { recorded: readTable(table), busy: 8, processors: 2 };

  it('is described by the number of results, and by each changed verdict', () => {
    const worse: Cell = { daemon: 'bind', case: 'good', verdict: '=(u)', text: 'why' };
    const text = drawBusy([worse, ...cells.slice(1)], run);
    assert.match(text, /^3 cells beside 8 busy processes on 2 processors: 0 `BETTER`, 0 `WORSE`,\n1 that/);
    assert.match(text, /good 2, dead before 1\./);
    assert.match(text, /\n- bind:good: `=\(u\)` why$/);
  });

  it('adds no text that would be read as a table or a cell', () => {
    const text = drawBusy(cells, run);
    assert.equal(readTable(text).size, 0);
    assert.deepEqual(readDetails(text), []);
  });
});

describe('a part of a page', () => {
  const page = 'head\n<!-- table -->\nold\n<!-- /table -->\nfoot\n';

  it('is replaced between its marks, without another change', () => {
    const first = withPart(page, 'table', 'new $& text');
    assert.equal(first, 'head\n<!-- table -->\nnew $& text\n<!-- /table -->\nfoot\n');
    assert.equal(withPart(first, 'table', 'old'), page);
  });

  it('is required, with its end after its start', () => {
    assert.throws(() => withPart(page, 'row', 'x'), /no part row/);
    assert.throws(() => withPart('<!-- /row --> <!-- row -->', 'row', 'x'), /no part row/);
    assert.throws(() => withPart('<!-- row -->', 'row', 'x'), /no part row/);
  });
});

describe('complaints', () => {
  const recorded = readTable(table);
  const of = (verdict: Cell['verdict']): string[] =>
    complaints([{ daemon: 'bind', case: 'good', verdict, text: 'why' }], recorded);

  it('are none when every verdict equals the recorded one', () => {
    assert.deepEqual(complaints(cells, recorded), []);
  });

  it('name a report better than the real state, and a refused good release', () => {
    assert.deepEqual(of('BETTER'), ['bind:good: Writ reports more than is true. why']);
    assert.deepEqual(of('WORSE'), ['bind:good: a good release was refused. why']);
  });

  it('name these two even when the page has them recorded', () => {
    for (const verdict of ['BETTER', 'WORSE'] as const) {
      const same = new Map([['bind:good', verdict]]);
      const cell: Cell = { daemon: 'bind', case: 'good', verdict, text: 'why' };
      assert.equal(complaints([cell], same).length, 1);
    }
  });

  it('are none when Writ correctly reports more than is recorded', () => {
    const cell: Cell = { daemon: 'bind', case: 'good', verdict: '=', text: 'why' };
    for (const before of ['=(u)', 'BETTER', 'WORSE'] as const)
      assert.deepEqual(complaints([cell], new Map([['bind:good', before]])), []);
    assert.equal(complaints([cell], new Map([['bind:good', '-']])).length, 1);
  });

  it('name a changed verdict, a cell that is not on the page, and a case that could not run', () => {
    assert.deepEqual(of('=(u)'), ['bind:good: =(u), docs/truth.md has =. why']);
    assert.deepEqual(of('?'), ['bind:good: why']);
    const cell: Cell = { daemon: 'new', case: 'good', verdict: '=', text: 'why' };
    assert.deepEqual(complaints([cell], recorded), ['new:good: =, docs/truth.md has nothing. why']);
  });
});
