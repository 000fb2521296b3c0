// The bar of releases in use: every part is visible, and all parts together fill the bar.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { barsOf, barWidth, curvePath } from '../../../../src/fleet/page/chart-rules.js';
import { release } from './planted-answers.js';

describe('a bar of releases', () => {
  it('shows one host in a million', () => {
    const [bar] = barsOf([
      release(42, { confirmed: 999_998, unconfirmed: 1 }),
      release(41, { confirmed: 1, place: 'tail' }),
    ]);
    assert.equal(bar?.hosts, 1_000_000);
    assert.deepEqual(
      bar?.segments.map(({ tone, label, width }) => [tone, label, width >= 6]),
      [
        ['confirmed', 'serial 42 confirmed', true],
        ['unconfirmed', 'serial 42 unconfirmed', true],
        ['tail', 'serial 41', true],
      ],
    );
    const last = bar?.segments.at(-1);
    assert.ok(Math.abs((last?.x ?? 0) + (last?.width ?? 0) - barWidth) < 0.5);
  });

  it('begins with the newest release, and merges all but eight older releases', () => {
    const tail = Array.from({ length: 20 }, (_, index) =>
      release(index + 1, { confirmed: 1, place: 'tail' }),
    );
    const [bar] = barsOf([...tail, release(42, { confirmed: 5 })]);
    assert.equal(bar?.releases[0]?.serial, 42);
    assert.equal(bar?.segments.length, 1 + 8 + 1);
    assert.deepEqual([bar?.segments.at(-1)?.label, bar?.segments.at(-1)?.hosts], ['12 older', 12]);
  });

  it('is one for each bundle and channel, by name', () => {
    const bars = barsOf([
      release(2, { bundle: 'dns', channel: 'stable', confirmed: 1 }),
      release(1, { bundle: 'dns', channel: 'canary', confirmed: 1 }),
      release(1, { bundle: 'access', confirmed: 1 }),
    ]);
    assert.deepEqual(
      bars.map(({ bundle, channel }) => `${bundle} ${channel}`),
      ['access stable', 'dns canary', 'dns stable'],
    );
    assert.deepEqual(barsOf([]), []);
  });

  it('has no part for a release that no host runs any more', () => {
    assert.deepEqual(barsOf([release(42)])[0]?.segments, []);
  });
});

describe('the curve of a release', () => {
  const box = { width: 1000, height: 200, hosts: 4, untilMs: 200 };

  it('has steps, and continues up to now', () => {
    const points = [
      { atMs: 100, confirmed: 1 },
      { atMs: 150, confirmed: 3 },
    ];
    assert.equal(curvePath(points, box), 'M0 200H0V150H500V50H1000');
  });

  it('stays within its size when hosts leave, clocks jump, or all hosts confirm at once', () => {
    assert.equal(curvePath([{ atMs: 200, confirmed: 9 }], { ...box, untilMs: 0 }), 'M0 200H0V0H1000');
    assert.equal(curvePath([], box), '');
  });
});
