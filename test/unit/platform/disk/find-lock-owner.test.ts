// Who holds a lock, by what the kernel says and by the note in the file: a dead process is never named.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  encodeLockNote,
  holdsFlock,
  judgeLockHolder,
  type LockNote,
  parseLockNote,
} from '../../../../src/platform/disk/find-lock-owner.js';

const note: LockNote = { what: 'agent', pid: 4711, startTicks: 99, sinceMs: Date.UTC(2026, 10, 21, 16, 30) };
const writer = { pid: 4711, startTicks: 99, command: 'node' };

describe('the note of a lock', () => {
  it('is one line for people that is read back', () => {
    const text = encodeLockNote(note);
    assert.equal(text, 'agent (pid 4711, started 99) since 2026-11-21T16:30:00.000Z\n');
    assert.deepEqual(parseLockNote(text), note);
  });

  it('counts only whole', () => {
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
  it('names what the holder does, and since when', () => {
    assert.deepEqual(judgeLockHolder({ note, holders: [writer] }), {
      text: 'agent (pid 4711)',
      what: 'agent',
      pid: 4711,
      command: 'node',
      sinceMs: note.sinceMs,
      alive: 'yes',
    });
  });

  it('knows the writer by its start, whatever its pid is from here', () => {
    const seen = judgeLockHolder({ note, holders: [{ ...writer, pid: 31_000 }] });
    assert.deepEqual([seen.text, seen.pid], ['agent (pid 31000)', 31_000]);
  });

  it('believes no note of somebody else than the holder', () => {
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

  it('believes a living writer where nobody can be seen holding it', () => {
    assert.equal(judgeLockHolder({ note, holders: [], noted: writer }).text, 'agent (pid 4711)');
  });

  it('names nobody where nobody is seen', () => {
    const nobody = judgeLockHolder({ note, holders: [] });
    assert.deepEqual(nobody, { text: 'a process that cannot be seen from here', alive: 'unknown' });
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
