import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { openLedger } from '../../../../src/agent/state/ledger-file.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { ledgerWith } from '../../../kit/host/set-ledger.js';

const durable = createDurableFs();
const former = {
  ...{
    writ: 1,
    nextGeneration: 4,
    lastMtimeSeconds: 0,
    accepted: {},
    channels: {},
    holds: [],
    loadDue: true,
  },
  scrub: {
    atMs: 8,
    outcome: 'whole',
    damage: [],
    found: 0,
    counts: { looks: 1, damaged: 0, repaired: 0, failed: 0 },
    failures: 0,
  },
  workers: {
    'dns/a': {
      wanted: 3,
      confirmed: 2,
      state: 'told',
      text: 'ok',
      atMs: 5,
      tell: 'c-1.2',
      toldAtMs: 4,
      tries: 1,
    },
    'dns/b': { wanted: 3, state: 'waiting', text: 'has appeared', atMs: 6 },
    'dns/c': { wanted: 3, confirmed: 3, state: 'confirmed', text: '3', atMs: 7, tell: 'c-1.3', toldAtMs: 7 },
  },
};

describe('a ledger from before 0.1.0', () => {
  it('is read with the present names and all its values', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, JSON.stringify(former));
    const ledger = openLedger(path, durable);
    assert.equal(ledger.condition(), 'intact');
    assert.deepEqual(ledger.read().workers, {
      'dns/a': {
        ...{ wanted: 3, confirmed: 2, state: 'notified', text: 'ok', atMs: 5 },
        ...{ notificationId: 'c-1.2', notifiedAtMs: 4, tries: 1 },
      },
      'dns/b': { wanted: 3, state: 'pending', text: 'has appeared', atMs: 6 },
      'dns/c': {
        ...{ wanted: 3, confirmed: 3, state: 'confirmed', text: '3', atMs: 7 },
        ...{ notificationId: 'c-1.3', notifiedAtMs: 7 },
      },
    });
    assert.deepEqual([ledger.read().loadPending, ledger.read().scrub?.outcome], [true, 'intact']);
  });

  it('contains the present names after its first write', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, JSON.stringify(former));
    const ledger = openLedger(path, durable);
    ledger.write(ledgerWith(ledger.read(), { nextGeneration: 5 }));
    assert.doesNotMatch(fs.readFileSync(path, 'utf8'), /told|"tell"|waiting|loadDue/);
    assert.deepEqual(openLedger(path, durable).read(), ledger.read());
  });

  it('counts as damaged when it is not a ledger', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    for (const text of ['[]', 'null', '7', '{"workers": [1]}', '{"workers": {"a": null}}']) {
      fs.writeFileSync(path, text);
      const found = openLedger(path, durable).condition();
      assert.equal(typeof found === 'object' && found.code, 'STATE_DAMAGED');
    }
  });
});
