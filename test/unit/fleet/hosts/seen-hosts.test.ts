// Merges a keepalive that is not written yet with the row of its host: the higher counter of the two decides.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SeenHosts } from '../../../../src/fleet/hosts/seen-hosts.js';

type Row = Parameters<ReturnType<SeenHosts['overlay']>>[0];

describe('a keepalive that is not written yet', () => {
  it('is laid over an older row, and not over one that another server wrote since', () => {
    const seen = new SeenHosts();
    seen.note({ key_id: 'a', counter: 5, body_digest: 'd', last_seen_ms: 50, every_ms: 1, skew_ms: 0 });
    const overlay = seen.overlay(['a', 'b']);
    const laid = (key_id: string, counter: number): unknown[] => {
      const row = overlay({ key_id, counter, last_seen_ms: 0 } as Row);
      return [row.counter, row.last_seen_ms];
    };
    assert.deepEqual(laid('a', 4), [5, 50]);
    assert.deepEqual(laid('a', 9), [9, 0]);
    assert.deepEqual(laid('b', 4), [4, 0]);
  });
});
