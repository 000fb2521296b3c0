// Translates a trace of strace to the calls at which a process is killed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeCall, firstAndLast, type KillSite, sitesOf } from './kill-sites.js';

const root = '/tmp/place';

describe('sites of a trace', () => {
  it('counts the calls of a name in a thread as strace does, with calls on other files', () => {
    const trace = [
      '10 write(5<pipe:[1]>, "*", 1) = 1',
      `10 write(20<${root}/disk/.writ-tmp-00ff>, "x", 1) = 1`,
      `11 syncfs(3<${root}/disk/staging/c-12345678>) = 0`,
      `10 rename("${root}/disk/.writ-tmp-00ff", "${root}/disk/ledger.json" <unfinished ...>`,
    ].join('\n');
    assert.deepEqual(sitesOf(trace, { root }), [
      { call: 'write', nth: 2, index: 0, what: 'write disk/.writ-tmp', ordinal: 1, thread: 'main' },
      { call: 'syncfs', nth: 1, index: 1, what: 'syncfs disk/staging/CYCLE', ordinal: 1, thread: 'child' },
      {
        call: 'rename',
        nth: 1,
        index: 2,
        what: 'rename disk/.writ-tmp, disk/ledger.json',
        ordinal: 1,
        thread: 'main',
      },
    ]);
  });

  it('distinguishes calls with equal text', () => {
    const trace = Array.from({ length: 3 }, () => `fsync(3<${root}/disk>) = 0`).join('\n');
    assert.deepEqual(
      sitesOf(trace, { root }).map(({ ordinal }) => ordinal),
      [1, 2, 3],
    );
  });

  it('includes a file that is opened to be read only for errors', () => {
    const trace = `openat(AT_FDCWD</>, "${root}/a", O_RDONLY) = 3<${root}/a>`;
    assert.deepEqual(sitesOf(trace, { root }), []);
    assert.equal(sitesOf(trace, { root, also: 'reading' })[0]?.what, 'openat a');
  });

  it('refuses an unclassified call', () => {
    assert.throws(() => sitesOf(`newcall("${root}/a") = 0`, { root }), /newcall/);
  });

  it('ignores calls on another directory', () => {
    assert.equal(describeCall({ call: 'unlink', args: '"/tmp/place-2/a") = 0' }, root), undefined);
  });

  it('selects the first and the last site of each call', () => {
    const site = (call: string, nth: number): KillSite => ({
      ...{ call, nth, index: 0, what: `${call} ${nth}`, ordinal: 1, thread: 'main' },
    });
    const sites = [1, 2, 3, 4, 5].map((nth) => site('fsync', nth)).concat(site('link', 1));
    const chosen = firstAndLast(sites).map(({ what }) => what);
    assert.deepEqual(chosen, ['fsync 1', 'fsync 5', 'link 1']);
  });
});
