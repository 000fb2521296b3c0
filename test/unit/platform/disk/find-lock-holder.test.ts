// Finds the holder of a lock by the kernel and by the note in the file; never names a dead process.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  encodeLockNote,
  holdsFlock,
  judgeLockHolder,
  type LockNote,
  parseLockNote,
} from '../../../../src/platform/disk/find-lock-holder.js';

const note: LockNote = { what: 'agent', pid: 4711, startTicks: 99, sinceMs: Date.UTC(2026, 10, 21, 16, 30) };
const writer = { pid: 4711, startTicks: 99, command: 'node' };

describe('the note of a lock', () => {
  it('is one readable line that is parsed again', () => {
    const text = encodeLockNote(note);
    assert.equal(text, 'agent (pid 4711, started 99) since 2026-11-21T16:30:00.000Z\n');
    assert.deepEqual(parseLockNote(text), note);
  });

  it('is ignored when it is incomplete', () => {
    const text = encodeLockNote(note);
    for (let length = 0; length < text.length; length += 1) {
      assert.equal(parseLockNote(text.slice(0, length)), undefined, `${length} bytes`);
    }
    assert.equal(parseLockNote(`${text}${text.slice(5)}`), undefined, 'a longer one below');
    assert.equal(parseLockNote(text.replace('2026-11-21', '2026-99-99')), undefined);
    assert.equal(parseLockNote('agent (pid 4711)\n'), undefined);
  });
});

describe('judgeLockHolder', () => {
  it('names the work of the holder and its start', () => {
    assert.deepEqual(judgeLockHolder({ note, holders: [writer] }), {
      text: 'agent (pid 4711)',
      what: 'agent',
      pid: 4711,
      command: 'node',
      sinceMs: note.sinceMs,
      alive: 'yes',
    });
  });

  it('recognizes the writer by its start when its pid differs in this namespace', () => {
    const seen = judgeLockHolder({ note, holders: [{ ...writer, pid: 31_000 }] });
    assert.deepEqual([seen.text, seen.pid], ['agent (pid 31000)', 31_000]);
  });

  it('ignores the note of a process that is not the holder', () => {
    const child = { pid: 5000, startTicks: 120, command: 'sleep' };
    assert.deepEqual(judgeLockHolder({ note, holders: [child] }), {
      text: 'sleep (pid 5000)',
      pid: 5000,
      command: 'sleep',
      alive: 'yes',
    });
    assert.equal(
      judgeLockHolder({ note: undefined, holders: [{ pid: 5, startTicks: 1 }] }).text,
      'a process (pid 5)',
    );
  });

  it('names a running writer when no holder is visible', () => {
    assert.equal(judgeLockHolder({ note, holders: [], noted: writer }).text, 'agent (pid 4711)');
  });

  it('names no process when none is visible', () => {
    const holder = judgeLockHolder({ note, holders: [] });
    assert.deepEqual(holder, { text: 'a process that cannot be seen from here', alive: 'unknown' });
  });
});

describe('holdsFlock', () => {
  const fdinfo = (lock: string) => `pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t1234\n${lock}`;

  it('reads the locks of a descriptor, and only flocks on this file', () => {
    assert.ok(holdsFlock(fdinfo('lock:\t1: FLOCK  ADVISORY  WRITE 359 fe:00:1234 0 EOF\n'), 1234n));
    assert.ok(!holdsFlock(fdinfo('lock:\t1: FLOCK  ADVISORY  WRITE 359 fe:00:12345 0 EOF\n'), 1234n));
    assert.ok(!holdsFlock(fdinfo('lock:\t1: POSIX  ADVISORY  WRITE 359 fe:00:1234 0 EOF\n'), 1234n));
    assert.ok(!holdsFlock(fdinfo(''), 1234n), 'opened, by one who waits');
  });
});
