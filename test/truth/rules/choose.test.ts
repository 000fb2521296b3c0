// What a run plays: everything is played by somebody at some time, and what was asked for is played now.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { choose } from './choose.js';

const daemons = ['bind', 'nginx', 'nft', 'pdns-recursor'];
const cases = ['good', 'refused', 'dead before', 'absent', 'hung', 'slow', 'half', 'killed', 'emptied'];
const names = daemons.flatMap((daemon) => cases.map((one) => `${daemon}:${one}`));
const always = ['good', 'dead before'];
const pick = (given: readonly string[], commit = 'c1') => choose(names, { given, always, commit });

describe('the cells of a run', () => {
  it('are all with --all; the page is written then, and where that was asked for', () => {
    assert.deepEqual(pick(['--all']), { cells: names, record: 'yes' });
    assert.equal(pick([]).record, 'no');
    assert.equal(pick(['bind:good']).record, 'no');
    assert.equal(pick(['bind:good', '--record']).record, 'yes');
  });

  it('are those that were named: one cell, a daemon, a case', () => {
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

  it('are refused where nothing has that name, and part of a name is none', () => {
    assert.throws(() => pick(['bond']), /no cell bond/);
    assert.throws(() => pick(['bind:goo']), /no cell bind:goo/);
    assert.throws(() => pick(['bin']), /no cell bin/);
    assert.throws(() => pick([':ung']), /no cell :ung/);
  });

  it('have those of every run for every daemon, whatever the commit', () => {
    for (const commit of ['a', 'b', 'c']) {
      const { cells } = pick([], commit);
      for (const daemon of daemons) for (const one of always) assert.ok(cells.includes(`${daemon}:${one}`));
    }
  });

  it('have a share of the others that the commit chooses: the same for the same, and each in its turn', () => {
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
