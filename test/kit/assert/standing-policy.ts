// Asserts that a failed pull left the policy byte for byte unchanged and no temporary files, and that the answer describes the
// failure. The test makes the fault.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { directoryState } from './directory-state.js';

export type Places = Pick<HostPaths, 'policy' | 'staging' | 'journal'>;

/**
 * @param later paths to compare afterwards, if the state has moved by then
 * @returns an assertion that the policy is unchanged since this call, with empty staging and without a journal
 */
export function standingPolicy(places: Places, later = places): () => void {
  const before = directoryState(places.policy);
  return () => {
    assert.deepEqual(directoryState(later.policy), before);
    assert.deepEqual(readdirSync(later.staging), []);
    assert.equal(existsSync(later.journal), false);
  };
}

/**
 * Asserts that the last block of a command has the outcome, the code, the active policy, `next` next steps and at most one
 * hint.
 */
export function assertFailureText(
  text: string,
  expected: { readonly outcome: string; readonly code: string; readonly next?: number },
): void {
  assert.ok(text.startsWith(expected.outcome), text);
  assert.ok(text.includes(`[${expected.code}]`), text);
  assert.match(text, /stays active/);
  assert.equal(text.match(/^Next: /gm)?.length ?? 0, expected.next ?? 1, text);
  assert.ok((text.match(/^ *hint: /gm)?.length ?? 0) <= 1, text);
}
