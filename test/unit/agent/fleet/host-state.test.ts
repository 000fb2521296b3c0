// The fleet state that a host stores, with a kill at each of its operations on the disk.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type FleetHostState, openHostState } from '../../../../src/agent/fleet/host-state.js';
import { createDurableFs, type OperationObserver } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { Killed, operationTrap } from '../../../kit/disk/operation-trap.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const outcome = (serial: number) => ({
  ...({ trigger: 'poll', outcome: 'activated', atMs: serial } as const),
  bundles: [{ bundle: 'dns-edge', channel: 'stable', serial }],
});
const enrolment = { fleet: 'f', keyId: 'k', url: 'https://fleet/', state: 'accepted' } as const;
const open = (directory: string, observer?: OperationObserver, installId = 'here'): FleetHostState =>
  openHostState({ directory, installId, durable: createDurableFs(observer) });

interface Seen {
  readonly counters: number[];
  readonly keys: string[];
  readonly noted: number[];
}

/** One process run of a host. It records in `seen` what it sends before the next operation. */
function live(directory: string, seen: Seen, observer?: OperationObserver): void {
  const state = open(directory, observer);
  seen.keys.push(state.key.publicKey);
  seen.counters.push(state.nextCounter());
  state.setEnrolment(enrolment);
  state.note(outcome(1));
  seen.noted.push(1);
  seen.counters.push(state.nextCounter(), state.nextCounter(5000));
  state.acknowledge(0, { atMs: 1, news: 'a' });
  state.note(outcome(2));
  seen.noted.push(2);
  seen.counters.push(state.nextCounter());
}

describe('the fleet state of a host', () => {
  it('survives a kill at each operation: no counter twice, one key, every recorded outcome', () => {
    using dir = tempDir();
    const counting = operationTrap();
    live(dir.join('counting'), { counters: [], keys: [], noted: [] }, counting);
    const labels = new Set(counting.seen.map((op) => op.split(':')[0]));
    assert.deepEqual([...labels].sort(), ['fleet.counter', 'fleet.directory', 'fleet.key', 'fleet.outcomes']);
    for (const when of ['before', 'after'] as const) {
      for (const index of counting.seen.keys()) {
        const directory = dir.join(`${when}-${index}`);
        const seen: Seen = { counters: [], keys: [], noted: [] };
        const trap = operationTrap();
        trap.arm(index, when);
        assert.throws(() => live(directory, seen, trap), Killed);
        const step = `${when} ${counting.seen[index]}`;
        const state = open(directory);
        assert.ok(state.nextCounter() > Math.max(0, ...seen.counters), step);
        if (seen.keys.length > 0) assert.equal(state.key.publicKey, seen.keys[0], step);
        const kept = state.outcomes().pending.map(({ bundles }) => bundles[0]?.serial);
        assert.ok(
          seen.noted.every((serial) => kept.includes(serial)),
          step,
        );
      }
    }
  });

  it('belongs to one installation: a clone gets a new key, and reports no outcome of its origin', () => {
    using dir = tempDir();
    const directory = dir.join('fleet');
    const state = open(directory);
    state.setEnrolment(enrolment);
    state.note(outcome(1));
    const clone = open(directory, undefined, 'elsewhere');
    assert.notEqual(clone.key.publicKey, state.key.publicKey);
    assert.equal(clone.enrolment(), undefined);
    assert.deepEqual(clone.outcomes().pending, []);
  });

  it('is not reset if a later version wrote it: no counter is used twice, and no outcome is lost', () => {
    for (const file of ['key.json', 'counter.json', 'outcomes.json']) {
      using dir = tempDir();
      open(dir.path).nextCounter();
      const path = dir.join(file);
      fs.writeFileSync(path, '{"writ":2}');
      throwsCode('STATE_TOO_NEW', () => open(dir.path));
      assert.equal(fs.readFileSync(path, 'utf8'), '{"writ":2}');
    }
  });

  it('flushes one counter in 64', () => {
    using dir = tempDir();
    const trap = operationTrap();
    const state = open(dir.join('fleet'), trap);
    const before = trap.seen.length;
    for (let count = 0; count < 64; count += 1) state.nextCounter();
    assert.equal(trap.seen.slice(before).filter((op) => op === 'fleet.counter:write').length, 1);
    const flushed = trap.seen.length;
    state.acknowledge(0, { atMs: 1, news: 'a' });
    state.acknowledge(0, { atMs: 2, news: 'a' });
    assert.equal(trap.seen.slice(flushed).filter((op) => op === 'fleet.outcomes:write').length, 1);
  });

  it('resets a damaged counter or list, and rejects a damaged key', () => {
    using dir = tempDir();
    const directory = dir.join('fleet');
    const { publicKey } = open(directory).key;
    for (const file of ['counter.json', 'outcomes.json']) fs.writeFileSync(`${directory}/${file}`, '{');
    const state = open(directory);
    assert.equal(state.key.publicKey, publicKey);
    assert.equal(state.nextCounter(), 1);
    fs.writeFileSync(`${directory}/key.json`, '{"writ":1}');
    throwsCode('FLEET_STATE_DAMAGED', () => open(directory));
    assert.equal(fs.readFileSync(`${directory}/key.json`, 'utf8'), '{"writ":1}');
  });

  it('is readable by its owner only', () => {
    using dir = tempDir();
    const directory = dir.join('fleet');
    open(directory);
    assert.equal(fs.statSync(directory).mode & 0o777, 0o700);
    assert.equal(fs.statSync(`${directory}/key.json`).mode & 0o777, 0o600);
  });
});
