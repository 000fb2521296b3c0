// Counts the system calls in a trace of strace.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countCalls } from './traced-calls.js';

const record = `
10 openat(AT_FDCWD</w>, ""..., O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 17</w/state/a>
10 openat(AT_FDCWD</w>, ""..., O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0600) = 17</w/state/a>
11 openat(AT_FDCWD</w>, ""..., O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 17</tmp/other>
11 openat(AT_FDCWD</w>, ""..., O_RDONLY|O_CLOEXEC) = 17</w/state/read>
11 openat(AT_FDCWD</w>, ""..., O_WRONLY|O_CREAT|O_EXCL, 0600) = -1 EEXIST (File exists)
11 getdents64(20</w/state>, 0x1 /* 3 entries */, 32768) = 80
11 getdents64(20</w/state>, 0x1 /* 0 entries */, 32768) = 0
12 fsync(18</w/state/a>) = 0
12 syncfs(18</w/state>) = 0
12 rename(""..., ""...) = 0
`;

describe('a record of strace', () => {
  it('is counted by files, whole directories, flushes and renames', () => {
    const counts = countCalls(record, '/w/state');
    assert.deepEqual(counts, { filesCreated: 1, directoriesRead: 1, flushes: 2, renames: 1 });
  });
});
