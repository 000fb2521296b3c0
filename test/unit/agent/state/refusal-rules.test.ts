import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  faultDelayMs,
  findRefusal,
  forget,
  isChosen,
  isStanding,
  type Offer,
  type Refusal,
  remember,
  retryDelayMs,
  retryNow,
} from '../../../../src/agent/state/refusal-rules.js';
import { digestFromHex } from '../../../../src/core/names.js';

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

describe('#remember', () => {
  it('waits an hour, then doubles up to a day', () => {
    let known: readonly Refusal[] = [];
    const waits = [1, 2, 3, 4, 5, 6, 7].map(() => {
      known = remember(known, refusal(), pace);
      return (known[0]!.retryAtMs - known[0]!.atMs) / hourMs;
    });
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 24, 24]);
    assert.equal(known.length, 1);
  });

  it('keeps releases of one bundle apart by their digest', () => {
    const known = remember(remember([], refusal(digestA), pace), refusal(digestB), pace);
    assert.equal(findRefusal(known, 'dns-edge', digestA)?.tries, 1);
    assert.equal(findRefusal(known, 'dns-edge', digestB)?.tries, 1);
    assert.equal(findRefusal(known, 'access', digestA), undefined);
  });

  it('is bounded: a publisher that is wrong a thousand times fills no disk', () => {
    let known: readonly Refusal[] = [];
    for (let i = 0; i < 1100; i++) {
      const digest = digestFromHex(i.toString(16).padStart(64, '0'))!;
      known = remember(known, refusal(digest, i), pace);
    }
    assert.equal(known.length, 1000);
    assert.equal(known.at(-1)?.atMs, 1099);
  });

  it('is bounded in bytes too: the newest stay', () => {
    let known: readonly Refusal[] = [];
    const message = '\u0007'.repeat(2000);
    for (let i = 0; i < 200; i++) {
      const digest = digestFromHex(i.toString(16).padStart(64, '0'))!;
      known = remember(known, { ...refusal(digest, i), message }, pace);
    }
    assert.ok(Buffer.byteLength(JSON.stringify(known)) <= 1_000_000);
    assert.ok(known.length > 70 && known.length < 90, String(known.length));
    assert.equal(known.at(-1)?.atMs, 199);
  });

  it('never waits longer than a day, or than a first wait that is longer', () => {
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

describe('#forget and #retryNow', () => {
  it('forgets the release that became active and no other', () => {
    const sameFiles = { ...refusal(digestA), bundle: 'dns-core' };
    const known = [refusal(digestA), refusal(digestB), sameFiles].reduce<readonly Refusal[]>(
      (all, one) => remember(all, one, pace),
      [],
    );
    assert.deepEqual(
      forget(known, 'dns-edge', digestA).map((one) => [one.bundle, one.manifestDigest]),
      [
        ['dns-edge', digestB],
        ['dns-core', digestA],
      ],
    );
  });

  it('makes everything due at once and keeps the count of tries', () => {
    const [one] = retryNow(remember([], refusal(), pace));
    assert.equal(one?.retryAtMs, 0);
    assert.equal(one?.tries, 1);
  });
});

describe('a refusal of today', () => {
  const [known] = remember([], { ...refusal(digestA), serial: 6 }, pace);
  const rows: readonly (readonly [string, Offer, boolean])[] = [
    ['its release is what the channel points at', { offered: digestA, activeSerial: 5 }, true],
    ['the same files under a newer serial are refused as well', { offered: digestA, activeSerial: 7 }, true],
    ['the channel went back to it, below what is active', { offered: digestA, activeSerial: 9 }, true],
    ['the channel points at another release', { offered: digestB, activeSerial: 5 }, false],
    ['nothing of its bundle is offered any more', { offered: 'none', activeSerial: 5 }, false],
    ['nobody can say, and nothing newer is active', { offered: 'unknown', activeSerial: 5 }, true],
    ['nobody can say, and nothing is active', { offered: 'unknown' }, true],
    ['nobody can say, and a newer serial is active', { offered: 'unknown', activeSerial: 7 }, false],
  ];
  for (const [name, offer, expected] of rows)
    it(`${expected ? 'is one' : 'is history'}: ${name}`, () => {
      assert.ok(known);
      assert.equal(isStanding(known, offer), expected);
    });

  it('is chosen by its bundle, its serial, or without a word', () => {
    const all = { bundle: 'dns-edge', serial: 6 };
    const choices = [
      {},
      { bundle: 'dns-edge' },
      all,
      { bundle: 'access' },
      { bundle: 'dns-edge', serial: 7 },
    ];
    assert.deepEqual(
      choices.map((choice) => isChosen(all, choice)),
      [true, true, true, false, false],
    );
  });
});

describe('a refusal that names a fault of the host', () => {
  it('is tried again after 1, 2, 4 and 8 minutes, and then as any other', () => {
    const minutes = [1, 2, 3, 4, 5, 6].map((tries) => faultDelayMs(tries, hourMs) / 60_000);
    assert.deepEqual(minutes, [1, 2, 4, 8, 60, 120]);
  });

  it('is never tried later than any other', () => {
    assert.deepEqual(
      [1, 2, 5].map((tries) => faultDelayMs(tries, 1000)),
      [1000, 1000, 1000],
    );
  });

  it('counts on from refusals that named none', () => {
    const once = remember([], refusal(), pace);
    const [known] = remember(once, refusal(), { ...pace, isHostFault: true });
    assert.deepEqual([known?.tries, (known?.retryAtMs ?? 0) - (known?.atMs ?? 0)], [2, 120_000]);
  });
});
