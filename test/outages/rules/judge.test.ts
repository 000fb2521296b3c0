// The verdict on a replay, and the table, with samples and histories from this file.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Replayed, Sample } from '../stage/outage.js';
import { readArguments } from './arguments.js';
import { awaySeconds, eventsIn, judgeReplay } from './judge.js';
import { drawTable, exitCodeOf, type Row, rowsAsJson } from './table.js';

const sample = (atMs: number, current: number, ...answers: (string | undefined)[]): Sample => ({
  atMs,
  current: `generations/${current}`,
  answers,
});
const wentBack = [
  sample(0, 1, 'old'),
  sample(1000, 2, 'old'),
  sample(1500, 2, undefined),
  sample(4000, 1, undefined),
  sample(4500, 1, 'old'),
];
const problem = { code: 'BAKE_FAILED', facts: { cause: 'WORKER_DIED' } };
/** Newest first, as `writ history` prints it. */
const history = {
  entries: [
    { result: { outcome: 'rolled-back', problems: [problem] } },
    { result: { outcome: 'unchanged' } },
    { result: { outcome: 'activated', problems: [] } },
    { result: { outcome: 'activated' } },
  ],
};
const expected = { old: 'old', happened: ['BAKE_FAILED (WORKER_DIED)'], maxAwaySeconds: 5 };

describe('the time without the old policy', () => {
  it('counts from the activation until every worker serves the old policy again', () => {
    assert.equal(awaySeconds(wentBack, 'old'), 3.5);
    const two = [
      sample(0, 1, 'old', 'old'),
      sample(1000, 2, 'new', 'old'),
      sample(2000, 1, 'old', undefined),
      sample(9000, 1, 'old', 'old'),
    ];
    assert.equal(awaySeconds(two, 'old'), 8);
  });

  it('is undefined when no worker ever left it', () => {
    assert.equal(awaySeconds([sample(0, 1, 'old'), sample(1000, 2, 'old')], 'old'), undefined);
  });

  it('lasts to the last sample when a worker has not recovered', () => {
    assert.equal(awaySeconds(wentBack.slice(0, 4), 'old'), 3);
  });
});

describe('the verdict on a replay', () => {
  it('has no complaint when the host rolled back in time', () => {
    const { happened, serves, complaints } = judgeReplay({ samples: wentBack, history }, expected);
    assert.deepEqual(happened, ['activated', 'rolled-back BAKE_FAILED (WORKER_DIED)']);
    assert.deepEqual([serves, complaints], ['old', []]);
  });

  const complaintsOf = (samples: readonly Sample[], change: Partial<typeof expected>): readonly string[] =>
    judgeReplay({ samples, history }, { ...expected, ...change }).complaints;

  it('complains when the host is late, when it ends with another policy, and when a code is missing', () => {
    assert.equal(complaintsOf(wentBack, { maxAwaySeconds: 3 }).length, 1);
    assert.equal(complaintsOf([...wentBack, sample(5000, 3, 'new')], {}).length, 1);
    assert.equal(complaintsOf(wentBack, { happened: ['CONTACT_LOST'] }).length, 1);
  });

  it('complains when a fault that must stop the worker did not, and the reverse', () => {
    const never = [sample(0, 1, 'old')];
    assert.equal(complaintsOf(never, {}).length, 1);
    assert.deepEqual(complaintsOf(never, { maxAwaySeconds: 0 }), []);
    assert.equal(complaintsOf(wentBack, { maxAwaySeconds: 0 }).length, 1);
  });

  it('shows equal events in a row once', () => {
    const twice = { entries: [...history.entries, ...history.entries] };
    assert.equal(eventsIn(twice).length, 4);
  });
});

describe('the table of outages', () => {
  const outage = { name: 'a', title: 'A', mechanism: 'm', supervisor: 's' };
  const replayed: Replayed = { happened: ['activated'], awaySeconds: 1.5, serves: 'old', complaints: [] };
  const good: Row = { outage, replayed };
  const bad: Row = { outage, replayed: { ...replayed, complaints: ['it stayed'] } };
  const skipped: Row = { outage, replayed: { skipped: 'supervisord is not installed' } };

  it('shows each complaint, with exit code 1', () => {
    assert.match(drawTable([good]), /^a +yes +activated +1\.5 s +old$/m);
    assert.match(drawTable([good, bad]), /^a: it stayed$/m);
    assert.deepEqual([exitCodeOf([good]), exitCodeOf([good, bad])], [0, 1]);
  });

  it('shows a skipped row with its reason, which fails only when every row must run', () => {
    assert.match(drawTable([skipped]), /skipped +supervisord is not installed$/m);
    assert.deepEqual([exitCodeOf([skipped]), exitCodeOf([skipped], { mustRun: true })], [0, 1]);
  });

  it('is one object as JSON', () => {
    const { type, outages } = JSON.parse(rowsAsJson([good, skipped], 0));
    assert.equal(type, 'outages.result');
    assert.equal(outages[0].awaySeconds, 1.5);
    assert.equal(outages[1].skipped, 'supervisord is not installed');
  });
});

describe('the arguments of npm run outages', () => {
  it('choose all rows, or those that --only names, in the order of the table', () => {
    assert.deepEqual(readArguments([], ['a', 'b']), { names: ['a', 'b'], isJson: false });
    const chosen = readArguments(['--only', 'b', '--only', 'a', '--json'], ['a', 'b', 'c']);
    assert.deepEqual(chosen, { names: ['a', 'b'], isJson: true });
  });

  it('are refused for an unknown row and an unknown flag, and --help has examples', () => {
    assert.ok('mistake' in readArguments(['--only', 'x'], ['a']));
    assert.ok('mistake' in readArguments(['--fast'], ['a']));
    const help = readArguments(['--help'], ['a']);
    assert.ok('help' in help && help.help.includes('Examples:'));
  });
});
