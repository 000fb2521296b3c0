import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  chooseStatusSource,
  maxStatusFileAgeMs,
  type StatusEvidence,
} from '../../../../src/cli/host/status-source-rules.js';

const fresh = { agent: 'run', ageMs: 60_000 } as const;
const old = { agent: 'run', ageMs: maxStatusFileAgeMs + 1 } as const;
const toCome = { agent: 'run', ageMs: -maxStatusFileAgeMs - 1 } as const;
const ended = { agent: 'stop', ageMs: 60_000 } as const;
const endedLongAgo = { agent: 'stop', ageMs: 3_600_000 } as const;
const starting = { agent: 'init', ageMs: 10_000 } as const;

const words = { none: undefined, fresh, old, toCome, ended, endedLongAgo, starting } as const;

/** For each word, in their order. */
const table: Readonly<Record<string, readonly ReturnType<typeof chooseStatusSource>[]>> = {
  'denied denied': ['unknown', 'file', 'unknown', 'unknown', 'file', 'unknown', 'file'],
  'denied free': ['unknown', 'file', 'unknown', 'unknown', 'file', 'unknown', 'file'],
  'denied locked': ['unknown', 'file', 'unknown', 'unknown', 'file', 'unknown', 'file'],
  'denied starting': ['unknown', 'file', 'unknown', 'unknown', 'file', 'unknown', 'file'],
  'nobody denied': ['unknown', 'file-doubted', 'unknown', 'unknown', 'file', 'unknown', 'file-doubted'],
  'nobody free': ['disk', 'disk', 'disk-lost', 'disk-lost', 'disk', 'disk', 'disk'],
  'nobody starting': ['disk', 'disk-starting', 'disk-lost', 'disk-lost', 'disk', 'disk', 'disk-starting'],
  'nobody locked': ['disk', 'disk-doubted', 'disk-lost', 'disk-lost', 'disk', 'disk', 'disk-starting'],
};

describe('whose word a command goes by', () => {
  for (const [row, expected] of Object.entries(table))
    it(`is known for a door and a state directory: ${row}`, () => {
      const [door, state] = row.split(' ') as [StatusEvidence['door'], StatusEvidence['state']];
      const said = Object.values(words).map((word) =>
        chooseStatusSource({ door, state, ...(word && { word }) }),
      );
      assert.deepEqual(said, expected);
    });
});
