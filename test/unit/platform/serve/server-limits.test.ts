import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serverLimits } from '../../../../src/platform/serve/server-limits.js';

describe('the connections of a server', () => {
  const cases = [
    { maxOpenFiles: 1_048_576, given: {}, all: 10_000, each: 2000 },
    { maxOpenFiles: Number.POSITIVE_INFINITY, given: {}, all: 10_000, each: 2000 },
    { maxOpenFiles: 1024, given: {}, all: 480, each: 240 },
    { maxOpenFiles: 60, given: {}, all: 1, each: 1 },
    { maxOpenFiles: 1024, given: { maxConnectionsPerAddress: 400 }, all: 480, each: 400 },
    {
      maxOpenFiles: 20_000,
      given: { maxConnectionsPerAddress: Number.POSITIVE_INFINITY },
      all: 9968,
      each: Number.POSITIVE_INFINITY,
    },
    { maxOpenFiles: 20_000, given: { maxConnections: 10 }, all: 10, each: 5 },
  ];
  for (const { maxOpenFiles, given, all, each } of cases) {
    it(`are ${all}, ${each} of one address, with ${maxOpenFiles} descriptors and ${JSON.stringify(given)}`, () => {
      const limits = serverLimits(given, maxOpenFiles);
      assert.deepEqual([limits.maxConnections, limits.maxConnectionsPerAddress], [all, each]);
    });
  }
});
