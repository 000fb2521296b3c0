// What a benchmark runs, by its flags.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planOf } from '../../../bench/plan.js';

describe('the plan of a benchmark', () => {
  it('is policy-10k five times, into the document, without growth', () => {
    const { treeName, rounds, growth, document, output, command } = planOf([]);
    assert.deepEqual(
      [treeName, rounds, growth, document, output],
      ['policy-10k', 5, 'left out', 'written', 'text'],
    );
    assert.equal(command, 'npm run bench');
  });

  it('is small with --short, and leaves the document alone', () => {
    const { treeName, growth, document, command } = planOf(['--short']);
    assert.deepEqual([treeName, growth, document], ['policy-small', 'left out', 'left alone']);
    assert.equal(command, 'npm run bench -- --short');
  });

  it('has growth with --full, other rounds with --rounds, an object with --json', () => {
    const { growth, rounds, output } = planOf(['--full', '--rounds', '3', '--json']);
    assert.deepEqual([growth, rounds, output], ['measured', 3, 'json']);
  });

  it('is of what is at rest alone with --rest, and leaves the document alone', () => {
    const { treeName, restMinutes, document, command } = planOf(['--rest', '10']);
    assert.deepEqual([treeName, restMinutes, document], ['policy-10k', 10, 'left alone']);
    assert.equal(command, 'npm run bench -- --rest 10');
    assert.equal(planOf(['--short', '--rest', '0.5']).treeName, 'policy-small');
    assert.equal(planOf([]).restMinutes, undefined);
  });

  it('is of the fleet server alone with --fleet, with 100,000 hosts or few, and leaves the document alone', () => {
    const { only, fleet, document, command } = planOf(['--fleet']);
    assert.deepEqual([only, fleet.hosts, document], ['fleet', 100_000, 'left alone']);
    assert.equal(command, 'npm run bench -- --fleet');
    assert.ok(planOf(['--short', '--fleet']).fleet.hosts < 10_000);
    assert.equal(planOf([]).only, undefined);
  });

  it('refuses what contradicts itself, no number of rounds, and unknown flags', () => {
    for (const args of [
      ['--short', '--full'],
      ['--fleet', '--full'],
      ['--fleet', '--rest', '1'],
      ['--rounds', '0'],
      ['--rest', '0'],
      ['--rest', 'x'],
      ['--rest', '1', '--full'],
      ['--rounds', 'x'],
      ['--fast'],
    ]) {
      assert.throws(() => planOf(args), Error, args.join(' '));
    }
  });
});
