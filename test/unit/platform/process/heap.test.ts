import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createPieceCollector } from '../../../../src/platform/process/heap.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';

/** A burst of short-lived objects. Many of them survive a collection, so that the young generation would grow. */
const burst = `
  const kept = [];
  for (let i = 0; i < 3_000_000; i++) { kept.push({ i, text: 'x' + i }); if (kept.length > 60_000) kept.length = 0; }
  const space = v8.getHeapSpaceStatistics().find((one) => one.space_name === 'new_space');
  console.log(space.space_size);
`;

describe('#keepHeapSmall', longCase, () => {
  it('keeps the young generation from growing', async () => {
    const heap = new URL('../../../../src/platform/process/heap.js', import.meta.url).href;
    const size = async (line: string): Promise<number> => {
      const result = await runNodeScript(
        `import v8 from 'node:v8'; import { keepHeapSmall } from '${heap}'; ${line} ${burst}`,
      );
      assert.ok(result.kind === 'exited' && result.exitCode === 0, JSON.stringify(result));
      return Number(result.stdout);
    };
    const grown = await size('');
    const kept = await size('keepHeapSmall();');
    assert.ok(kept > 0 && kept < grown, `${kept} is below ${grown}`);
  });
});

describe('#createPieceCollector', () => {
  it('collects once for every four megabytes of pieces', () => {
    let collections = 0;
    const used = createPieceCollector(() => {
      collections += 1;
    });
    for (let piece = 0; piece < 399; piece++) used(10_000);
    assert.equal(collections, 0);
    used(10_000);
    assert.equal(collections, 1);
    for (let piece = 0; piece < 400; piece++) used(10_000);
    assert.equal(collections, 2);
  });

  it('frees unused chunks, and exposes no collector to other code', () => {
    const used = createPieceCollector();
    const before = process.memoryUsage().arrayBuffers;
    for (let piece = 0; piece < 2000; piece++) used(Buffer.allocUnsafeSlow(64_000).length);
    const waiting = process.memoryUsage().arrayBuffers - before;
    assert.ok(waiting < 30_000_000, `${waiting} bytes wait of 128,000,000`);
    assert.equal('gc' in globalThis, false);
  });
});
