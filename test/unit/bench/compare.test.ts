// The order of a comparison, and what becomes of a peer that is missing or fails.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { compare } from '../../../bench/compare.js';
import type { Need, Subject, Task } from '../../../bench/subjects/subject.js';
import { missing } from '../../../bench/subjects/subject.js';
import type { StaticWeb } from '../../../bench/web/static-web.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

interface Played {
  readonly needs?: readonly Need[];
  /** Fails in this one. */
  readonly fails?: Task;
}

/** A subject that notes what it was asked for; each act costs as many milliseconds as acts came before it. */
function player(name: string, notes: string[], { needs = [], fails }: Played = {}): Subject {
  const act = (task: Task) => async (home: string) => {
    assert.ok(existsSync(home));
    notes.push(`${name} ${task} ${home.split('/').at(-1)}`);
    if (task === fails) throw new Error('exit 1: no such thing\nsecond line /with/a/path');
    return { wallMs: notes.length };
  };
  return {
    name,
    needs,
    note: '',
    setUp: async () => ({
      acts: { 'first sync': act('first sync'), update: act('update') },
      publishSecond: async () => {
        notes.push(`${name} publishes`);
      },
      [Symbol.asyncDispose]: async () => {
        notes.push(`${name} ends`);
      },
    }),
  };
}

function run(dir: TempDir, subjects: readonly Subject[], rounds = 2) {
  const place = { first: dir.join('1'), second: dir.join('2'), web: undefined as unknown as StaticWeb };
  return compare({ work: dir.path, place, subjects, rounds, logStep: () => undefined });
}

describe('a comparison', () => {
  it('takes all in turn, each round of each in a directory of its own that the next task finds', async () => {
    using dir = tempDir();
    const notes: string[] = [];
    await run(dir, [player('a', notes), player('b', notes)]);
    const first = ['a first sync a-1', 'b first sync b-1', 'a first sync a-2', 'b first sync b-2'];
    const update = first.map((line) => line.replace('first sync', 'update'));
    assert.deepEqual(notes, [...first, 'a publishes', 'b publishes', ...update, 'a ends', 'b ends']);
    assert.deepEqual(readdirSync(dir.join('hosts')).sort(), ['a-1', 'a-2', 'b-1', 'b-2']);
  });

  it('says who is missing, and by which package it comes', async () => {
    using dir = tempDir();
    const needs = [{ program: 'no-such-program', debianPackage: 'the-package' }];
    const { rows, absent } = await run(dir, [player('a', []), player('b', [], { needs })]);
    assert.deepEqual(absent, [{ subject: 'b', why: 'not installed: the-package' }]);
    assert.deepEqual([...new Set(rows.map(({ subject }) => subject))], ['a']);
  });

  it('goes on without a peer that fails, keeps what it measured before, and names no path', async () => {
    using dir = tempDir();
    const notes: string[] = [];
    const { rows, absent } = await run(dir, [player('a', notes), player('b', notes, { fails: 'update' })]);
    assert.deepEqual(absent, [{ subject: 'b', why: 'failed: exit 1: no such thing' }]);
    assert.deepEqual(
      rows.map(({ subject, task, samples }) => `${subject} ${task} ${samples.length}`),
      ['a first sync 2', 'b first sync 2', 'a update 2'],
    );
    assert.ok(notes.includes('b ends'));
  });

  it('fails when the first one does, and ends what it began', async () => {
    using dir = tempDir();
    const notes: string[] = [];
    await assert.rejects(
      run(dir, [player('a', notes, { fails: 'first sync' }), player('b', notes)]),
      /no such thing/,
    );
    assert.deepEqual(notes.slice(-2), ['a ends', 'b ends']);
  });
});

describe('a peer', () => {
  it('is there when its program is on the PATH, also where Debian installs none', () => {
    using dir = tempDir();
    const needs = [{ program: 'delivers-policy', debianPackage: 'a package' }];
    assert.deepEqual(missing(needs, `/nowhere:${dir.path}`), ['a package']);
    writeFileSync(dir.join('delivers-policy'), '');
    assert.deepEqual(missing(needs, `/nowhere:${dir.path}`), []);
  });
});
