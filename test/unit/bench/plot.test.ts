// The plot of growth: where its points are, and that it is one well-formed picture.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { drawPlot, short } from '../../../bench/report/plot.js';

const points = [
  { x: 100, y: 1 },
  { x: 1000, y: 2 },
  { x: 10_000, y: 4 },
];

function placesIn(svg: string): { left: number; top: number }[] {
  return [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)"/g)].map(([, left, top]) => ({
    left: Number(left),
    top: Number(top),
  }));
}

describe('a panel', () => {
  it('has equal steps for equal factors, and heights from zero', () => {
    const [a, b, c] = placesIn(drawPlot([{ title: 't', unit: 's', points }]));
    assert.ok(a && b && c);
    assert.ok(Math.abs(b.left - a.left - (c.left - b.left)) <= 0.2);
    const base = 180 - 26;
    assert.ok(Math.abs((base - c.top) / (base - b.top) - 2) < 0.02);
    assert.ok(Math.abs((base - b.top) / (base - a.top) - 2) < 0.02);
  });

  it('draws its points in the order of their sizes, whatever order they came in', () => {
    const [turned, straight] = [[...points].reverse(), points].map((given) =>
      drawPlot([{ title: 't', unit: 's', points: given }]),
    );
    assert.equal(turned, straight);
  });

  it('stands one point, and figures that are all zero', () => {
    for (const alone of [
      [{ x: 5, y: 0 }],
      [
        { x: 1, y: 0 },
        { x: 2, y: 0 },
      ],
    ]) {
      const svg = drawPlot([{ title: 't', unit: 's', points: alone }]);
      assert.doesNotMatch(svg, /NaN|Infinity/);
      assert.equal(placesIn(svg).length, alone.length);
    }
  });

  it('shows text as text', () => {
    const svg = drawPlot([{ title: 'a < b & c', unit: '>', points }]);
    assert.ok(svg.includes('a &lt; b &amp; c') && svg.includes('>&gt;<'));
  });
});

describe('the plot', () => {
  it('has four panels in a row, and none without points', () => {
    const panel = { title: 't', unit: 's', points };
    const svg = drawPlot([...Array.from({ length: 5 }, () => panel), { ...panel, points: [] }]);
    assert.match(svg, /viewBox="0 0 960 360"/);
    assert.match(svg, /<title>[^<]+<\/title>/);
    assert.deepEqual(
      [...svg.matchAll(/translate\((\d+ \d+)\)/g)].map(([, place]) => place),
      ['0 0', '240 0', '480 0', '720 0', '0 180'],
    );
  });

  it('is one element that closes what it opens, the same at every drawing', () => {
    const svg = drawPlot([{ title: 't', unit: 's', points }]);
    assert.ok(svg.startsWith('<svg ') && svg.endsWith('</svg>\n'));
    assert.equal(svg.split('<g ').length, svg.split('</g>').length);
    assert.equal(svg, drawPlot([{ title: 't', unit: 's', points }]));
  });

  it('writes sizes in three digits', () => {
    assert.deepEqual([0, 0.012, 1, 100, 1000, 27_778, 1e6, 1e9].map(short), [
      '0',
      '0.012',
      '1',
      '100',
      '1k',
      '27.8k',
      '1M',
      '1G',
    ]);
  });
});
