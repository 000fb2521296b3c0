// Buffered lines: all are written, in their order, and at the latest at the end of the moment.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatherLines } from '../../../../src/platform/telemetry/gathered-lines.js';

function bench() {
  const written: string[] = [];
  const moments: (() => void)[] = [];
  const lines = gatherLines({ write: (text) => written.push(text) }, (flush) => moments.push(flush));
  return { written, moments, lines };
}

describe('lines of one moment', () => {
  it('are written together at its end, and those of the next moment at its own end', () => {
    const { written, moments, lines } = bench();
    for (const line of ['a\n', 'b\n']) lines.write(line);
    assert.deepEqual([written, moments.length], [[], 1]);
    moments.shift()?.();
    assert.deepEqual(written, ['a\nb\n']);
    lines.write('c\n');
    assert.equal(moments.length, 1);
    moments.shift()?.();
    assert.deepEqual(written, ['a\nb\n', 'c\n']);
  });

  it('are written before its end if there are many, and none twice', () => {
    const { written, moments, lines } = bench();
    lines.write('x'.repeat(65_000));
    lines.write('y'.repeat(600));
    assert.deepEqual(
      written.map((text) => text.length),
      [65_600],
    );
    lines.write('z');
    moments.shift()?.();
    assert.deepEqual(
      written.map((text) => text.length),
      [65_600, 1],
    );
    assert.equal(moments.length, 0);
  });

  it('leave no exit listener after they are written', () => {
    const { moments, lines } = bench();
    const before = process.listenerCount('exit');
    lines.write('a\n');
    assert.equal(process.listenerCount('exit'), before + 1);
    moments.shift()?.();
    assert.equal(process.listenerCount('exit'), before);
  });
});
