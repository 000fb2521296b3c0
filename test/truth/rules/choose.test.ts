// The selection of cells for a run: every cell runs for some commit, and each requested cell runs now.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { choose } from './choose.js';

const daemons = ['bind', 'nginx', 'nft', 'pdns-recursor'];
const cases = ['good', 'refused', 'dead before', 'absent', 'hung', 'slow', 'half', 'killed', 'emptied'];
const names = daemons.flatMap((daemon) => cases.map((one) => `${daemon}:${one}`));
const always = ['good', 'dead before'];
const pick = (given: readonly string[], commit = 'c1') => choose(names, { given, always, commit });

describe('the cells of a run', () => {
  it('are all cells with --all; the page is written with --all and with --record', () => {
    assert.deepEqual(pick(['--all']), { cells: names, shouldRecord: true });
    assert.equal(pick([]).shouldRecord, false);
    assert.equal(pick(['bind:good']).shouldRecord, false);
    assert.equal(pick(['bind:good', '--record']).shouldRecord, true);
  });

  it('are the named ones: a cell, a daemon or a case', () => {
    assert.deepEqual(pick(['bind:dead before']).cells, ['bind:dead before']);
    assert.deepEqual(
      pick(['nft', '--keep']).cells,
      cases.map((one) => `nft:${one}`),
    );
    assert.deepEqual(
      pick([':hung']).cells,
      daemons.map((one) => `${one}:hung`),
    );
    assert.deepEqual(pick([':hung', 'bind:good']).cells.length, daemons.length + 1);
  });

  it('are refused for an unknown name or a part of a name', () => {
    assert.throws(() => pick(['bond']), /no cell bond/);
    assert.throws(() => pick(['bind:goo']), /no cell bind:goo/);
    assert.throws(() => pick(['bin']), /no cell bin/);
    assert.throws(() => pick([':ung']), /no cell :ung/);
  });

  it('include those of every run for every daemon, for any commit', () => {
    for (const commit of ['a', 'b', 'c']) {
      const { cells } = pick([], commit);
      for (const daemon of daemons) for (const one of always) assert.ok(cells.includes(`${daemon}:${one}`));
    }
  });

  it('include a share of the others that the commit selects, equal for equal commits, until each has run', () => {
    assert.deepEqual(pick([], 'same'), pick([], 'same'));
    const commits = Array.from({ length: 200 }, (_, at) => `commit ${at}`);
    const runs = commits.map((commit) => pick([], commit).cells);
    assert.deepEqual([...new Set(runs.flat())].sort(), [...names].sort());
    const fixed = daemons.length * always.length;
    const shares = runs.map((cells) => cells.length - fixed);
    const mean = shares.reduce((sum, one) => sum + one, 0) / shares.length;
    assert.ok(mean > 0.5 && mean < 4, `${mean} of ${names.length - fixed}`);
  });

  it('keep the order of the page', () => {
    const { cells } = pick([]);
    assert.deepEqual(
      cells,
      names.filter((name) => cells.includes(name)),
    );
  });
});
