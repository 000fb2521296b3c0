// The times of the contact attempts after a swap and after a restore, and the verdict of their answers. Pure rules.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isContactOpen,
  lostAfterAttempt,
  nextAttempt,
  nextLateAttempt,
  nextLostStep,
  startContact,
} from '../../../../src/agent/settled/contact-rules.js';
import type { BakeContact, LostContact } from '../../../../src/agent/state/ledger.js';
import type { Digest } from '../../../../src/core/names.js';

const second = 1000;
const minute = 60_000;
const swapMs = Date.UTC(2026, 10, 1);
const at = (afterMs: number) => ({ startedAtMs: swapMs, nowMs: swapMs + afterMs });

function silent(failed: number, lastAfterMs?: number): BakeContact {
  const last = lastAfterMs === undefined ? {} : { lastAtMs: swapMs + lastAfterMs };
  return { failed, hadContact: true, tries: 0, ...last };
}

function lost(more: Partial<LostContact> = {}): LostContact {
  const manifestDigest: LostContact['manifestDigest'] = `sha256:${'0'.repeat(64)}` as Digest;
  const release = { serial: 2, manifestDigest };
  return { ...release, atMs: swapMs, hadContact: true, tries: 0, state: 'asking', ...more };
}

describe('the attempts after a swap', () => {
  it('are made 5, 15, 30 and 60 s after it', () => {
    const plan = [5, 15, 30, 60].map((after, failed) => {
      const last = failed === 0 ? undefined : ([5, 15, 30][failed - 1] ?? 0) * second;
      const before = nextAttempt(silent(failed, last), at(after * second - 1));
      return [before, nextAttempt(silent(failed, last), at(after * second)).kind];
    });
    assert.deepEqual(
      plan,
      [5, 15, 30, 60].map((after) => [{ kind: 'wait', untilMs: swapMs + after * second }, 'ask']),
    );
  });

  it('lose contact after four failures, and not after three', () => {
    assert.equal(nextAttempt(silent(4, 60 * second), at(60 * second)).kind, 'lost');
    assert.equal(nextAttempt(silent(3, 30 * second), at(59 * second)).kind, 'wait');
  });

  it('are made later, one by one, by an agent that did not run', () => {
    assert.equal(nextAttempt(silent(0), at(5 * minute)).kind, 'ask');
    assert.deepEqual(nextAttempt(silent(1, 5 * minute), at(5 * minute)), {
      kind: 'wait',
      untilMs: swapMs + 5 * minute + 5 * second,
    });
  });

  it('do not wait for a clock that was set back', () => {
    assert.deepEqual(nextAttempt(silent(1, 3600 * second), at(-minute)), {
      kind: 'wait',
      untilMs: swapMs - minute + 15 * second,
    });
    assert.equal(nextLateAttempt(silent(4, 3600 * second), swapMs).kind, 'ask');
  });

  it('keep the bake time open as long as an agent makes them', () => {
    assert.equal(isContactOpen(silent(0), at(119 * second)), true);
    assert.equal(isContactOpen(silent(0), at(120 * second)), false);
    assert.equal(isContactOpen(silent(2, minute), at(179 * second)), true);
    assert.equal(isContactOpen(undefined, at(0)), false);
  });
});

describe('contact after a restore', () => {
  const reached = (afterMs: number) => ({ isReached: true, askedAtMs: swapMs + afterMs });

  it('is a verdict on the release when it returns within 60 s, and not one second later', () => {
    assert.equal(lostAfterAttempt(lost(), reached(minute)).state, 'held');
    assert.equal(lostAfterAttempt(lost(), reached(minute + 1)).state, 'returned');
    assert.equal(lostAfterAttempt(lost({ state: 'away' }), reached(2 * minute)).state, 'returned');
  });

  it('is not a verdict if the server had not answered before the swap', () => {
    assert.equal(lostAfterAttempt(lost({ hadContact: false }), reached(5 * second)).state, 'returned');
  });

  it('is tried every 5 s, then every 30 s', () => {
    const asked = lost({ lastAtMs: swapMs + second });
    assert.equal(nextLostStep(asked, swapMs + 6 * second - 1).kind, 'wait');
    assert.equal(nextLostStep(asked, swapMs + 6 * second).kind, 'ask');
    assert.equal(nextLostStep(asked, swapMs + minute + 1).kind, 'away');
    const away = lost({ state: 'away', lastAtMs: swapMs + minute });
    assert.equal(nextLostStep(away, swapMs + 90 * second - 1).kind, 'wait');
    assert.equal(nextLostStep(away, swapMs + 90 * second).kind, 'ask');
  });

  it('is awaited for 10, 20 and 40 minutes', () => {
    const steps = [10, 20, 40].map((minutes, tries) => {
      const away = lost({ state: 'away', tries, lastAtMs: swapMs + minutes * minute - 1 });
      return [minutes * minute - 1, minutes * minute].map((ms) => nextLostStep(away, swapMs + ms).kind);
    });
    assert.deepEqual(steps, Array(3).fill(['wait', 'reactivate']));
  });

  it('is not tried after a verdict, nor for a release that may become active again', () => {
    for (const state of ['held', 'returned'] as const)
      assert.equal(nextLostStep(lost({ state }), swapMs + 60 * minute).kind, 'none');
  });
});

describe('a release that becomes active', () => {
  it('is not observed if the server did not answer before the swap', () => {
    assert.equal(startContact(false, undefined), undefined);
    assert.deepEqual(startContact(true, undefined), { failed: 0, hadContact: true, tries: 0 });
  });

  it('is observed the first two times that it becomes active again, and stays the third time', () => {
    const tries = [0, 1, 2].map((known) => startContact(false, lost({ state: 'away', tries: known }))?.tries);
    assert.deepEqual(tries, [1, 2, undefined]);
  });

  it('is observed again when an operator activates it after a verdict', () => {
    assert.equal(startContact(true, lost({ state: 'held', tries: 2 }))?.tries, 0);
  });
});
