import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  type InstallId,
  judgeInstallId,
  type Marks,
  markNames,
} from '../../../../src/agent/identity/install-id-rules.js';

const [first, second] = ['a'.repeat(32), 'b'.repeat(32)];
const machine = { machineId: '0'.repeat(32), productUuid: 'uuid-1', instanceId: 'i-1' };
const made = (marks: Marks = machine): InstallId => judgeInstallId(undefined, marks, first).next;
const judge = (known: InstallId, read: Marks) => judgeInstallId(known, read, second);

describe('the id of an installation', () => {
  it('is new at a first start', () => {
    const verdict = judgeInstallId(undefined, machine, first);
    assert.deepEqual([verdict.kind, verdict.next.id], ['new', first]);
    assert.deepEqual('changed' in verdict && verdict.changed, []);
  });

  it('is kept on the same machine, to the byte', () => {
    const known = made();
    assert.deepEqual(judge(known, machine), { kind: 'keep', next: known });
  });

  for (const name of markNames)
    it(`changes with ${name}`, () => {
      const verdict = judge(made(), { ...machine, [name]: 'other' });
      assert.deepEqual([verdict.kind, verdict.next.id], ['new', second]);
      assert.deepEqual('changed' in verdict && verdict.changed, [name]);
      // The clone keeps its new id from then on.
      assert.equal(judge(verdict.next, { ...machine, [name]: 'other' }).kind, 'keep');
      assert.equal(judge(verdict.next, machine).kind, 'new');
    });

  it('is kept while a mark cannot be read, and compared when the mark can be read again', () => {
    const known = made();
    for (const name of markNames) {
      const { [name]: _, ...rest } = machine;
      assert.deepEqual(judge(known, rest), { kind: 'keep', next: known });
    }
    assert.deepEqual(judge(known, {}), { kind: 'keep', next: known });
    const later = judge(known, {}).next;
    assert.equal(judge(later, { ...machine, productUuid: 'uuid-2' }).kind, 'new');
  });

  it('adds a mark that can be read for the first time, and keeps the others', () => {
    const known = made({ machineId: machine.machineId });
    const { kind, next } = judge(known, { productUuid: machine.productUuid });
    assert.deepEqual(
      [kind, next.id, next.marks],
      ['keep', first, made({ machineId: machine.machineId, productUuid: machine.productUuid }).marks],
    );
    assert.equal(judge(next, { productUuid: 'uuid-2' }).kind, 'new');
  });

  it('removes the marks of the previous machine', () => {
    const { next } = judge(made(), { machineId: 'other' });
    assert.deepEqual(Object.keys(next.marks), ['machineId']);
  });

  it('contains no mark, and nothing that shows that two hosts share one', () => {
    const marks = fc.record({ machineId: fc.stringMatching(/^[0-9a-f]{32}$/) });
    fc.assert(
      fc.property(marks, (read) => {
        const text = JSON.stringify(judgeInstallId(undefined, read, first).next);
        assert.equal(text.includes(read.machineId), false);
        assert.notEqual(text, JSON.stringify({ ...judgeInstallId(undefined, read, second).next, id: first }));
      }),
    );
    const same = { machineId: 'x', productUuid: 'x', instanceId: 'x' };
    assert.equal(new Set(Object.values(made(same).marks)).size, 3);
  });
});
