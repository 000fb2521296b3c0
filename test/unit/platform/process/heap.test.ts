import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runScript } from '../../../kit/cli/child-script.js';

/** A burst of short-lived objects of which many live through a collection: it makes the nursery grow. */
const burst = `
  const kept = [];
  for (let i = 0; i < 3_000_000; i++) { kept.push({ i, text: 'x' + i }); if (kept.length > 60_000) kept.length = 0; }
  const space = v8.getHeapSpaceStatistics().find((one) => one.space_name === 'new_space');
  console.log(space.space_size);
`;

describe('#keepHeapSmall', () => {
  it('keeps the young generation from growing', async () => {
    const heap = new URL('../../../../src/platform/process/heap.js', import.meta.url).href;
    const size = async (line: string): Promise<number> => {
      const result = await runScript(
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
