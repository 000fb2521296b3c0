import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type BundleOffer,
  findRefusal,
  hostFaultDelayMs,
  isCurrentRefusal,
  matchesChoice,
  type RefusalEntry,
  retryDelayMs,
  withImmediateRetry,
  withoutRefusal,
  withRefusal,
} from '../../../../src/agent/state/refusal-rules.js';
import { digestFromHex } from '../../../../src/core/names.js';
import { longCase } from '../../../kit/assert/long-case.js';

const hourMs = 3_600_000;
const pace = { firstMs: hourMs, isHostFault: false };
const digestA = digestFromHex('a'.repeat(64))!;
const digestB = digestFromHex('b'.repeat(64))!;
const refusal = (manifestDigest = digestA, atMs = 0) => ({
  bundle: 'dns-edge',
  channel: 'stable',
  serial: 42,
  manifestDigest,
  code: 'CHECK_FAILED' as const,
  message: 'zones parse',
  atMs,
  refusedWith: [],
});

describe('#withRefusal', () => {
  it('delays the retry by an hour, then doubles the delay up to a day', () => {
    let known: readonly RefusalEntry[] = [];
    const waits = [1, 2, 3, 4, 5, 6, 7].map(() => {
      known = withRefusal(known, refusal(), pace);
      return (known[0]!.retryAtMs - known[0]!.atMs) / hourMs;
    });
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 24, 24]);
    assert.equal(known.length, 1);
  });

  it('counts releases of one bundle separately by their digest', () => {
    const known = withRefusal(withRefusal([], refusal(digestA), pace), refusal(digestB), pace);
    assert.equal(findRefusal(known, 'dns-edge', digestA)?.tries, 1);
    assert.equal(findRefusal(known, 'dns-edge', digestB)?.tries, 1);
    assert.equal(findRefusal(known, 'access', digestA), undefined);
  });

  it('keeps at most 1000 refusals, so that a publisher cannot fill the disk', longCase, () => {
    let known: readonly RefusalEntry[] = [];
    for (let i = 0; i < 1100; i++) {
      const digest = digestFromHex(i.toString(16).padStart(64, '0'))!;
      known = withRefusal(known, refusal(digest, i), pace);
    }
    assert.equal(known.length, 1000);
    assert.equal(known.at(-1)?.atMs, 1099);
  });

  it('keeps at most a megabyte, with the newest refusals', () => {
    let known: readonly RefusalEntry[] = [];
    const message = '\u0007'.repeat(2000);
    for (let i = 0; i < 200; i++) {
      const digest = digestFromHex(i.toString(16).padStart(64, '0'))!;
      known = withRefusal(known, { ...refusal(digest, i), message }, pace);
    }
    assert.ok(Buffer.byteLength(JSON.stringify(known)) <= 1_000_000);
    assert.ok(known.length > 70 && known.length < 90, String(known.length));
    assert.equal(known.at(-1)?.atMs, 199);
  });

  it('never delays longer than a day, or than a longer first delay', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 1, max: 1e12 }),
        (tries, firstMs) => {
          const wait = retryDelayMs(tries, firstMs);
          assert.ok(wait >= Math.min(firstMs, 24 * hourMs) && wait <= Math.max(firstMs, 24 * hourMs));
        },
      ),
    );
  });
});

describe('#withoutRefusal and #withImmediateRetry', () => {
  it('removes the release that became active and no other', () => {
    const sameFiles = { ...refusal(digestA), bundle: 'dns-core' };
    const known = [refusal(digestA), refusal(digestB), sameFiles].reduce<readonly RefusalEntry[]>(
      (all, one) => withRefusal(all, one, pace),
      [],
    );
    assert.deepEqual(
      withoutRefusal(known, 'dns-edge', digestA).map((one) => [one.bundle, one.manifestDigest]),
      [
        ['dns-edge', digestB],
        ['dns-core', digestA],
      ],
    );
  });

  it('makes every release due at once and keeps its count of refusals', () => {
    const [one] = withImmediateRetry(withRefusal([], refusal(), pace));
    assert.equal(one?.retryAtMs, 0);
    assert.equal(one?.tries, 1);
  });
});

describe('a refusal', () => {
  const [known] = withRefusal([], { ...refusal(digestA), serial: 6 }, pace);
  const rows: readonly (readonly [string, BundleOffer, boolean])[] = [
    ['its release is the head of the channel', { offered: digestA, activeSerial: 5 }, true],
    ['the head has the same files under a newer serial', { offered: digestA, activeSerial: 7 }, true],
    [
      'the head is the refused release, older than the active one',
      { offered: digestA, activeSerial: 9 },
      true,
    ],
    ['the head is another release', { offered: digestB, activeSerial: 5 }, false],
    ['no release of its bundle is offered any more', { offered: 'none', activeSerial: 5 }, false],
    ['the head is unknown, and no newer release is active', { offered: 'unknown', activeSerial: 5 }, true],
    ['the head is unknown, and no release is active', { offered: 'unknown' }, true],
    ['the head is unknown, and a newer serial is active', { offered: 'unknown', activeSerial: 7 }, false],
  ];
  for (const [name, offer, expected] of rows)
    it(`is ${expected ? 'current' : 'outdated'} when ${name}`, () => {
      assert.ok(known);
      assert.equal(isCurrentRefusal(known, offer), expected);
    });

  it('matches a choice by its bundle, by its serial, or an empty choice', () => {
    const all = { bundle: 'dns-edge', serial: 6 };
    const choices = [
      {},
      { bundle: 'dns-edge' },
      all,
      { bundle: 'access' },
      { bundle: 'dns-edge', serial: 7 },
    ];
    assert.deepEqual(
      choices.map((choice) => matchesChoice(all, choice)),
      [true, true, true, false, false],
    );
  });
});

describe('a refusal that names a fault of the host', () => {
  it('is retried after 1, 2, 4 and 8 minutes, and then as other refusals', () => {
    const minutes = [1, 2, 3, 4, 5, 6].map((tries) => hostFaultDelayMs(tries, hourMs) / 60_000);
    assert.deepEqual(minutes, [1, 2, 4, 8, 60, 120]);
  });

  it('is never retried later than another refusal', () => {
    assert.deepEqual(
      [1, 2, 5].map((tries) => hostFaultDelayMs(tries, 1000)),
      [1000, 1000, 1000],
    );
  });

  it('continues the count of refusals without a host fault', () => {
    const once = withRefusal([], refusal(), pace);
    const [known] = withRefusal(once, refusal(), { ...pace, isHostFault: true });
    assert.deepEqual([known?.tries, (known?.retryAtMs ?? 0) - (known?.atMs ?? 0)], [2, 120_000]);
  });
});
