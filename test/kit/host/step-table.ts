// Runs a table of named cases, at least one for each step of the cycle, and compares each with its expected sequence.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { steps } from '../../../src/core/cycle/sync-machine.js';
import type { Trouble } from '../assert/step-story.js';
import { type VisibleActions, visibleActions } from './visible-actions.js';

export interface StepCase extends VisibleActions {
  /** As `Killed in flush: a tree is in its place`: the verb, then the step. */
  readonly name: string;
  readonly trouble: Trouble;
}

/**
 * Defines a test for each case, and one for the completeness of the table.
 * @param verb first words of each case name, as `Killed in`
 */
export function stepTable(verb: string, cases: readonly StepCase[]): void {
  describe(`${verb} a step`, () => {
    it('has a case for every step of the cycle, and for the restore', () => {
      const named = cases.map(({ name }) => name.slice(verb.length + 1).split(':')[0]);
      assert.deepEqual([...new Set(named)], [...steps, 'restore']);
    });
    for (const { name, trouble, ...expected } of cases) {
      it(name, async () => assert.deepEqual(await visibleActions(trouble), expected));
    }
  });
}
