import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  dropPartials,
  openPartial,
  type PartialsHost,
  sweepPartials,
} from '../../../../src/agent/partials/partials.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import { digestHex } from '../../../../src/core/names.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { sha256 } from '../../../kit/repository/archive-builder.js';

const whole = Buffer.from('all that was signed');
const file = { length: whole.length, digest: sha256(whole) };
const hex = digestHex(file.digest);
const nowMs = Date.UTC(2027, 0, 1);
const dayMs = 86_400_000;

function hostIn(dir: TempDir, atMs = nowMs): PartialsHost {
  const [state, policy, run] = [dir.join('state'), dir.join('policy'), dir.join('run')];
  const paths = hostPaths({ state, policy, run, socket: '' });
  fs.mkdirSync(paths.partials, { recursive: true, mode: 0o700 });
  const clock = fakeClock({ nowMs: atMs });
  const config = { limits: { maxArchiveBytes: 1000 } };
  return { paths, durable: createDurableFs(), clock, log: silentLog(), config };
}

/** Writes the first bytes, as an interrupted run does. */
function leave(host: PartialsHost, bytes: number, seen?: { location: string; etag: string }): void {
  const partial = openPartial(host, file);
  if (seen !== undefined) partial.note(seen);
  fs.writeSync(partial.descriptor, whole.subarray(0, bytes));
  partial.keep();
  fs.closeSync(partial.descriptor);
}

/** @returns how many bytes the next run finds */
function foundIn(host: PartialsHost, wanted = file): number {
  const { descriptor, foundBytes } = openPartial(host, wanted);
  fs.closeSync(descriptor);
  return foundBytes;
}

describe('a partial', () => {
  const seen = { location: 'https://a/', etag: '"v1"' };

  it('is found again by its digest, private, with the version of its mirror', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5, seen);
    const path = join(host.paths.partials, hex);
    assert.equal(fs.statSync(path).mode & 0o777, 0o600);
    assert.equal(fs.statSync(`${path}.json`).mode & 0o777, 0o600);
    const again = openPartial(host, file);
    assert.deepEqual([again.foundBytes, again.seen, again.path], [5, seen, path]);
    fs.closeSync(again.descriptor);
  });

  it('has no version if its note is damaged, or if another mirror named none', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    const note = join(host.paths.partials, `${hex}.json`);
    const damages = [() => fs.writeFileSync(note, '{"location":7}'), () => fs.truncateSync(note, 9)];
    // The target of this link is a valid note.
    const link = (): void => {
      fs.renameSync(note, dir.join('note'));
      fs.symlinkSync(dir.join('note'), note);
    };
    for (const damage of [...damages, link]) {
      leave(host, 5, seen);
      damage();
      const again = openPartial(host, file);
      assert.deepEqual([again.foundBytes, again.seen], [5, undefined]);
      again.note(undefined);
      assert.equal(fs.existsSync(note), false);
      fs.closeSync(again.descriptor);
      again.discard();
    }
  });

  it('is written and continued if its note is a directory', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5);
    const note = join(host.paths.partials, `${hex}.json`);
    fs.mkdirSync(join(note, 'deep'), { recursive: true });
    const again = openPartial(host, file);
    assert.deepEqual([again.foundBytes, again.seen], [5, undefined]);
    again.note(seen);
    fs.closeSync(again.descriptor);
    assert.equal(fs.lstatSync(note).isFile(), true);
  });

  it('that is complete gets a second name and no note, and is removed once the second name is in use', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5, seen);
    const partial = openPartial(host, file);
    fs.writeSync(partial.descriptor, whole.subarray(5), 0, null, 5);
    partial.take(dir.join('archive'));
    fs.closeSync(partial.descriptor);
    assert.deepEqual(fs.readFileSync(dir.join('archive')), whole);
    assert.deepEqual(fs.readdirSync(host.paths.partials), [hex]);
    assert.equal(fs.statSync(dir.join('archive')).ino, fs.statSync(join(host.paths.partials, hex)).ino);
    sweepPartials(host);
    assert.deepEqual(fs.readdirSync(host.paths.partials), []);
  });

  it('that is complete stays for a day if its unused second name was removed', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, whole.length);
    const partial = openPartial(host, file);
    partial.take(dir.join('archive'));
    fs.closeSync(partial.descriptor);
    fs.rmSync(dir.join('archive'));
    sweepPartials(host);
    assert.equal(foundIn(host), whole.length);
    sweepPartials(hostIn(dir, nowMs + dayMs));
    assert.deepEqual(fs.readdirSync(host.paths.partials), []);
  });

  it('longer than the signed length is removed', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5);
    assert.equal(foundIn(host, { ...file, length: 5 }), 5);
    assert.equal(foundIn(host, { ...file, length: 4 }), 0);
  });

  const stranger = 54_321;
  const secret = 'of another user';
  const put: Readonly<Record<string, (path: string, victim: string) => void>> = {
    'a link': (path, victim) => fs.symlinkSync(victim, path),
    'a second name of a file': (path, victim) => fs.linkSync(victim, path),
    'a pipe': (path) => execFileSync('mkfifo', ['-m', '600', path]),
    'a directory with something in it': (path) => fs.mkdirSync(join(path, 'deep'), { recursive: true }),
    'a file that others may write': (path) => {
      fs.writeFileSync(path, 'x');
      fs.chmodSync(path, 0o666);
    },
    'a file of a stranger': (path) => {
      fs.writeFileSync(path, 'x', { mode: 0o600 });
      if (process.getuid?.() === 0) fs.chownSync(path, stranger, stranger);
      else fs.chmodSync(path, 0o644);
    },
  };
  for (const [what, make] of Object.entries(put)) {
    it(`begins again if ${what} is at its path, without a write into that file`, () => {
      using dir = tempDir();
      const host = hostIn(dir);
      fs.writeFileSync(dir.join('victim'), secret, { mode: 0o600 });
      make(join(host.paths.partials, hex), dir.join('victim'));
      const partial = openPartial(host, file);
      fs.writeSync(partial.descriptor, whole);
      fs.closeSync(partial.descriptor);
      assert.equal(partial.foundBytes, 0);
      assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), secret);
      const { mode, nlink } = fs.lstatSync(partial.path);
      assert.deepEqual([mode & 0o777777, nlink], [0o100600, 1]);
    });
  }
});

describe('partials on the disk', () => {
  it('stay with their notes for a day by the clock of the host', () => {
    using dir = tempDir();
    const seen = { location: 'https://a/', etag: '"v1"' };
    leave(hostIn(dir), 5, seen);
    const almost = hostIn(dir, nowMs + dayMs - 1);
    sweepPartials(almost);
    assert.deepEqual(fs.readdirSync(almost.paths.partials), [hex, `${hex}.json`]);
    sweepPartials(hostIn(dir, nowMs + dayMs));
    assert.deepEqual(fs.readdirSync(almost.paths.partials), []);
  });

  it('are kept, but not half a note, a foreign file, or a note without its partial download', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5);
    const { partials } = host.paths;
    fs.writeFileSync(join(partials, '.writ-tmp-0123'), '{');
    fs.mkdirSync(join(partials, 'directory', 'deep'), { recursive: true });
    fs.writeFileSync(join(partials, `${'a'.repeat(64)}.json`), '{}');
    fs.symlinkSync(dir.path, join(partials, 'b'.repeat(64)));
    const odd = Buffer.concat([Buffer.from(`${partials}/`), Buffer.from([0xff, 0xfe])]);
    fs.mkdirSync(odd);
    fs.writeFileSync(Buffer.concat([odd, Buffer.from('/x')]), 'x');
    fs.writeFileSync(Buffer.concat([odd, Buffer.from([0xfd])]), 'x');
    sweepPartials(host);
    assert.deepEqual(fs.readdirSync(partials), [hex]);
    assert.equal(fs.existsSync(partials), true);
  });

  it('are removed except for the one that is wanted', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    leave(host, 5);
    fs.writeFileSync(join(host.paths.partials, 'c'.repeat(64)), 'x', { mode: 0o600 });
    dropPartials(host, [file.digest]);
    assert.equal(foundIn(host), 5);
    assert.deepEqual(fs.readdirSync(host.paths.partials), [hex]);
    dropPartials(host);
    assert.deepEqual(fs.readdirSync(host.paths.partials), []);
  });

  it('are absent if their directory was removed or is not a directory', () => {
    using dir = tempDir();
    const host = hostIn(dir);
    fs.rmdirSync(host.paths.partials);
    sweepPartials(host);
    fs.writeFileSync(host.paths.partials, 'obstacle');
    sweepPartials(host);
    assert.equal(fs.readFileSync(host.paths.partials, 'utf8'), 'obstacle');
  });
});
