// What a host must look like after a pull that failed: the policy as it was, to the byte, nothing left over, and
// an answer that says so. Owns the promise that every fault is held to; which fault it was is the test's.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { directoryState } from './directory-state.js';

export type Places = Pick<HostPaths, 'policy' | 'staging' | 'journal'>;

/**
 * @param later where to look afterwards, if the state lies elsewhere by then
 * @returns an assertion that the policy still stands as it does now, with nothing in flight
 */
export function standingPolicy(places: Places, later = places): () => void {
  const before = directoryState(places.policy);
  return () => {
    assert.deepEqual(directoryState(later.policy), before);
    assert.deepEqual(readdirSync(later.staging), []);
    assert.equal(existsSync(later.journal), false);
  };
}

/** Holds the last block of a command to: the word, the code, what stays active, and one way to go on. */
export function assertSpeaks(
  text: string,
  expected: { readonly word: string; readonly code: string; readonly next?: number },
): void {
  assert.ok(text.startsWith(expected.word), text);
  assert.ok(text.includes(`[${expected.code}]`), text);
  assert.match(text, /stays active/);
  assert.equal(text.match(/^Next: /gm)?.length ?? 0, expected.next ?? 1, text);
  assert.ok((text.match(/^ *hint: /gm)?.length ?? 0) <= 1, text);
}
