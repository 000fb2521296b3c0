import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type AgeFacts,
  type AgeVerdict,
  judgeAge,
  rememberAccepted,
} from '../../../../src/agent/select/age-rules.js';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import type { ReleaseInfo } from '../../../../src/core/release/release.js';
import { maxAcceptedSerials } from '../../../../src/core/release/release.js';

const nowMs = Date.UTC(2026, 10, 1);

function digestOf(letter: string): Digest {
  const digest = digestFromHex(letter.repeat(64));
  assert.ok(digest);
  return digest;
}

function release(serial: number, changes: Partial<ReleaseInfo> & { content?: string } = {}): ReleaseInfo {
  const { content = 'a', ...rest } = changes;
  return {
    bundle: 'dns-edge',
    channel: 'stable',
    serial,
    revision: '',
    createdAtMs: nowMs - 1000,
    manifest: { digest: digestOf(content), length: 10 },
    withdrawn: [],
    ...rest,
  };
}

function known(serial: number, content = 'b') {
  return { serial, manifestDigest: digestOf(content) };
}

function judge(offered: ReleaseInfo, facts: Partial<AgeFacts> = {}): AgeVerdict {
  return judgeAge({ offered, accepted: [], channelChanged: false, nowMs, ...facts });
}

function codeOf(verdict: AgeVerdict): string {
  return verdict.kind === 'refused' ? verdict.code : verdict.kind;
}

describe('judgeAge', () => {
  it('accepts the first release of a host', () => {
    assert.equal(codeOf(judge(release(1))), 'new');
  });

  it('accepts a higher serial', () => {
    assert.equal(codeOf(judge(release(8), { highest: known(7), active: known(7), accepted: [6, 7] })), 'new');
  });

  it('recognizes the active release by serial and digest', () => {
    assert.equal(codeOf(judge(release(7), { highest: known(7, 'a'), active: known(7, 'a') })), 'current');
  });

  it('finds the active release current although a higher one was accepted before', () => {
    const facts = { highest: known(8), active: known(7, 'a'), accepted: [7, 8] };
    assert.equal(codeOf(judge(release(7), facts)), 'current');
  });

  it('accepts the highest accepted release again after another one became active', () => {
    const facts = { highest: known(8, 'a'), active: known(7), accepted: [7, 8] };
    assert.equal(codeOf(judge(release(8), facts)), 'new');
  });

  it('refuses a serial below the highest accepted', () => {
    const verdict = judge(release(6), { highest: known(7), accepted: [6, 7] });
    assert.equal(codeOf(verdict), 'SERIAL_ROLLBACK');
    assert.ok(verdict.kind === 'refused');
    assert.equal(verdict.facts['actual'], 6);
  });

  it('refuses a serial below the active one also if the ledger is empty', () => {
    assert.equal(codeOf(judge(release(6), { active: known(7) })), 'SERIAL_ROLLBACK');
  });

  it('accepts a lower serial when all accepted serials above it are withdrawn', () => {
    const offered = release(5, { withdrawn: [6, 7] });
    assert.equal(codeOf(judge(offered, { highest: known(7), active: known(7), accepted: [5, 6, 7] })), 'new');
  });

  it('refuses a lower serial when an accepted serial above it is not withdrawn', () => {
    const facts = { highest: known(7), active: known(7), accepted: [5, 6, 7] };
    assert.equal(codeOf(judge(release(5, { withdrawn: [7] }), facts)), 'SERIAL_ROLLBACK');
    assert.equal(codeOf(judge(release(5, { withdrawn: [6] }), facts)), 'SERIAL_ROLLBACK');
  });

  it('judges only the serials that this host accepted', () => {
    const facts = { highest: known(9), active: known(9), accepted: [3, 9] };
    assert.equal(codeOf(judge(release(5, { withdrawn: [9] }), facts)), 'new');
  });

  it('refuses the same serial with other content, as highest and as active', () => {
    assert.equal(codeOf(judge(release(7), { highest: known(7) })), 'SERIAL_REUSED');
    assert.equal(codeOf(judge(release(7), { active: known(7) })), 'SERIAL_REUSED');
  });

  it('refuses a reused serial even when it is withdrawn or the channel changed', () => {
    const offered = release(7, { withdrawn: [7, 8] });
    assert.equal(codeOf(judge(offered, { active: known(7), channelChanged: true })), 'SERIAL_REUSED');
  });

  it('accepts a serial below the active one after the channel was changed', () => {
    assert.equal(codeOf(judge(release(5), { active: known(9), channelChanged: true })), 'new');
  });

  it('refuses a serial below an accepted serial of the new channel', () => {
    const facts = { active: known(9), highest: known(6), accepted: [6], channelChanged: true };
    assert.equal(codeOf(judge(release(5), facts)), 'SERIAL_ROLLBACK');
  });

  it('refuses a serial below the oldest one of a full list of accepted serials', () => {
    const accepted = Array.from({ length: maxAcceptedSerials }, (_, index) => 100 + index);
    const offered = release(50, { withdrawn: accepted });
    const facts = { accepted, highest: known(accepted.at(-1) ?? 0) };
    assert.equal(codeOf(judge(offered, facts)), 'SERIAL_ROLLBACK');
    assert.equal(codeOf(judge(offered, { ...facts, accepted: accepted.slice(1) })), 'new');
  });

  it('refuses a createdAt more than ten minutes in the future, and none in the past', () => {
    assert.equal(codeOf(judge(release(1, { createdAtMs: 0 }))), 'new');
    assert.equal(codeOf(judge(release(1, { createdAtMs: nowMs + 600_000 }))), 'new');
    assert.equal(codeOf(judge(release(1, { createdAtMs: nowMs + 600_001 }))), 'CREATED_IN_FUTURE');
  });

  it('keeps an active release when the clock was set back to before its creation', () => {
    const offered = release(7, { createdAtMs: nowMs + 10 * 600_000 });
    assert.equal(codeOf(judge(offered, { active: known(7, 'a') })), 'current');
  });
});

describe('rememberAccepted', () => {
  it('keeps each serial once, in ascending order', () => {
    assert.deepEqual(rememberAccepted([3, 9], 5), [3, 5, 9]);
    assert.deepEqual(rememberAccepted([3, 9], 9), [3, 9]);
  });

  it('removes the oldest serials above its limit', () => {
    const full = Array.from({ length: maxAcceptedSerials }, (_, index) => index + 1);
    const next = rememberAccepted(full, maxAcceptedSerials + 1);
    assert.equal(next.length, maxAcceptedSerials);
    assert.equal(next[0], 2);
  });
});
