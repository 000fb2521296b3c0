import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  chooseStatusSource,
  maxStatusFileAgeMs,
  type StatusEvidence,
  type StatusSource,
} from '../../../../src/cli/host/status-source-rules.js';

const fresh = { agent: 'run', ageMs: 60_000 } as const;
const old = { agent: 'run', ageMs: maxStatusFileAgeMs + 1 } as const;
const future = { agent: 'run', ageMs: -maxStatusFileAgeMs - 1 } as const;
const stopped = { agent: 'stop', ageMs: 60_000 } as const;
const stoppedLongAgo = { agent: 'stop', ageMs: 3_600_000 } as const;
const starting = { agent: 'init', ageMs: 10_000 } as const;

const statusFiles = { none: undefined, fresh, old, future, stopped, stoppedLongAgo, starting } as const;

/** The errors of a user who cannot read the ledger, or may not connect. */
const unreadable: readonly StatusSource[] = [
  'unknown',
  'status-file',
  'unknown',
  'unknown',
  'status-file',
  'unknown',
  'status-file',
];
/** The status file of a host with a lock that no process holds. */
const free: readonly StatusSource[] = [
  'state-directory',
  'state-directory',
  'agent-lost',
  'agent-lost',
  'state-directory',
  'state-directory',
  'state-directory',
];

/** By socket and state directory: the source for each status file, in the order of `statusFiles`. */
const table: Readonly<Record<string, readonly StatusSource[]>> = {
  'denied denied': unreadable,
  'denied free': unreadable,
  'denied locked': unreadable,
  'denied starting': unreadable,
  'not-listening denied': unreadable.with(1, 'status-file-unanswered').with(6, 'status-file-unanswered'),
  'not-listening free': free,
  'not-listening starting': free.with(1, 'state-directory-starting').with(6, 'state-directory-starting'),
  'not-listening locked': free.with(1, 'state-directory-unanswered').with(6, 'state-directory-starting'),
};

describe('the source of a status', () => {
  for (const [row, expected] of Object.entries(table))
    it(`is chosen for a socket and a state directory: ${row}`, () => {
      const [socket, stateDirectory] = row.split(' ') as [
        StatusEvidence['socket'],
        StatusEvidence['stateDirectory'],
      ];
      const chosen = Object.values(statusFiles).map((statusFile) =>
        chooseStatusSource({ socket, stateDirectory, ...(statusFile && { statusFile }) }),
      );
      assert.deepEqual(chosen, expected);
    });
});
