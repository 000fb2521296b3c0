import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chooseHolder } from '../../../../src/workers/identity/listening-rules.js';

describe('the process of a listening socket', () => {
  it('is its only holder', () => {
    assert.deepEqual(chooseHolder([{ pid: 40, ancestors: [1] }]), { kind: 'chosen', pid: 40 });
  });

  it('is the master of which all the others are descendants', () => {
    const master = { pid: 40, ancestors: [1] };
    const children = [
      { pid: 41, ancestors: [40, 1] },
      { pid: 42, ancestors: [41, 40, 1] },
    ];
    assert.deepEqual(chooseHolder([...children, master]), { kind: 'chosen', pid: 40 });
  });

  it('is unknown where a supervisor that holds the socket is no ancestor of the others', () => {
    const chosen = chooseHolder([
      { pid: 40, ancestors: [1] },
      { pid: 50, ancestors: [1] },
    ]);
    assert.equal(chosen.kind, 'unknown');
    assert.match(chosen.kind === 'unknown' ? chosen.reason : '', /^processes 40, 50 have its socket/);
  });

  it('is unknown where process 1 has it, although that is an ancestor of all', () => {
    const chosen = chooseHolder([
      { pid: 1, ancestors: [] },
      { pid: 40, ancestors: [1] },
    ]);
    assert.deepEqual(chosen.kind === 'unknown' ? chosen.hint : '', 'give `process.unit`');
    assert.equal(chooseHolder([{ pid: 1, ancestors: [] }]).kind, 'unknown');
  });
});
