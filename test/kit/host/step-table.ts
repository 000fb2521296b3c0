// Runs a table of named cases, one or more for every step of the cycle, and holds each to the sequence that it spells out.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { steps } from '../../../src/core/cycle/sync-machine.js';
import type { Trouble } from '../assert/step-story.js';
import { type VisibleActions, visibleActions } from './visible-actions.js';

export interface StepCase extends VisibleActions {
  /** `Killed in flush: a tree is in its place`; the step comes behind the verb. */
  readonly name: string;
  readonly trouble: Trouble;
}

/** @param verb how the names of its cases begin, as `Killed in` */
export function stepTable(verb: string, cases: readonly StepCase[]): void {
  describe(`${verb} a step`, () => {
    it('has a case for every step of the cycle, and for the way back', () => {
      const named = cases.map(({ name }) => name.slice(verb.length + 1).split(':')[0]);
      assert.deepEqual([...new Set(named)], [...steps, 'restore']);
    });
    for (const { name, trouble, ...expected } of cases) {
      it(name, async () => assert.deepEqual(await visibleActions(trouble), expected));
    }
  });
}
